//! What the table holds and what it refuses.

use http::Method;

use super::{AnswerKind, ExtraRoute, Lookup, RouteTable, TRANSLATIONS};
use crate::protocol::{Dialect, Operation};

fn found(method: Method, path: &str) -> Option<Operation> {
    match RouteTable::new(&[]).look_up(&method, path) {
        Lookup::Found(route) => Some(route.operation),
        Lookup::OtherMethods(_) | Lookup::Unknown => None,
    }
}

#[test]
fn exactly_the_six_routes_that_honor_a_key_are_keyed() {
    let table = RouteTable::untranslated(&[]);
    let keyed: Vec<_> = table
        .rows()
        .iter()
        .filter(|row| row.keyed)
        .map(|row| row.pattern)
        .collect();
    let expected = [
        "/v1/chat/completions",
        "/agent/v1/chat/completions",
        "/v1/embeddings",
        "/v1/rerank",
        "/v1/images/generations",
        "/v1/images/edits",
    ];
    assert_eq!(keyed, expected);
}

#[test]
fn a_translated_route_has_every_rule_of_the_route_that_it_is_sent_to() {
    let table = RouteTable::new(&[]);
    let translated: Vec<_> = table
        .rows()
        .iter()
        .filter_map(|row| Some((row, row.translation?)))
        .collect();
    assert_eq!(translated.len(), TRANSLATIONS.len());
    for (row, translation) in translated {
        let Lookup::Found(to) = table.look_up(&row.method, translation.to) else {
            panic!("{}: no route {}", row.pattern, translation.to);
        };
        assert_eq!(to.translation, None, "{}", row.pattern);
        assert_eq!(row.costs, to.costs);
        if translation.dialect == Dialect::Chat {
            // One of a list, asked for by its id.
            assert!(!row.is_metered(), "{row:?}");
            continue;
        }
        assert!(row.keyed && row.is_metered() && row.auto_model, "{row:?}");
        assert_eq!(row.retry, to.retry);
        assert_eq!(row.receipt, to.receipt);
        assert_eq!((row.lane, row.operation), (to.lane, to.operation));
        // It is asked for whole.
        assert_eq!(row.answer, AnswerKind::Json);
        assert_eq!(table.dialect(row.pattern), translation.dialect);
    }
    assert_eq!(table.dialect("/v1/chat/completions"), Dialect::Chat);
}

#[test]
fn no_unkeyed_metered_route_is_repeated_once_it_may_have_run() {
    for row in RouteTable::new(&[]).rows() {
        if row.is_metered() && !row.keyed {
            assert!(
                !row.retry.no_head && !row.retry.broken && !row.retry.transient,
                "{row:?}"
            );
        }
    }
}

#[test]
fn head_is_allowed_where_get_is() {
    assert_eq!(found(Method::HEAD, "/v1/models"), Some(Operation::Models));
    assert_eq!(found(Method::HEAD, "/v1/chat/completions"), None);
}

#[test]
fn a_path_is_matched_byte_by_byte() {
    let refused = [
        "/v1/models/",
        "//v1/models",
        "/V1/models",
        "/v1/eval-sets/",
        "/v1/eval-sets/{}",
        "/v1/eval-sets/..",
        "/v1/eval-sets/.",
        "/v1/eval-sets/a%2fb",
        "/v1/eval-sets/a;b",
        "/v1/eval-sets/a b",
        "/v1/endpoints/x/secrets",
        "/v1",
        "",
    ];
    for path in refused {
        assert_eq!(found(Method::GET, path), None, "{path}");
    }
    assert_eq!(
        found(Method::GET, "/v1/eval-sets/es_1.2~x-Y"),
        Some(Operation::EvalSets)
    );
    let long = format!("/v1/eval-sets/{}", "a".repeat(129));
    assert_eq!(found(Method::GET, &long), None);
}

#[test]
fn a_models_id_is_what_is_left_of_the_path_however_it_is_spelled() {
    let long = "a".repeat(256);
    for (spelled, id) in [
        ("auto", Some("auto")),
        ("llama3.1:8b", Some("llama3.1:8b")),
        ("llama3.1%3A8b", Some("llama3.1:8b")),
        ("anthropic/claude-x", Some("anthropic/claude-x")),
        ("anthropic%2Fclaude-x", Some("anthropic/claude-x")),
        ("claude-opus[1m]", Some("claude-opus[1m]")),
        ("claude-opus%5B1m%5D", Some("claude-opus[1m]")),
        ("a%20b", Some("a b")),
        ("%C3%A9", Some("é")),
        ("{model}", Some("{model}")),
        (&long, Some(&*long)),
        ("", None),
        ("a/", None),
        ("a%2f", None),
        ("/a", None),
        ("a//b", None),
        ("a/./b", None),
        ("..", None),
        ("..%2fchat%2fcompletions", None),
        ("%2e%2e", None),
        ("a%00", None),
        ("a%0d%0aX:y", None),
        ("a%5cb", None),
        ("a\\b", None),
        ("%ff", None),
        (&format!("{long}a"), None),
    ] {
        for before in ["/v1/models/", "/agent/v1/models/"] {
            let path = format!("{before}{spelled}");
            let table = RouteTable::new(&[]);
            let found = match table.look_up(&Method::GET, &path) {
                Lookup::Found(route) => route.model_id(&path),
                Lookup::OtherMethods(_) | Lookup::Unknown => None,
            };
            assert_eq!(found.as_deref(), id, "{path}");
        }
    }
}

#[test]
fn a_known_path_names_its_methods() {
    let table = RouteTable::new(&[]);
    match table.look_up(&Method::PUT, "/v1/eval-sets") {
        Lookup::OtherMethods(methods) => assert_eq!(methods, [Method::POST, Method::GET]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_configured_route_is_metered_unkeyed_and_tried_again_only_when_not_sent() {
    let extra = ExtraRoute {
        method: Method::POST,
        path: "/v1/x".into(),
    };
    let table = RouteTable::new(&[extra]);
    match table.look_up(&Method::POST, "/v1/x") {
        Lookup::Found(row) => {
            assert!(row.is_metered() && !row.keyed && row.retry.not_sent && !row.retry.busy);
        }
        other => panic!("{other:?}"),
    }
}

/// A comparison names vendors' models, a deploy a base model: an alias would change the request.
#[test]
fn aliases_apply_where_the_model_is_auto_and_nowhere_else() {
    let table = RouteTable::new(&[ExtraRoute {
        method: Method::POST,
        path: "/v1/x".to_owned(),
    }]);
    for row in table.rows() {
        assert_eq!(row.auto_model, row.keyed, "{row:?}");
    }
    let extra = table.look_up(&Method::POST, "/v1/x");
    assert!(matches!(extra, Lookup::Found(row) if !row.auto_model));
}

#[test]
fn a_route_that_the_operator_relays_as_it_is_is_not_translated() {
    let table = RouteTable::new(&[ExtraRoute {
        method: Method::POST,
        path: "/v1/responses".to_owned(),
    }]);
    let found = table.look_up(&Method::POST, "/v1/responses");
    assert!(matches!(found, Lookup::Found(row) if row.operation == Operation::Extra));
    assert_eq!(table.dialect("/v1/responses"), Dialect::Chat);
    assert_eq!(table.dialect("/agent/v1/responses"), Dialect::Responses);
}
