//! `make install` and `make install-user`: what lies where afterwards, and what an uninstall leaves.
//!
//! Promise: both put down what the Debian package holds; the package's list is read here from `Cargo.toml`, without
//! the script that the two goals run.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::documents::{links, target};
use crate::support::source;

/// What moves an installation, or is for the `make` that runs the tests.
const OF_THE_SHELL: [&str; 13] = [
    "PREFIX",
    "DESTDIR",
    "SYSCONFDIR",
    "UNITDIR",
    "USERUNITDIR",
    "SYSUSERSDIR",
    "ZSHDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
];

/// A release build that is none, and a tree to install into.
struct Place {
    folder: tempfile::TempDir,
}

// === impl Place ===

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let release = folder.path().join("built/release");
        std::fs::create_dir_all(&release).expect("a directory");
        let program = release.join("bursar");
        // The program of the tests is large: man pages and completions come from it, and it is not copied.
        let text = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_bursar"));
        std::fs::write(&program, text).expect("a program");
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
        Self { folder }
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Runs a goal; what it printed.
    fn make(&self, goal: &str, more: &[&str]) -> String {
        let tree = self.tree();
        let mut make = Command::new("make");
        for name in OF_THE_SHELL {
            make.env_remove(name);
        }
        let made = make
            .args(["--silent", goal])
            .args(more)
            .arg(format!(
                "TARGET={}",
                self.folder.path().join("built").display()
            ))
            .current_dir(source::root())
            .env("HOME", &tree)
            .output()
            .expect("make");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            made.status.success(),
            "{}{}",
            text(&made.stdout),
            text(&made.stderr)
        );
        assert_eq!(text(&made.stderr), "");
        text(&made.stdout)
    }

    /// Every file of the tree with its mode.
    fn files(&self) -> BTreeMap<String, u32> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.tree()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    left.push(path);
                    continue;
                }
                let mode = path.metadata().expect("a file").permissions().mode() & 0o777;
                found.insert(inside(&path, &self.tree()), mode);
            }
        }
        found
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.tree().join(path))
            .unwrap_or_else(|why| panic!("{path}: {why}"))
    }
}

fn inside(path: &Path, tree: &Path) -> String {
    let inside = path.strip_prefix(tree).expect("below the tree");
    inside.to_str().expect("a UTF-8 name").to_owned()
}

/// The files of the package `bursar`, with their modes.
fn packaged() -> BTreeMap<String, u32> {
    let manifest: toml::Table = source::read("Cargo.toml").parse().expect("a manifest");
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array();
    let mut found = BTreeMap::new();
    for asset in assets.expect("assets") {
        let [from, to, mode] = [0, 1, 2].map(|at| asset[at].as_str().expect("a text"));
        let mode = u32::from_str_radix(mode, 8).expect("a mode");
        for name in names(from) {
            let place = match to.ends_with('/') {
                true => format!("{to}{name}"),
                false => to.to_owned(),
            };
            found.insert(place, mode);
        }
    }
    found
}

/// The pages of the package, each with the file here that it is.
fn installed_pages() -> Vec<(String, String)> {
    let manifest: toml::Table = source::read("Cargo.toml").parse().expect("a manifest");
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array();
    let mut pages = Vec::new();
    for asset in assets.expect("assets") {
        let [from, to] = [0, 1].map(|at| asset[at].as_str().expect("a text"));
        let Some(folder) = from.strip_suffix("*.md") else {
            if from.ends_with(".md") {
                pages.push((to.to_owned(), from.to_owned()));
            }
            continue;
        };
        let names = names(from).into_iter();
        pages.extend(names.map(|name| (format!("{to}{name}"), format!("{folder}{name}"))));
    }
    pages
}

