//! Headers, comments, paths and words.

use bursar::protocol::routes::RouteTable;

use super::{Claim, assert_all_stand, assert_slips_are_seen};
use crate::support::source::{Source, read};

/// The literals of `src/protocol/names.rs`, by the function they are given to.
fn bursars_names(text: &str) -> Result<Vec<Claim>, String> {
    const FILE: &str = "src/protocol/names.rs";
    // What the other literals are put into.
    const PATTERNS: [&str; 2] = ["x-{service_name}-{rest}", "{service_name}-{rest}"];
    let source = Source::read(text);
    let mut claims = Vec::new();
    for found in &source.strings {
        let place = format!("{FILE}:{}", found.line);
        let before = source.before(found);
        let (literal, any_case) = if before.ends_with("from_static(") {
            (found.text.clone(), true)
        } else if before.ends_with("header(") {
            (format!("x-service-{}", found.text), true)
        } else if before.ends_with("comment(") {
            (format!("service-{}", found.text), false)
        } else if before.ends_with("error(") || PATTERNS.contains(&found.text.as_str()) {
            continue;
        } else {
            return Err(format!("{place}: what is {:?}?", found.text));
        };
        claims.push(Claim {
            place,
            literal,
            any_case,
            clause: None,
        });
    }
    Ok(claims)
}

/// The string constants of `sandbox/src/spec.rs`.
fn sandboxs_names(text: &str) -> Result<Vec<Claim>, String> {
    const FILE: &str = "sandbox/src/spec.rs";
    let source = Source::read(text);
    let mut claims = Vec::new();
    for found in &source.strings {
        let place = format!("{FILE}:{}", found.line);
        let before = source.before(found);
        if before.ends_with("concat!(") || before.ends_with("env!(") {
            // The deploy stamp: "the word holds no promise".
            continue;
        }
        if before.ends_with('(') {
            // A stage of a deploy: assumed, and the interface has no name for it.
            continue;
        }
        if !before.ends_with("&str =") {
            return Err(format!("{place}: what is {:?}?", found.text));
        }
        // Paths, values and comments are spelt exactly; header names in any case.
        let any_case = found.text.contains('-')
            && found.text.starts_with(|first: char| {
                first.is_ascii_uppercase() || found.text.starts_with("x-")
            });
        claims.push(Claim {
            place,
            literal: found.text.clone(),
            any_case,
            clause: None,
        });
    }
    Ok(claims)
}

#[test]
fn every_header_and_comment_that_bursar_spells_stands_in_the_interface() {
    let claims = bursars_names(&read("src/protocol/names.rs")).expect("known literals");
    assert!(claims.len() >= 24, "only {} literals", claims.len());
    assert_all_stand(&claims);
    assert_slips_are_seen(&claims);
}

#[test]
fn every_name_that_the_sandbox_spells_stands_in_the_interface() {
    let claims = sandboxs_names(&read("sandbox/src/spec.rs")).expect("known literals");
    assert!(claims.len() >= 28, "only {} literals", claims.len());
    assert_all_stand(&claims);
    assert_slips_are_seen(&claims);
}

#[test]
fn a_misspelt_literal_in_either_file_is_seen() {
    let page = super::Page::load();
    let planted = read("src/protocol/names.rs").replace(
        "\"frontier-would-have-cost\"",
        "\"frontier-would-have-costed\"",
    );
    let missing = page.missing(&bursars_names(&planted).expect("known literals"));
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0].literal, "x-service-frontier-would-have-costed");

    let planted =
        read("sandbox/src/spec.rs").replace("\"Idempotent-Replayed\"", "\"Idempotency-Replayed\"");
    let missing = page.missing(&sandboxs_names(&planted).expect("known literals"));
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(missing[0].literal, "Idempotency-Replayed");

    let stray = read("src/protocol/names.rs") + "\nconst STRAY: &str = \"x-stray\";\n";
    assert!(
        bursars_names(&stray).is_err(),
        "a literal of no kind passed"
    );
}

/// Words of the interface in the rest of bursar's protocol code, and the other words there.
const OTHER_FILES: [(&str, &[&str]); 5] = [
    ("src/protocol/body/answer.rs", &[]),
    (
        "src/protocol/body/field.rs",
        &["a JSON object", "a key", ""],
    ),
    // OpenAI's word, that asks for the chunk with usage.
    ("src/protocol/body/request.rs", &["include_usage"]),
    ("src/protocol/receipt.rs", &["header", "sse", "body"]),
    (
        "src/protocol/sse.rs",
        &[
            "data:[DONE]",
            ": ",
            "event:",
            "\"usage\"",
            "\r",
            " ",
            ":",
            "{",
            "",
        ],
    ),
];

#[test]
fn every_word_that_bursar_reads_from_a_body_stands_in_the_interface() {
    let mut claims = Vec::new();
    for (file, ours) in OTHER_FILES {
        for found in Source::read(&read(file)).strings {
            if !ours.contains(&found.text.as_str()) {
                claims.push(Claim {
                    place: format!("{file}:{}", found.line),
                    literal: found.text,
                    any_case: false,
                    clause: None,
                });
            }
        }
    }
    assert!(claims.len() >= 25, "only {} literals", claims.len());
    assert_all_stand(&claims);
}

/// A row of the interface's route table: method and path, ids as `{}`.
fn interface_routes() -> Vec<(String, String)> {
    let page = read("docs/interface.md");
    let rows = page.lines().filter(|line| line.starts_with("| ROUTE-"));
    rows.map(|row| {
        let mut code = row.split('`').skip(1).step_by(2);
        let method = code.next().expect("a method").to_owned();
        let path = code.next().expect("a path");
        let segments = path
            .split('/')
            .map(|segment| match segment.starts_with('{') {
                true => "{}",
                false => segment,
            });
        (method, segments.collect::<Vec<_>>().join("/"))
    })
    .collect()
}

#[test]
fn the_route_table_is_the_interfaces_row_by_row() {
    let mut wanted = interface_routes();
    assert_eq!(wanted.len(), 36);
    // Assumed: what an endpoint's `url` leads to.
    assert!(read("docs/interface.md").contains("the address for inference in OpenAI's format"));
    let at_url = "/v1/endpoints/{}/chat/completions";
    wanted.push(("POST".to_owned(), at_url.to_owned()));
    let table = RouteTable::untranslated(&[]);
    let mut given: Vec<(String, String)> = table
        .rows()
        .iter()
        .map(|row| (row.method.to_string(), row.pattern.to_owned()))
        .collect();
    wanted.sort();
    given.sort();
    assert_eq!(given, wanted);
}

#[test]
fn the_keyed_routes_are_those_of_the_interface() {
    let page = read("docs/interface.md");
    let row = page
        .lines()
        .find(|line| line.starts_with("| IDEM-4 "))
        .expect("the clause");
    let mut wanted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
    let table = RouteTable::untranslated(&[]);
    let mut given: Vec<&str> = table
        .rows()
        .iter()
        .filter(|row| row.keyed)
        .map(|row| row.pattern)
        .collect();
    wanted.sort_unstable();
    given.sort_unstable();
    assert_eq!(given, wanted);
}
