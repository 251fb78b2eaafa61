use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn edited(body: &str) -> Option<String> {
    without_stream(body.as_bytes()).map(|edited| String::from_utf8(edited).unwrap())
}

#[test]
fn only_the_wish_for_a_stream_changes() {
    // Body; the same without the wish.
    let table = [
        (r#"{"stream":true}"#, r#"{"stream":false}"#),
        (
            "{ \"a\":1.50,\n\t\"stream\" : true , \"z\":[ ] }\n",
            "{ \"a\":1.50,\n\t\"stream\" : false , \"z\":[ ] }\n",
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true},"z":1}"#,
            r#"{"stream":false,"z":1}"#,
        ),
        (
            r#"{"stream_options": {"a":"}"} , "stream":true}"#,
            r#"{ "stream":false}"#,
        ),
        (
            "{\"a\":1,\"stream\":true ,\n \"stream_options\" : null\n}",
            "{\"a\":1,\"stream\":false \n}",
        ),
        (
            r#"{"a":1 , "stream_options":{},"stream":true}"#,
            r#"{"a":1 , "stream":false}"#,
        ),
        (
            r#"{"str\u0065am":true,"str\u0065am_options":{},"messages":[{"stream":true,"stream_options":1}]}"#,
            r#"{"str\u0065am":false,"messages":[{"stream":true,"stream_options":1}]}"#,
        ),
        (
            r#"{"x":"\"stream_options\":{},","stream_options":{},"stream":true}"#,
            r#"{"x":"\"stream_options\":{},","stream":false}"#,
        ),
    ];
    for (body, wanted) in table {
        assert_eq!(edited(body).as_deref(), Some(wanted), "{body}");
    }
}

#[test]
fn a_body_without_one_clear_wish_stays() {
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"stream":false}"#,
        r#"{"stream":"true"}"#,
        r#"{"stream":1}"#,
        r#"{"stream":null,"stream_options":{}}"#,
        r#"{"messages":[{"stream":true}]}"#,
        r#"{"stream":true,"stream":true}"#,
        r#"{"stream":false,"stream":true}"#,
        r#"{"stream":true,"stream_options":{},"stream_options":{}}"#,
        r#"{"stream":true,"stream_options":5}"#,
        r#"{"stream":true,"stream_options":"include_usage"}"#,
        r#"{"stream":true,"stream_options":{"include_usage":"yes"}}"#,
        r#"{"stream":true"#,
        r#"{"stream":true} x"#,
    ] {
        assert_eq!(edited(body), None, "{body}");
    }
}

proptest! {
    #[test]
    fn every_other_member_stays(
        keys in proptest::collection::vec("[a-z\"\\\\]{1,4}", 0..4),
        text in any::<String>(),
        stream_at in 0usize..5,
        options_at in proptest::option::of(0usize..6),
    ) {
        let mut members: Vec<(String, Value)> =
            keys.into_iter().map(|key| (key, json!({"t": text}))).collect();
        members.dedup_by(|one, other| one.0 == other.0);
        members.insert(stream_at.min(members.len()), ("stream".into(), json!(true)));
        if let Some(at) = options_at {
            members.insert(at.min(members.len()), ("stream_options".into(), json!({"t": text})));
        }
        let written = |members: &[(String, Value)]| {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{} : {value}", json!(key)))
                .collect();
            format!("{{ {} }}", members.join(" , "))
        };
        let found: Value = serde_json::from_str(&edited(&written(&members)).unwrap()).unwrap();

        members.retain(|(key, _)| key != "stream_options");
        for (key, value) in &mut members {
            if key == "stream" {
                *value = json!(false);
            }
        }
        let wanted: Value = serde_json::from_str(&written(&members)).unwrap();
        prop_assert_eq!(found, wanted);
    }
}
