use proptest::prelude::*;

use super::*;
use crate::money::MicroUsd;
use crate::protocol::Reported;

fn scanned(body: &[u8], chunk: usize) -> AnswerPeek {
    let mut scanner = JsonFieldScanner::default();
    for chunk in body.chunks(chunk.max(1)) {
        scanner.feed(chunk);
    }
    scanner.peek()
}

#[test]
fn fields_behind_megabytes_are_found_in_any_chunking() {
    let sound = "UklGRg".repeat(400_000);
    let body = format!(
        r#"{{"audio_base64":"{sound}","said":"a \" }} \\","nested":[{{"duration_s":9}},"],"],
            "duration_s" : 12.345, "usage":{{"prompt_tokens":3,"completion_tokens":4}}}}"#
    );
    for chunk in [1, 7, 16 * 1024, body.len()] {
        let peek = scanned(body.as_bytes(), chunk);
        assert_eq!(peek.audio_ms, Some(12_345), "{chunk}");
        assert_eq!(peek.usage.prompt_tokens, Some(3), "{chunk}");
    }
}

/// The same three kinds of nothing as of an answer that is read whole (rule I5).
#[test]
fn a_price_is_the_one_of_the_top_level_or_none() {
    let cost_of = |body: &str| scanned(body.as_bytes(), 3).cost_micro_usd;
    let seven = Reported::Value(MicroUsd::new(7));

    assert_eq!(cost_of(r#"{"content":"…","cost_micro_usd":7}"#), seven);
    assert_eq!(cost_of(r#"{"cost_micro\u005fusd":7}"#), seven);
    assert_eq!(cost_of(r#"{"cost_micro_usd":7,"cost_micro_usd":7}"#), seven);
    assert_eq!(
        cost_of(r#"{"cost_micro_usd":7,"cost_micro_usd":8}"#),
        Reported::Malformed
    );
    assert_eq!(cost_of(r#"{"cost_micro_usd":7.5}"#), Reported::Malformed);
    assert_eq!(
        cost_of(r#"{"content":"{\"cost_micro_usd\":7}"}"#),
        Reported::Absent
    );
    assert_eq!(
        cost_of(r#"{"more":{"cost_micro_usd":7}}"#),
        Reported::Absent
    );
    assert_eq!(cost_of(r#"{"cost_micro_usd":null}"#), Reported::Absent);
}

#[test]
fn nothing_is_read_from_what_is_no_whole_object() {
    for body in [
        r#"{"duration_s":1"#,
        r#"{"duration_s":1}}"#,
        r#"[{"duration_s":1}]"#,
        r#"{"duration_s":1]"#,
        r#"{"duration_s":}"#,
        r#"{"duration_s" 1}"#,
        r#""duration_s":1"#,
        "",
    ] {
        assert_eq!(scanned(body.as_bytes(), 2), AnswerPeek::default(), "{body}");
    }
}

#[test]
fn a_member_that_wants_too_much_room_costs_none() {
    let mut scanner = JsonFieldScanner::default();
    scanner.feed(br#"{"run_id":""#);
    for _ in 0..1_000 {
        scanner.feed(&[b'x'; 1_024]);
    }
    assert!(scanner.kept.capacity() <= 2 * KEPT_BYTES_MAX);
    scanner.feed(br#"","duration_s":1}"#);
    assert_eq!(scanner.peek(), AnswerPeek::default());

    let mut scanner = JsonFieldScanner::default();
    scanner.feed(b"{\"");
    for _ in 0..1_000 {
        scanner.feed(&[b'k'; 1_024]);
    }
    assert!(scanner.key.capacity() <= 2 * KEY_BYTES_MAX);
    scanner.feed(br#"":1,"duration_s":1}"#);
    assert_eq!(scanner.peek().audio_ms, Some(1_000));
}

/// A document of the names that are looked for, and others.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        (0u64..2_000_000).prop_map(serde_json::Value::from),
        (0.0f64..1e6).prop_map(serde_json::Value::from),
        r#"[a-z{}\[\],:"\\ é\n]{0,12}"#.prop_map(serde_json::Value::from),
    ];
    let name = prop_oneof![
        Just("duration_s".to_owned()),
        Just("cost_micro_usd".to_owned()),
        Just("run_id".to_owned()),
        Just("run".to_owned()),
        Just("id".to_owned()),
        Just("status".to_owned()),
        Just("usage".to_owned()),
        Just("prompt_tokens".to_owned()),
        r#"[a-z"\\:]{0,6}"#,
    ];
    let value = leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::hash_map(name.clone(), inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    });
    value.prop_filter("an object", serde_json::Value::is_object)
}

proptest! {
    #[test]
    fn scanning_finds_what_reading_finds(document in document(), chunk in 1usize..40, pretty in any::<bool>()) {
        let body = if pretty {
            serde_json::to_vec_pretty(&document)
        } else {
            serde_json::to_vec(&document)
        };
        let body = body.unwrap();
        prop_assert_eq!(scanned(&body, chunk), AnswerPeek::read(&body));
    }

    #[test]
    fn sieving_never_fails(body in proptest::collection::vec(any::<u8>(), 0..200), chunk in 1usize..40) {
        scanned(&body, chunk);
    }
}
