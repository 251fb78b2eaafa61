//! Which file reaches which other one by the path of an item.
//!
//! Why: a circle of files has to be read as one file. Ranks stop circles between rooms; this finds
//! them inside a room as well.
//!
//! Promise: a path counts where its item is defined, through any number of re-exports. A `mod` line
//! and a re-export do not count as paths, `super::` does; tests are left out. Imports by `*` count
//! for the module they name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The files of one package, and what each reaches.
#[derive(Debug, Default)]
pub struct Graph {
    /// From a file to what it reaches: the line and the path of the first reach.
    pub reaches: BTreeMap<String, BTreeMap<String, (usize, String)>>,
    /// Own `impl`s that are in another file than their type: the file, the line and the type.
    pub strays: Vec<(String, usize, String)>,
    /// Structs that other files can change past their methods: their fields are visible, and their own
    /// `impl` has a method with `&mut self`. The file and the name.
    pub open: Vec<(String, String)>,
    /// Structs and enums by name, with the files that define one.
    pub types: BTreeMap<String, BTreeSet<String>>,
}

type Segments = Vec<String>;

#[derive(Debug, Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// Structs and enums among `defined`.
    types: Vec<String>,
    /// Structs with a field that other files see.
    with_visible_fields: BTreeSet<String>,
    /// Types with a method of their own that takes `&mut self`.
    changing: BTreeSet<String>,
    children: BTreeSet<String>,
    /// Files that only tests have: `#[cfg(test)] mod x;`.
    test_children: BTreeSet<String>,
    imports: Vec<Import>,
    /// Every path that the code names, as written.
    paths: BTreeMap<Segments, usize>,
    /// The types of own `impl`s, as written.
    impls: Vec<(Segments, usize)>,
}

#[derive(Debug, Clone)]
struct Import {
    /// `*` of a glob.
    name: String,
    path: Segments,
    is_reexport: bool,
    line: usize,
}

/// The modules of a package, by their path from its root.
#[derive(Debug, Default)]
struct Package {
    modules: BTreeMap<Segments, Module>,
}

impl Graph {
    /// Of the package whose source lies below `root` (`src/`); `files` are paths and texts.
    pub fn of<'a>(root: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut package = Package::default();
        for (path, text) in files {
            let Some(inside) = path.strip_prefix(root) else {
                continue;
            };
            let stem = inside.trim_end_matches(".rs");
            let at: Segments = match stem {
                "lib" => Vec::new(),
                other => other.split('/').map(str::to_owned).collect(),
            };
            let file = syn::parse_file(text).unwrap_or_else(|why| panic!("{path}: {why}"));
            package.read(at, path, &file.items);
        }
        package.graph()
    }

    /// Sets of files that reach each other, the largest first.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let mut graph: petgraph::graphmap::DiGraphMap<&str, ()> =
            petgraph::graphmap::DiGraphMap::new();
        for (from, targets) in &self.reaches {
            for to in targets.keys() {
                graph.add_edge(from.as_str(), to.as_str(), ());
            }
        }
        let mut circles: Vec<Vec<String>> = petgraph::algo::tarjan_scc(&graph)
            .into_iter()
            .filter(|set| set.len() > 1)
            .map(|set| {
                let mut names: Vec<String> = set.into_iter().map(str::to_owned).collect();
                names.sort();
                names
            })
            .collect();
        circles.sort_by_key(|set| (usize::MAX - set.len(), set.clone()));
        circles
    }

    /// The reaches inside a circle, one a line.
    pub fn inside(&self, circle: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        for from in circle {
            for (to, (line, path)) in self.reaches.get(from).into_iter().flatten() {
                if circle.contains(to) {
                    lines.push(format!("{from}:{line} -> {to} ({path})"));
                }
            }
        }
        lines
    }
}

