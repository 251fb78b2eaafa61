//! The OpenAPI document: whole, sound in itself, and true to the interface.

use crate::{doors::ROUTES, support::*};
use bursar_sandbox::openapi::DOCUMENT;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

/// Method and path of every operation.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap();
            methods
                .iter()
                .map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
        })
        .collect()
}

/// Every object in it that has this member.
fn having<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Map<String, Value>>) {
    match value {
        Value::Object(members) => {
            if members.contains_key(name) {
                found.push(members);
            }
            members
                .values()
                .for_each(|inner| having(inner, name, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| having(inner, name, found)),
        _ => {}
    }
}

/// A path with its parameters made equal.
fn shape(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "id" => "{}",
        segment if segment.starts_with('{') => "{}",
        segment => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn the_document_is_served_without_a_key() {
    let sandbox = Sandbox::start().await;
    let none = [("Authorization", "")];

    let reply = sandbox.send("GET", "/openapi.json", &none, None).await;

    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(reply.json()["openapi"], "3.1.0");
}

// Interface, Route table.
#[test]
fn every_route_of_the_interface_is_in_the_document() {
    let documented: BTreeSet<(String, String)> = operations(&document())
        .into_iter()
        .map(|(method, path, _)| (method, shape(&path)))
        .collect();

    for (method, path) in ROUTES {
        let wanted = ((*method).to_owned(), shape(path));
        assert!(documented.contains(&wanted), "{method} {path}");
    }
}

#[test]
fn the_routes_the_tests_know_are_those_of_the_written_route_table() {
    let text = include_str!("../../../docs/interface.md");
    let mut written = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| ROUTE-")) {
        let cells: Vec<&str> = line
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        written.insert((cells[2].to_owned(), shape(cells[3])));
    }

    let known: BTreeSet<_> = ROUTES
        .iter()
        .map(|(method, path)| ((*method).to_owned(), shape(path)))
        .collect();

    assert_eq!(known, written);
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
    let document = document();
    let mut references = Vec::new();
    having(&document, "$ref", &mut references);
    assert!(references.len() > 300);
    for members in references {
        let to = members["$ref"].as_str().unwrap();
        let pointer = to.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{to}");
    }
    let all = operations(&document);
    let ids: BTreeSet<_> = all
        .iter()
        .map(|(_, _, one)| one["operationId"].to_string())
        .collect();
    assert_eq!(ids.len(), all.len());
}

// Interface, Errors; Interface, Authentication.
#[test]
fn every_operation_lists_the_errors_of_every_route_and_how_to_retry() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let open = operation["security"] == json!([]);
        for status in ["401", "403", "405", "413", "500", "503"] {
            assert!(
                responses.contains_key(status) || open,
                "{method} {path} {status}"
            );
        }
        assert!(
            responses.keys().any(|status| status.starts_with('2')),
            "{method} {path}"
        );
    }
    for status in ["409", "429", "503"] {
        let pointer = format!("/components/responses/E{status}/headers/Retry-After");
        assert!(document.pointer(&pointer).is_some(), "{status}");
    }
}

#[test]
fn every_example_is_valid_by_its_own_schema() {
    let document = document();
    let mut media = Vec::new();
    having(&document, "example", &mut media);
    assert!(media.len() > 50);
    for members in media {
        // The components come along, so that references inside the schema lead somewhere.
        let schema = json!({"allOf": [members["schema"]], "components": document["components"]});
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let example = &members["example"];
        let errors: Vec<String> = validator
            .iter_errors(example)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{example}: {errors:?}");
    }
}

#[test]
fn a_wrong_example_would_be_seen() {
    let document = document();
    let schema = json!({
        "$ref": "#/components/schemas/ChatRequest",
        "components": document["components"],
    });
    let validator = jsonschema::draft202012::new(&schema).unwrap();

    assert!(validator.is_valid(&ask("hi")));
    assert!(!validator.is_valid(&with(ask("hi"), "messages", json!([]))));
    assert!(!validator.is_valid(&with(ask("hi"), "model", json!("gpt"))));
    assert!(!validator.is_valid(&with(ask("hi"), "colour", json!("red"))));
}

// Interface, Metering rules: no balance or payment route exists. Interface, Endpoints: no hardware knob exists.
#[test]
fn nothing_in_the_document_chooses_hardware_or_takes_payment() {
    let document = document();
    let mut objects = Vec::new();
    having(&document, "properties", &mut objects);
    let members = objects.iter().flat_map(|one| {
        one["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
    });
    let mut names: Vec<String> = members.cloned().collect();
    assert!(names.len() > 150);
    let mut parameters = Vec::new();
    having(
        &document["components"]["parameters"],
        "name",
        &mut parameters,
    );
    names.extend(parameters.iter().map(|one| one["name"].to_string()));
    names.extend(document["paths"].as_object().unwrap().keys().cloned());

    for name in names.iter().map(|name| name.to_lowercase()) {
        for word in [
            "gpu",
            "hardware",
            "accelerator",
            "instance",
            "balance",
            "payment",
            "top-up",
            "topup",
            "credit",
        ] {
            assert!(!name.contains(word), "{name}");
        }
    }
}
