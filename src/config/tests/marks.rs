//! What an app says of its requests for its own accounts: which headers, which tags, which limits of sessions.

use super::*;
use crate::config::{SessionLimits, TagValue};
use crate::money::MicroUsd;

#[test]
fn sessions_users_and_tags_are_what_the_apps_table_says() {
    let place = Fixture::new();
    let config = place
        .load(
            r#"
            [[app]]
            name = "default"
            session_header = "X-Conversation"
            session_cap_micro_usd = 0
            session_requests_max = 7
            user_header = "x-end-user"
            tags = ["customer", "feature_2"]
            tag_metrics = ["customer=a=b", "customer=acme"]
            "#,
        )
        .unwrap();
    let value = |value: &str| TagValue {
        key: "customer".parse().unwrap(),
        value: value.to_owned(),
    };
    let app = App {
        session_header: Some("x-conversation".parse().unwrap()),
        session: SessionLimits {
            cap: Some(MicroUsd::ZERO),
            requests: Some(7),
        },
        user_header: Some("x-end-user".parse().unwrap()),
        tags: ["customer", "feature_2"]
            .map(|key| key.parse().unwrap())
            .to_vec(),
        tag_metrics: vec![value("a=b"), value("acme")],
        ..App::new("default")
    };
    assert_eq!(config.apps, [app]);
}

#[test]
fn a_mistake_in_them_is_named() {
    let place = Fixture::new();
    let keys: Vec<String> = (0..9).map(|number| format!("\"k{number}\"")).collect();
    let keys = format!("tags = [{}]", keys.join(", "));
    let values: Vec<String> = (0..17).map(|number| format!("\"a={number}\"")).collect();
    let values = format!("tags = [\"a\"]\ntag_metrics = [{}]", values.join(", "));
    for (lines, part) in [
        ("session_header = \"a b\"", "\"a b\" is no name of a header"),
        (
            "user_header = \"Authorization\"",
            "authorization means something else",
        ),
        ("session_requests_max = -1", "session_requests_max"),
        ("tags = [\"Customer\"]", "the key of a tag is 1 to 32"),
        ("tags = [\"a\", \"a\"]", "the key a stands twice"),
        (keys.as_str(), "at most 8 keys"),
        (
            "tag_metrics = [\"B=c\"]",
            "\"B\": the key of a tag is 1 to 32",
        ),
        (
            "tags = [\"a\"]\ntag_metrics = [\"a\"]",
            "\"a\" is not KEY=VALUE",
        ),
        (
            "tags = [\"a\"]\ntag_metrics = [\"a=x,y\"]",
            "no value that a tag can have",
        ),
        (values.as_str(), "at most 16 values of a"),
    ] {
        let found = place
            .load(&format!("[[app]]\nname = \"default\"\n{lines}\n"))
            .unwrap_err();
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert!(found[0].contains(part), "{lines}: {found:?}");
    }
}