impl Package {
    fn read(&mut self, at: Segments, file: &str, items: &[syn::Item]) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items.iter().filter(|item| is_test(item)) {
            if let syn::Item::Mod(child) = item {
                module.test_children.insert(child.ident.to_string());
            }
        }
        let mut inline = Vec::new();
        for item in items.iter().filter(|item| !is_test(item)) {
            if let Some(name) = defined(item) {
                if matches!(item, syn::Item::Struct(_) | syn::Item::Enum(_)) {
                    module.types.push(name.clone());
                }
                module.defined.insert(name);
            }
            if let syn::Item::Struct(state) = item
                && state.fields.iter().any(is_visible)
            {
                module.with_visible_fields.insert(state.ident.to_string());
            }
            match item {
                syn::Item::Use(used) => {
                    let is_reexport = !matches!(used.vis, syn::Visibility::Inherited);
                    let line = used.span().start().line;
                    let mut tree = Vec::new();
                    flatten(&used.tree, &mut Vec::new(), &mut tree);
                    module
                        .imports
                        .extend(tree.into_iter().map(|(name, path)| Import {
                            name,
                            path,
                            is_reexport,
                            line,
                        }));
                }
                syn::Item::Mod(child) => {
                    module.children.insert(child.ident.to_string());
                    if let Some((_, items)) = &child.content {
                        inline.push((child.ident.to_string(), items));
                    }
                }
                other => {
                    if let syn::Item::Impl(own) = other
                        && own.trait_.is_none()
                        && let syn::Type::Path(named) = &*own.self_ty
                    {
                        if let Some(last) = named.path.segments.last()
                            && own.items.iter().any(takes_mut_self)
                        {
                            module.changing.insert(last.ident.to_string());
                        }
                        let parts = named
                            .path
                            .segments
                            .iter()
                            .map(|part| part.ident.to_string());
                        module
                            .impls
                            .push((parts.collect(), own.span().start().line));
                    }
                    let mut paths = Paths {
                        found: &mut module.paths,
                    };
                    paths.visit_item(other);
                }
            }
        }
        for (name, items) in inline {
            let mut path = at.clone();
            path.push(name);
            self.read(path, file, items);
        }
        self.modules.insert(at, module);
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (at, module) in &self.modules {
            if self.is_test(at) {
                continue;
            }
            for name in &module.types {
                let homes = graph.types.entry(name.clone()).or_default();
                homes.insert(module.file.clone());
            }
            let open = module.with_visible_fields.intersection(&module.changing);
            let open = open.map(|name| (module.file.clone(), name.clone()));
            graph.open.extend(open);
            let imported = module.imports.iter();
            let imported = imported.filter(|import| !import.is_reexport);
            let imported = imported.map(|import| (&import.path, import.line));
            let named = module.paths.iter().map(|(path, line)| (path, *line));
            for (path, line) in &module.impls {
                let home = self
                    .absolute(at, path, 0)
                    .and_then(|path| self.file(&path, 0));
                if home.is_some_and(|home| home != module.file) {
                    graph
                        .strays
                        .push((module.file.clone(), *line, path.join("::")));
                }
            }
            for (path, line) in imported.chain(named) {
                let Some(target) = self
                    .absolute(at, path, 0)
                    .and_then(|path| self.file(&path, 0))
                else {
                    continue;
                };
                if target != module.file {
                    let targets = graph.reaches.entry(module.file.clone()).or_default();
                    targets.entry(target).or_insert((line, path.join("::")));
                }
            }
        }
        graph
    }

    /// Whether only tests have this module.
    fn is_test(&self, at: &[String]) -> bool {
        at.iter().enumerate().any(|(depth, name)| {
            let above = self.modules.get(&at[..depth]);
            above.is_some_and(|module| module.test_children.contains(name))
        })
    }

    /// A path as written in the module `at`, from the package's root; `None` for another package's.
    fn absolute(&self, at: &[String], path: &[String], depth: usize) -> Option<Segments> {
        if depth > 16 {
            return None;
        }
        let module = self.modules.get(at)?;
        let (first, rest) = path.split_first()?;
        let mut whole: Segments = match first.as_str() {
            "crate" => Vec::new(),
            "self" => at.to_vec(),
            "super" => {
                let (_, above) = at.split_last()?;
                let ups = rest.iter().take_while(|part| *part == "super").count();
                let base = &above[..above.len().checked_sub(ups)?];
                let mut whole = base.to_vec();
                whole.extend(rest[ups..].iter().cloned());
                return Some(whole);
            }
            name if module.children.contains(name) || module.defined.contains(name) => {
                let mut own = at.to_vec();
                own.push(name.to_owned());
                own
            }
            name => {
                let import = module.imports.iter().find(|import| import.name == name)?;
                // `use x::x` would resolve to itself.
                (import.path != path).then_some(())?;
                self.absolute(at, &import.path, depth + 1)?
            }
        };
        whole.extend(rest.iter().cloned());
        Some(whole)
    }

    /// The file that defines what an absolute path names.
    fn file(&self, path: &[String], depth: usize) -> Option<String> {
        if depth > 16 {
            return None;
        }
        let mut at: Segments = Vec::new();
        for (index, name) in path.iter().enumerate() {
            let module = self.modules.get(&at)?;
            if module.children.contains(name) {
                at.push(name.clone());
                continue;
            }
            if module.test_children.contains(name) {
                return None;
            }
            if module.defined.contains(name) {
                return Some(module.file.clone());
            }
            let rest = &path[index + 1..];
            let through = |import: &Import| {
                let mut whole = self.absolute(&at, &import.path, depth + 1)?;
                if import.name == "*" {
                    whole.push(name.clone());
                }
                whole.extend(rest.iter().cloned());
                self.file(&whole, depth + 1)
            };
            let named = module.imports.iter().find(|import| &import.name == name);
            if let Some(import) = named {
                return through(import);
            }
            let globs = module.imports.iter().filter(|import| import.name == "*");
            let from_glob = globs
                .filter(|import| {
                    let target = self.absolute(&at, &import.path, depth + 1);
                    target
                        .and_then(|path| self.modules.get(&path))
                        .is_some_and(|module| module.defined.contains(name))
                })
                .find_map(through);
            return from_glob.or_else(|| Some(module.file.clone()));
        }
        self.modules.get(&at).map(|module| module.file.clone())
    }
}

