use super::*;

fn of(body: &str) -> Fingerprint {
    Fingerprint::of("/v1/chat/completions", body.as_bytes(), None, None)
}

fn same(one: &str, two: &str) -> bool {
    of(one).is_same_as(&of(two))
}

#[test]
fn key_order_and_white_space_do_not_count_and_everything_else_does() {
    let base = r#"{"a":1,"b":[1,{"c":"x","d":null}]}"#;

    assert!(same(
        base,
        "{ \"b\" : [1, {\"d\":null,\n\"c\":\"x\"}], \"a\": 1 }"
    ));
    assert!(!same(base, r#"{"a":1,"b":[{"c":"x","d":null},1]}"#));
    assert!(!same(base, r#"{"a":"1","b":[1,{"c":"x","d":null}]}"#));
    assert!(!same(r#"{"a":" "}"#, r#"{"a":""}"#));
}

#[test]
fn numbers_beyond_64_bits_and_long_fractions_are_told_apart() {
    for (one, two) in [
        ("36893488147419103232", "36893488147419103233"),
        ("9007199254740993.0", "9007199254740992.0"),
        (
            "-170141183460469231731687303715884105728",
            "-170141183460469231731687303715884105729",
        ),
        ("0.1", "0.1000000000000000000001"),
    ] {
        assert!(!same(one, two), "{one} {two}");
        let body = |seed: &str| format!("{{\"seed\": {seed}}}");
        assert!(!same(&body(one), &body(two)), "{one} {two}");
        assert!(same(&body(one), &body(&format!(" {one} "))), "{one}");
    }
}

#[test]
fn endpoint_session_and_rte_query_count() {
    let of = |endpoint, session: Option<&str>, rte: Option<&str>| {
        Fingerprint::of(
            endpoint,
            b"{}",
            session.map(str::as_bytes),
            rte.map(str::as_bytes),
        )
    };
    let base = of("/v1/chat/completions", None, None);

    assert!(!base.is_same_as(&of("/agent/v1/chat/completions", None, None)));
    assert!(!base.is_same_as(&of("/v1/chat/completions", Some("a"), None)));
    assert!(!of("/x", Some("a"), None).is_same_as(&of("/x", None, Some("a"))));
}

#[test]
fn a_form_is_its_parts_in_their_order() {
    let image = FormPart {
        name: "image",
        file_name: Some("a.png"),
        content_type: Some("image/png"),
        bytes: b"x",
    };
    let prompt = FormPart {
        name: "prompt",
        file_name: None,
        content_type: None,
        bytes: b"invert",
    };
    let of = |parts: &[FormPart<'_>]| {
        Fingerprint::of_form("/v1/images/edits", parts.iter().copied(), None, None)
    };
    let base = of(&[image, prompt]);

    assert!(base.is_same_as(&of(&[image, prompt])));
    for other in [
        vec![prompt, image],
        vec![image],
        vec![image, prompt, prompt],
        vec![
            FormPart {
                name: "mask",
                ..image
            },
            prompt,
        ],
        vec![
            FormPart {
                file_name: Some("b.png"),
                ..image
            },
            prompt,
        ],
        vec![
            FormPart {
                content_type: None,
                ..image
            },
            prompt,
        ],
        vec![
            FormPart {
                bytes: b"y",
                ..image
            },
            prompt,
        ],
    ] {
        assert!(!base.is_same_as(&of(&other)), "{other:?}");
    }
}

#[test]
fn a_later_endpoint_of_a_name_is_another_and_a_deleted_one_is_itself() {
    let first = || of("{}").of_endpoint("one");

    assert!(first().is_same_as(&first()));
    assert!(!first().is_same_as(&of("{}").of_endpoint("two")));
    assert!(first().is_same_as(&of("{}")));
    assert!(!first().is_same_as(&of("[]")));
}
