use super::*;

fn parse(head: &'static str) -> Result<AppHead, Code> {
    AppHead::parse(Bytes::from_static(head.as_bytes())).map_err(|refusal| refusal.code)
}

#[test]
fn a_head_is_parsed_as_it_came() {
    let head = parse("POST /v1/x?y HTTP/1.1\r\nHost: a\r\nX-Own:  b c \r\nx-own: d\r\n\r\n");
    let head = head.expect("a plain head");
    assert_eq!(
        (head.method.clone(), head.version),
        (Method::POST, Version::HTTP_11)
    );
    let own: Vec<&[u8]> = head
        .headers
        .get_all("x-own")
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    assert_eq!(own, [&b"b c"[..], b"d"]);
    assert!(!head.closes());
    let old = parse("GET / HTTP/1.0\r\n\r\n").expect("a plain head");
    assert_eq!(old.version, Version::HTTP_10);
}

#[test]
fn an_app_that_asks_for_the_end_of_its_connection_is_heard_whatever_stands_beside_it() {
    for (value, closes) in [
        ("close", true),
        ("Keep-Alive", false),
        ("x-own, Close", true),
        ("keep-alive,close ,x", true),
        ("closed", false),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {value}\r\n\r\n");
        let head = AppHead::parse(Bytes::from(head)).expect("a plain head");
        assert_eq!(head.closes(), closes, "{value}");
    }
}

#[test]
fn what_is_no_head_is_refused() {
    for malformed in [
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1\nHost: a\n\nGET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\0\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\r\n\r\n",
    ] {
        assert_eq!(
            parse(malformed).err(),
            Some(Code::HeadMalformed),
            "{malformed:?}"
        );
    }
}

#[test]
fn a_head_of_very_many_fields_is_too_large() {
    let fields = "X: a\r\n".repeat(PARSED_FIELDS_MAX + 1);
    let head = format!("GET / HTTP/1.1\r\n{fields}\r\n");
    let refusal = AppHead::parse(Bytes::from(head)).expect_err("too many");
    assert_eq!(refusal.code, Code::HeadTooLarge);
}
