//! The documents as a reader walks through them: every link leads somewhere, every page is one step from the README,
//! and the page for developers of apps has every error that bursar makes.
//!
//! Promise: each rule is a function from texts to complaints, and each is shown to see a planted offence.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::support::source::{File, files, read, root};

/// Where readers begin: its last part lists the pages by reader.
const INDEX: &str = "README.md";
const INDEX_PART: &str = "## Where to read on";

/// The targets of a page's links, with their lines. Code has none.
pub fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let targets = line.split("](").skip(1);
        found.extend(targets.filter_map(|rest| Some((at + 1, rest.split(')').next()?))));
    }
    found
}

/// The names that a page's headings have in links.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        !is_code && line.starts_with('#')
    });
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter_map(|letter| match letter {
                ' ' => Some('-'),
                '-' | '_' => Some(letter),
                letter => letter.is_alphanumeric().then_some(letter),
            });
            kept.collect()
        })
        .collect()
}

/// `..` taken away; `None` above the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => plain.pop().then_some(())?,
            Component::Normal(name) => plain.push(name),
            _ => {}
        }
    }
    Some(plain)
}

/// The file that a link on a page leads to, from the repository's root, and the heading in it.
pub fn target(page: &str, link: &str) -> Option<(PathBuf, Option<String>)> {
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading.to_owned())),
        None => (link, None),
    };
    let file = match file {
        "" => PathBuf::from(page),
        file => plain(&Path::new(page).parent()?.join(file))?,
    };
    Some((file, heading))
}

fn broken_links(page: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (line, link) in links(&page.text) {
        if link.contains("://") {
            continue;
        }
        let place = format!("{}:{line}", page.path);
        let Some((file, heading)) = target(&page.path, link) else {
            complaints.push(format!("{place}: {link} leads out of the repository"));
            continue;
        };
        let whole = root().join(&file);
        let is_own = file == Path::new(&page.path);
        if !is_own && !whole.exists() {
            complaints.push(format!("{place}: there is no {}", file.display()));
        } else if let Some(heading) = heading {
            let text = match is_own {
                true => page.text.clone(),
                false => std::fs::read_to_string(whole).unwrap_or_default(),
            };
            if !anchors(&text).contains(&heading) {
                complaints.push(format!(
                    "{place}: {} has no heading #{heading}",
                    file.display()
                ));
            }
        }
    }
    complaints
}

/// Pages of `docs/` that any other file names, in a comment or in a text.
fn unknown_pages(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        for (begin, _) in line.match_indices("docs/") {
            let rest = &line[begin..];
            let is_of_name = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
            let name = &rest[..rest
                .find(|letter| !is_of_name(letter))
                .unwrap_or(rest.len())];
            let Some(page) = name.find(".md").map(|end| &name[..end + 3]) else {
                continue;
            };
            if !root().join(page).exists() {
                complaints.push(format!("{}:{}: there is no {page}", file.path, at + 1));
            }
        }
    }
    complaints
}

/// Lines that stop the service and leave a socket of it open, by which the next connection starts it again.
fn half_stops(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let sockets: &[&str] = if line.contains("systemctl --user stop bursar") {
            &["bursar.socket"]
        } else if line.contains("systemctl stop bursar") {
            &["bursar.socket", "bursar-admin.socket"]
        } else {
            continue;
        };
        let open = sockets.iter().filter(|socket| !line.contains(**socket));
        complaints.extend(open.map(|socket| format!("{}:{}: {socket} stays", file.path, at + 1)));
    }
    complaints
}

/// Pages that the index does not list.
fn unlisted(index: &str, pages: &[String]) -> Vec<String> {
    let part = index.split(INDEX_PART).nth(1).unwrap_or_default();
    let listed: Vec<PathBuf> = links(part)
        .into_iter()
        .filter_map(|(_, link)| Some(target(INDEX, link)?.0))
        .collect();
    let is_unlisted = |page: &&String| !listed.contains(&PathBuf::from(page));
    pages.iter().filter(is_unlisted).cloned().collect()
}

