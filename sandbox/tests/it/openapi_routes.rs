//! The OpenAPI document against the router and against the interface's table of errors.
//!
//! If the document omits a route or a status, so does every client generated from it.
//! Promise: a route, a method or a tabled status that is in one place only fails here.

use crate::support::*;
use bursar_sandbox::openapi::DOCUMENT;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Routes of the metrics of an endpoint: one in the router, five in the interface.
const METRICS: [&str; 5] = ["performance", "uptime", "cost", "quality", "activity"];

/// Path to method to operation.
fn operations() -> BTreeMap<String, BTreeMap<String, Value>> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let methods = |members: &Value| {
        let members = members.as_object().unwrap().iter();
        members
            .map(|(method, operation)| (method.to_uppercase(), operation.clone()))
            .collect()
    };
    paths
        .iter()
        .map(|(path, members)| (path.clone(), methods(members)))
        .collect()
}

fn documented() -> BTreeSet<(String, String)> {
    let operations = operations().into_iter();
    operations
        .flat_map(|(path, methods)| {
            methods
                .into_keys()
                .map(move |method| (method, path.clone()))
        })
        .collect()
}

/// The literal behind a name like `spec::CHAT` or `ENDPOINT_CHAT`, or the literal itself.
fn literal(word: &str) -> String {
    if let Some(text) = word.strip_prefix('"') {
        return text.trim_end_matches('"').to_owned();
    }
    let name = word.rsplit("::").next().unwrap();
    let start = format!("const {name}: &str = \"");
    let sources = [
        include_str!("../../src/spec.rs"),
        include_str!("../../src/routes.rs"),
    ];
    let found = sources.iter().find_map(|source| {
        let (_, rest) = source.split_once(&start)?;
        rest.split_once('"')
    });
    found
        .unwrap_or_else(|| panic!("{name} has no literal"))
        .0
        .to_owned()
}

/// Method and path of every `.route(…)` of the router's source, the document itself left out.
fn routed() -> BTreeSet<(String, String)> {
    let source = include_str!("../../src/routes.rs");
    let mut found = BTreeSet::new();
    for call in source.split(".route(").skip(1) {
        // A path, then `get(…)`, `post(…).get(…)` and so on, until the next call on the router.
        let (path, handlers) = call.split_once(',').unwrap();
        let path = literal(path.trim());
        let handlers = handlers.split("\n        .").next().unwrap();
        for method in METHODS {
            let call = format!("{}(", method.to_lowercase());
            let called = handlers.match_indices(&call).any(|(at, _)| {
                let before = handlers[..at].chars().next_back();
                matches!(before, None | Some(' ' | '.' | '\n' | '('))
            });
            if called && path != "/openapi.json" {
                let paths = match path.strip_suffix("/{metric}") {
                    Some(stem) => METRICS.map(|one| format!("{stem}/{one}")).to_vec(),
                    None => vec![path.clone()],
                };
                found.extend(paths.into_iter().map(|path| (method.to_owned(), path)));
            }
        }
    }
    found
}

#[test]
fn the_document_has_the_routes_of_the_router_and_no_other() {
    let routed = routed();

    assert!(routed.len() > 35, "only {} were found", routed.len());
    assert_eq!(documented(), routed);
}

// Interface, Errors: what the sandbox serves is asked, too: the source could be read wrongly.
#[tokio::test]
async fn each_path_of_the_document_takes_its_methods_and_no_other() {
    let sandbox = Sandbox::start().await;
    for (path, methods) in operations() {
        let there = path.replace(['{', '}'], "");
        for method in METHODS {
            let reply = sandbox
                .send(method, &there, &[], Some(b"{}".to_vec()))
                .await;
            let what = format!("{method} {path}: {} {}", reply.status, reply.text());
            if methods.contains_key(method) {
                assert_ne!(reply.status, 405, "{what}");
                assert_ne!(
                    reply.header("x-sandbox-assumed"),
                    Some("unknown-route"),
                    "{what}"
                );
            } else {
                assert_eq!(reply.status, 405, "{what}");
            }
        }
    }
}