/// A field that other files can read and write.
fn is_visible(field: &syn::Field) -> bool {
    !matches!(field.vis, syn::Visibility::Inherited)
}

fn takes_mut_self(item: &syn::ImplItem) -> bool {
    let syn::ImplItem::Fn(method) = item else {
        return false;
    };
    let receiver = method.sig.receiver();
    receiver.is_some_and(|me| me.reference.is_some() && me.mutability.is_some())
}

/// The paths of expressions, types, patterns and macros.
struct Paths<'a> {
    found: &'a mut BTreeMap<Segments, usize>,
}

impl Paths<'_> {
    fn add(&mut self, path: Segments, line: usize) {
        self.found.entry(path).or_insert(line);
    }

    /// A macro's arguments are not parsed: a path is a row of words with `::` between them.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Segments = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(word) => {
                    if colons != 2 || path.is_empty() {
                        self.end(&mut path, line);
                        line = word.span().start().line;
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                other => {
                    self.end(&mut path, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Segments, line: usize) {
        // A lone word may be anything; as a path it counts where it was imported.
        if path.len() > 1 {
            self.add(std::mem::take(path), line);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|part| part.ident.to_string());
        self.add(segments.collect(), path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    /// A local `use` is no re-export; it counts as the paths it names.
    fn visit_item_use(&mut self, used: &'ast syn::ItemUse) {
        let mut tree = Vec::new();
        flatten(&used.tree, &mut Vec::new(), &mut tree);
        for (_, path) in tree {
            self.add(path, used.span().start().line);
        }
    }
}

fn flatten(tree: &syn::UseTree, before: &mut Segments, found: &mut Vec<(String, Segments)>) {
    match tree {
        syn::UseTree::Path(part) => {
            before.push(part.ident.to_string());
            flatten(&part.tree, before, found);
            before.pop();
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before, found);
            }
        }
        syn::UseTree::Glob(_) => found.push(("*".into(), before.clone())),
        syn::UseTree::Name(name) => end(&name.ident, &name.ident, before, found),
        syn::UseTree::Rename(renamed) => end(&renamed.ident, &renamed.rename, before, found),
    }
}

fn end(
    named: &syn::Ident,
    name: &syn::Ident,
    before: &[String],
    found: &mut Vec<(String, Segments)>,
) {
    let mut path = before.to_vec();
    if named != "self" {
        path.push(named.to_string());
    }
    let own = if name == "self" {
        path.last().cloned().unwrap_or_default()
    } else {
        name.to_string()
    };
    found.push((own, path));
}

fn defined(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// `#[cfg(test)]`, and other code that exists for tests alone.
fn is_test(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test")
            || list.path.is_ident("cfg") && list.tokens.to_string().starts_with("any (test")
    })
}