fn pages() -> Vec<File> {
    let pages: Vec<File> = files()
        .into_iter()
        .filter(|file| file.path.ends_with(".md"))
        .collect();
    assert!(pages.len() > 25, "only {} pages", pages.len());
    pages
}

#[test]
fn every_link_of_every_page_leads_to_a_file_and_a_heading() {
    let complaints: Vec<String> = pages().iter().flat_map(broken_links).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_page_that_a_file_names_is_there() {
    // This file plants one that is not.
    let own = file!();
    let others = files()
        .into_iter()
        .filter(|file| !own.ends_with(&file.path));
    let complaints: Vec<String> = others.flat_map(|file| unknown_pages(&file)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn what_stops_the_service_stops_its_sockets_with_it() {
    // The pages, and what commands print.
    let is_read = |file: &File| file.path.ends_with(".md") || file.path.starts_with("src/");
    let read = files().into_iter().filter(is_read);
    let complaints: Vec<String> = read.flat_map(|file| half_stops(&file)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_page_of_the_documents_is_one_step_from_the_readme() {
    let pages: Vec<String> = pages()
        .into_iter()
        .map(|page| page.path)
        .filter(|path| path.starts_with("docs/"))
        .collect();
    let unlisted = unlisted(&read(INDEX), &pages);
    assert!(
        unlisted.is_empty(),
        "{INDEX}, \"{INDEX_PART}\" lacks {unlisted:?}"
    );
}

#[test]
fn the_readme_is_read_in_one_sitting() {
    let lines = read(INDEX).lines().count();
    assert!(lines <= 150, "{lines} lines");
}

#[test]
fn the_page_for_developers_of_apps_says_what_to_do_about_every_error() {
    let page = read("docs/apps.md");
    let errors = read("docs/errors.md");
    let codes: Vec<&str> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert!(codes.len() > 40, "{codes:?}");
    let lacks = |code: &&&str| !page.contains(&format!("`{code}`"));
    let lacking: Vec<&&str> = codes.iter().filter(lacks).collect();
    assert!(lacking.is_empty(), "docs/apps.md lacks {lacking:?}");
}

#[test]
fn each_rule_sees_a_planted_offence() {
    let page = |text: &str| File {
        path: "docs/planted.md".to_owned(),
        text: text.to_owned(),
    };
    for (text, complaints) in [
        ("[a](apps.md)", 0),
        (
            "[a](apps.md#tokens) [b](../README.md) [c](#here)\n## Here",
            0,
        ),
        ("[a](https://example.com/nowhere.md)", 0),
        ("```\n[a](nowhere.md)\n```", 0),
        ("[a](nowhere.md)", 1),
        ("[a](apps.md#no-such-heading)", 1),
        ("[a](#there)", 1),
        ("[a](../../nowhere.md) and [b](../nowhere.md)", 2),
    ] {
        assert_eq!(broken_links(&page(text)).len(), complaints, "{text}");
    }
    for (text, complaints) in [
        ("sudo systemctl stop bursar", 2),
        ("sudo systemctl stop bursar.socket bursar", 1),
        (
            "sudo systemctl stop bursar.socket bursar-admin.socket bursar",
            0,
        ),
        ("systemctl --user stop bursar", 1),
        ("systemctl --user stop bursar.socket bursar", 0),
        ("systemctl restart bursar", 0),
    ] {
        assert_eq!(half_stops(&page(text)).len(), complaints, "{text}");
    }
    assert_eq!(unknown_pages(&page("see docs/apps.md.")).len(), 0);
    assert_eq!(unknown_pages(&page("see docs/nowhere.md.")).len(), 1);
    let index = format!("[x](docs/x.md)\n{INDEX_PART}\n[y](docs/y.md#part)");
    let pages = ["docs/x.md".to_owned(), "docs/y.md".to_owned()];
    assert_eq!(unlisted(&index, &pages), ["docs/x.md"]);
}