/// Interface, Errors: each row of the table, with the routes it is about. `…` stands for what begins so.
const TABLED: &[(&str, &[&str])] = &[
    (
        // "request validation failed; malformed JSON": every route with a JSON body or a form.
        "400",
        &[
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "POST /v1/tasks/match",
            "POST /v1/playground/frontier",
            "POST /v1/audio/…",
            "POST /v1/eval-sets",
            "POST /v1/eval-sets/{eval_set_id}/…",
            "POST /v1/eval-runs",
            "POST /v1/endpoints",
            "POST /v1/embeddings",
            "POST /v1/rerank",
            "POST /v1/images/…",
        ],
    ),
    (
        "401",
        &[
            "GET /v1/…",
            "POST /v1/…",
            "DELETE /v1/…",
            "GET /agent/…",
            "POST /agent/…",
        ],
    ),
    (
        // "organization balance empty (inference, eval runs, frontier comparison, speech)"
        "402",
        &[
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "POST /v1/endpoints/{endpoint_id}/chat/completions",
            "POST /v1/embeddings",
            "POST /v1/rerank",
            "POST /v1/images/…",
            "POST /v1/eval-runs",
            "POST /v1/playground/frontier",
            "POST /v1/audio/…",
        ],
    ),
    (
        "403",
        &[
            "GET /v1/…",
            "POST /v1/…",
            "DELETE /v1/…",
            "GET /agent/…",
            "POST /agent/…",
            "PUT /storage/…",
        ],
    ),
    (
        // "eval set, run, task or endpoint id not found; `model` not a recognized id …; agent surface not enabled"
        "404",
        &[
            "GET /v1/tasks/{task_id}",
            "GET /v1/eval-sets/{eval_set_id}",
            "DELETE /v1/eval-sets/{eval_set_id}",
            "POST /v1/eval-sets/{eval_set_id}/…",
            "POST /v1/eval-runs",
            "GET /v1/eval-runs/{run_id}",
            "GET /v1/endpoints/{endpoint_id}…",
            "POST /v1/endpoints/{endpoint_id}/…",
            "DELETE /v1/endpoints/{endpoint_id}",
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "GET /agent/v1/models",
        ],
    ),
    (
        // "transient lock or contention; same Idempotency-Key still running …; … conflict on deploy"
        "409",
        &[
            "POST /v1/chat/completions",
            "POST /v1/images/…",
            "POST /v1/endpoints",
            "DELETE /v1/eval-sets/{eval_set_id}",
            "POST /v1/eval-sets/{eval_set_id}/attach-blob",
        ],
    ),
    ("413", &["GET …", "POST …", "DELETE …", "PUT …"]),
    (
        // "validation failure; Idempotency-Key reused with a different body, endpoint, session or RTE-query header"
        "422",
        &[
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "POST /v1/embeddings",
            "POST /v1/rerank",
            "POST /v1/images/…",
            "POST /v1/tasks/match",
            "POST /v1/playground/frontier",
            "POST /v1/audio/…",
            "POST /v1/eval-sets",
            "POST /v1/eval-runs",
        ],
    ),
    (
        // "concurrency ceiling exceeded … or rate ceiling exceeded": inference.
        "429",
        &[
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "POST /v1/endpoints/{endpoint_id}/chat/completions",
            "POST /v1/embeddings",
            "POST /v1/rerank",
            "POST /v1/images/…",
        ],
    ),
    (
        // "no serving path could complete the request …; frontier comparison vendor failure"
        "502",
        &[
            "POST /v1/chat/completions",
            "POST /agent/v1/chat/completions",
            "POST /v1/endpoints/{endpoint_id}/chat/completions",
            "POST /v1/playground/frontier",
        ],
    ),
    ("500", &["GET …", "POST …", "DELETE …", "PUT …"]),
    ("503", &["GET …", "POST …", "DELETE …", "PUT …"]),
];

fn is_meant(pattern: &str, route: &str) -> bool {
    match pattern.strip_suffix('…') {
        Some(start) => route.starts_with(start),
        None => route == pattern,
    }
}

// Interface, Errors: the statuses.
#[test]
fn every_status_that_the_interface_tables_for_a_route_is_documented_there() {
    let mut missing = Vec::new();
    let mut pairs = 0;
    for (path, methods) in operations() {
        for (method, operation) in methods {
            let route = format!("{method} {path}");
            for (status, patterns) in TABLED {
                if patterns.iter().any(|pattern| is_meant(pattern, &route)) {
                    pairs += 1;
                    if operation["responses"].get(status).is_none() {
                        missing.push(format!("{route}: {status}"));
                    }
                }
            }
        }
    }
    assert!(pairs > 250, "only {pairs} pairs were looked at");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    for (status, patterns) in TABLED {
        for pattern in *patterns {
            let used = documented()
                .iter()
                .any(|(method, path)| is_meant(pattern, &format!("{method} {path}")));
            assert!(used, "{status}: no route is {pattern}");
        }
    }
}

// Interface, Errors 402: what is not inference, a run, the comparison or speech never says it.
#[test]
fn no_route_that_is_free_is_documented_with_402() {
    let (_, metered) = TABLED.iter().find(|(status, _)| *status == "402").unwrap();
    for (path, methods) in operations() {
        for (method, operation) in methods {
            let route = format!("{method} {path}");
            if !metered.iter().any(|pattern| is_meant(pattern, &route)) {
                assert!(operation["responses"].get("402").is_none(), "{route}");
            }
        }
    }
}

// Interface, Events: "No webhooks or outbound event notifications are shown in the material."
#[test]
fn the_document_announces_no_webhook_and_no_callback() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    assert_eq!(document.get("webhooks"), None);
    for (path, methods) in operations() {
        for (method, operation) in methods {
            assert_eq!(operation.get("callbacks"), None, "{method} {path}");
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        let members = schema["properties"].as_object().into_iter().flatten();
        for (member, _) in members {
            let lowercase = member.to_lowercase();
            assert!(
                !lowercase.contains("webhook") && !lowercase.contains("callback"),
                "{name}.{member}"
            );
        }
    }
    assert_eq!(document["components"].get("callbacks"), None);
    assert_eq!(document["openapi"], json!("3.1.0"));
}