#[test]
fn a_link_of_an_installed_page_leads_to_a_file_of_the_package() {
    let installed = packaged();
    let pages = installed_pages();
    assert!(pages.len() > 30, "{pages:?}");
    let mut broken = Vec::new();
    for (place, source) in pages {
        let text = source::read(&source);
        for (line, link) in links(&text) {
            if link.contains("://") {
                continue;
            }
            let there = target(&place, link).and_then(|(file, _)| file.to_str().map(str::to_owned));
            if !there.is_some_and(|file| installed.contains_key(&file)) {
                broken.push(format!("{source}:{line}: {link}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

/// The file names that an asset's pattern stands for.
fn names(pattern: &str) -> Vec<String> {
    if pattern == ".cache/package/stage/man/*" {
        return man_pages();
    }
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let Some(end) = name.strip_prefix('*') else {
        return vec![name.to_owned()];
    };
    let entries = std::fs::read_dir(source::root().join(folder)).expect(pattern);
    let names = entries.map(|entry| entry.expect("an entry").path());
    let names = names.filter(|path| path.is_file() && path.to_string_lossy().ends_with(end));
    names
        .map(|path| inside(&path, &source::root().join(folder)))
        .collect()
}

fn man_pages() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a directory");
    let made = Command::new(env!("CARGO_BIN_EXE_bursar"))
        .args(["man", "--output"])
        .arg(folder.path())
        .status();
    assert!(made.expect("it runs").success());
    let pages = std::fs::read_dir(folder.path()).expect("a directory");
    let pages: Vec<String> = pages
        .map(|page| {
            format!(
                "{}.gz",
                inside(&page.expect("a page").path(), folder.path())
            )
        })
        .collect();
    assert!(
        pages.contains(&"bursar-sandbox.1.gz".to_owned()),
        "{pages:?}"
    );
    pages
}

/// What a person looks for after an install; each stands for its kind.
const LOOKED_FOR: [&str; 12] = [
    "usr/bin/bursar",
    "usr/lib/systemd/system/bursar.service",
    "usr/lib/systemd/system/bursar-admin.socket",
    "usr/lib/systemd/user/bursar.service",
    "usr/lib/sysusers.d/bursar.conf",
    "usr/share/man/man1/bursar-spend.1.gz",
    "usr/share/bash-completion/completions/bursar",
    "usr/share/zsh/vendor-completions/_bursar",
    "usr/share/fish/vendor_completions.d/bursar.fish",
    "usr/share/bursar/grafana/bursar.json",
    "usr/share/doc/bursar/docs/apps.md",
    "etc/bursar/config.toml",
];

#[test]
fn an_install_puts_down_what_the_package_holds_and_an_uninstall_leaves_the_configuration() {
    let place = Place::new();
    let tree = format!("DESTDIR={}", place.tree().display());
    let said = place.make("install", &[&tree]);
    assert!(said.contains("bursar key set"), "{said}");
    let installed = place.files();
    assert_eq!(installed, packaged());
    for name in LOOKED_FOR {
        assert!(installed.contains_key(name), "{name}");
        let is_completion = name.contains("completion");
        assert!(
            !is_completion || place.read(name).contains("spend"),
            "{name}"
        );
    }
    // A second install keeps the configuration.
    let config = place.tree().join("etc/bursar/config.toml");
    std::fs::write(&config, "own").expect("a file");
    place.make("install", &[&tree]);
    assert_eq!(place.read("etc/bursar/config.toml"), "own");
    let said = place.make("uninstall", &[&tree]);
    assert!(said.contains("kept: /etc/bursar"), "{said}");
    let left: Vec<String> = place.files().into_keys().collect();
    assert_eq!(left, ["etc/bursar/config.toml"]);
}

#[test]
fn an_install_below_another_prefix_names_itself_in_its_units() {
    let place = Place::new();
    let tree = format!("DESTDIR={}", place.tree().display());
    let where_to = [&*tree, "PREFIX=/opt/b", "SYSCONFDIR=/opt/etc"];
    place.make("install", &where_to);
    let unit = place.read("opt/b/lib/systemd/system/bursar.service");
    for line in [
        "ExecStart=/opt/b/bin/bursar run",
        "LoadCredential=api-key:/opt/etc/bursar/api-key",
        "Environment=BURSAR_CONFIG=/opt/etc/bursar/config.toml",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    assert!(!unit.contains("/usr/bin/bursar"), "{unit}");
    let unit = place.read("opt/b/lib/systemd/user/bursar.service");
    assert!(
        unit.contains("ExecReload=/opt/b/bin/bursar check\n"),
        "{unit}"
    );
    let installed = place.files();
    assert!(installed.keys().all(|name| name.starts_with("opt/")));
    assert_eq!(installed.len(), packaged().len());
    assert!(installed.contains_key("opt/b/share/zsh/site-functions/_bursar"));
    place.make("uninstall", &where_to);
    let left: Vec<String> = place.files().into_keys().collect();
    assert_eq!(left, ["opt/etc/bursar/config.toml"]);
}

/// Without a way into the system's folders: all of it is below the home.
#[test]
fn a_users_install_needs_no_root_and_its_unit_starts_what_it_installed() {
    let place = Place::new();
    let said = place.make("install-user", &[]);
    assert!(
        said.contains("systemctl --user enable --now bursar.socket bursar"),
        "{said}"
    );
    let home = place.tree().display().to_string();
    let unit = place.read(".local/share/systemd/user/bursar.service");
    assert!(
        unit.contains(&format!("ExecStart={home}/.local/bin/bursar run\n")),
        "{unit}"
    );
    let installed = place.files();
    for name in [
        ".local/bin/bursar",
        ".local/share/systemd/user/bursar.socket",
        ".local/share/man/man1/bursar.1.gz",
        ".local/share/bash-completion/completions/bursar",
        ".local/share/doc/bursar/README.md",
        ".config/bursar/config.toml",
    ] {
        assert!(installed.contains_key(name), "{name}");
    }
    let of_the_system = |name: &&String| name.contains("sysusers") || name.contains("system/");
    assert_eq!(installed.keys().find(of_the_system), None);
    // The key is where the unit waits for it and `bursar key set` writes it.
    let config = place.read(".config/bursar/config.toml");
    let config: toml::Table = config.parse().expect("TOML");
    assert_eq!(config["upstream"]["api_key_file"].as_str(), Some("api-key"));
    place.make("uninstall-user", &[]);
    let left: Vec<String> = place.files().into_keys().collect();
    assert_eq!(left, [".config/bursar/config.toml"]);
}

/// bursar refuses a key that every user may read, and does not run as root there.
#[test]
fn the_container_is_run_with_a_key_that_its_own_user_alone_may_read() {
    let file = source::read("packaging/Containerfile");
    let uid = file.split("useradd --system --uid ").nth(1);
    let uid = uid.and_then(|rest| rest.split(' ').next()).expect("a user");
    assert!(file.contains("\nUSER bursar\n"));
    assert!(file.contains(" BURSAR_API_KEY_FILE=/run/secrets/api-key\n"));
    for page in [&file, &source::read("docs/operations.md")] {
        for secret in ["api-key", "nightly"] {
            let given = format!("--secret {secret},uid={uid},mode=0400");
            assert!(page.contains(&given), "no {given} in:\n{page}");
        }
    }
}
