use super::*;
use serde_json::json;

#[test]
fn a_rule_meets_what_it_names_as_often_as_it_says() {
    let rule = json!({"match": {"path": "/v1/*", "stream": true}, "times": 2, "skip": 1, "fault": {"status": 503}});
    let faults = Faults::new(vec![serde_json::from_value(rule).unwrap()]);
    let take = |path, body: &str| {
        faults
            .take(&RequestFacts {
                method: "POST",
                path,
                body: body.as_bytes(),
                idempotency_key: None,
            })
            .status
    };

    assert_eq!(
        take("/agent/v1/chat/completions", r#"{"stream":true}"#),
        None
    );
    assert_eq!(take("/v1/chat/completions", "{}"), None);
    let streams: Vec<_> = (0..4)
        .map(|_| take("/v1/chat/completions", r#"{"stream":true}"#))
        .collect();
    assert_eq!(streams, [None, Some(503), Some(503), None]);
}

#[test]
fn a_fault_that_cannot_work_is_refused_by_its_name() {
    for (fault, name) in [
        (json!({"status": 99}), "status"),
        (json!({"status": 101}), "status"),
        (json!({"status": 600}), "status"),
        (json!({"status": 503, "retry_after": "1\n2"}), "retry_after"),
        (json!({"retry_after_ms": "\r"}), "retry_after_ms"),
        (json!({"x_should_retry": "\u{0}"}), "x_should_retry"),
        (json!({"content_type": "text/html\n"}), "content_type"),
        (json!({"receipt": {"billed": "1\n2"}}), "receipt"),
        (json!({"deploy_fails_at": "warmed"}), "deploy_fails_at"),
        (json!({"deploy_fails_at": ""}), "deploy_fails_at"),
    ] {
        let rule: FaultRule = serde_json::from_value(json!({"fault": fault})).unwrap();
        let wrong = rule.check().unwrap_err();
        assert!(
            wrong.starts_with(&format!("fault.{name}")),
            "{fault}: {wrong}"
        );
    }
    for fault in [
        json!({}),
        json!({"status": 299, "retry_after": "soon", "receipt": {"billed": "12x", "served_by": null}}),
        json!({"deploy_fails_at": "warming"}),
    ] {
        let rule: FaultRule = serde_json::from_value(json!({"fault": fault})).unwrap();
        assert_eq!(rule.check(), Ok(()), "{fault}");
    }
}

#[test]
fn a_misspelt_fault_is_refused() {
    let rule = json!({"fault": {"cut_after_chunk": 3}});

    assert!(serde_json::from_value::<FaultRule>(rule).is_err());
}

#[test]
fn a_rule_for_a_turn_meets_the_turn_of_the_conversation_and_its_repeats() {
    let rule = json!({"match": {"turn": 2}, "times": 0, "fault": {"status": 503}});
    let faults = Faults::new(vec![serde_json::from_value(rule).unwrap()]);
    let met = |body: &str| {
        let seen = RequestFacts {
            method: "POST",
            path: "/agent/v1/chat/completions",
            body: body.as_bytes(),
            idempotency_key: None,
        };
        faults.take(&seen).status.is_some()
    };
    let user = r#"{"role":"user","content":"x"}"#;
    let assistant = r#"{"role":"assistant","content":"y"}"#;

    for (messages, wanted) in [
        (vec![user], false),
        (vec![user, assistant, user], true),
        (vec![user, assistant, user], true),
        (vec![user, assistant, user, assistant, user], false),
    ] {
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        assert_eq!(met(&body), wanted, "{body}");
    }
    for body in ["", "[]", r#"{"messages":1}"#] {
        assert!(!met(body), "{body}");
    }
}
