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
fn numbers_beyond_64_bits_and_long_fractions_stay_distinct() {
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
    let part = |name: &str, file_name: Option<&str>, kind: Option<&str>, bytes| FormPart {
        name: name.to_owned(),
        file_name: file_name.map(str::to_owned),
        content_type: kind.map(str::to_owned),
        bytes: Bytes::from_static(bytes),
    };
    let image = || part("image", Some("a.png"), Some("image/png"), b"x");
    let prompt = || part("prompt", None, None, b"invert");
    let of = |parts: &[FormPart]| Fingerprint::of_form("/v1/images/edits", parts, None, None);
    let base = of(&[image(), prompt()]);

    assert!(base.is_same_as(&of(&[image(), prompt()])));
    let png = Some("image/png");
    for other in [
        vec![prompt(), image()],
        vec![image()],
        vec![image(), prompt(), prompt()],
        vec![part("mask", Some("a.png"), png, b"x"), prompt()],
        vec![part("image", Some("b.png"), png, b"x"), prompt()],
        vec![part("image", Some("a.png"), None, b"x"), prompt()],
        vec![part("image", Some("a.png"), png, b"y"), prompt()],
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
