use super::*;

/// A receipt line is kept of so many bytes at most, and cut behind them.
#[test]
fn the_key_is_struck_out_of_a_head_wherever_it_stands_and_other_heads_are_not_copied() {
    let key = ApiKey::from_text(b"sk-of-the-organization").expect("a key");
    let mut headers = HeaderMap::new();
    headers.insert("x-service-route-version", HeaderValue::from_static("a"));
    assert!(matches!(without_key(&headers, &key), Cow::Borrowed(_)));
    let value = format!("{}sk-of-the-organization", "a".repeat(250));
    let value = HeaderValue::from_str(&value).expect("a value");
    headers.insert("x-service-route-version", value);
    let clean = without_key(&headers, &key);
    assert_eq!(
        clean
            .get("x-service-route-version")
            .map(|value| value.as_bytes()),
        Some(format!("{}***", "a".repeat(250)).as_bytes())
    );
}

#[test]
fn an_answers_head_has_the_services_fields_and_none_of_one_connection() {
    let key = ApiKey::from_text(b"sk-of-the-organization").expect("a key");
    let mut upstream = ResponseHeader::build(200, None).expect("a head");
    for (name, value) in [
        ("Connection", "x-nominated"),
        ("X-Nominated", "a"),
        ("Content-Length", "7, 7"),
        ("X-Own", "a"),
        ("X-Own", "b"),
        ("X-Echo", "it is sk-of-the-organization"),
        ("Set-Cookie", "a=b"),
    ] {
        upstream.append_header(name, value).expect("a field");
    }
    let head = answer_head(&upstream, true, &key).expect("a head");
    let fields = head.headers.iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    assert_eq!(
        fields,
        [
            ("x-own", &b"a"[..]),
            ("x-own", b"b"),
            ("x-echo", b"***"),
            ("content-length", b"7"),
        ]
    );
    let kept = answer_head(&upstream, false, &key).expect("a head");
    assert!(!kept.headers.contains_key(CONTENT_LENGTH));
}
