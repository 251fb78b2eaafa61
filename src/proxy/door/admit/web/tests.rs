//! Hosts and origins.

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

use super::{check_host, check_origin, preflight};
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::refuse::Code;

fn host(value: &str) -> Result<(), Code> {
    let mut header = AppHead::default();
    let value = HeaderValue::from_str(value).expect("a plain value");
    header.headers.insert(HOST, value);
    check_host(&header, &["gateway.lan".to_owned()]).map_err(|refusal| refusal.code)
}

type Headers = &'static [(&'static str, &'static str)];

fn origin(pairs: Headers) -> Result<bool, Code> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_static(value));
    }
    check_origin(&headers, &["http://app.local:3000".to_owned()])
        .map(|allowed| allowed.is_some())
        .map_err(|refusal| refusal.code)
}

#[test]
fn hosts_are_an_exact_list_with_any_port() {
    for allowed in [
        "localhost",
        "LOCALHOST",
        "localhost:1",
        "127.0.0.1:8327",
        "[::1]",
        "[::1]:8327",
        "gateway.lan:443",
    ] {
        assert_eq!(host(allowed), Ok(()), "{allowed}");
    }
    for refused in [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8327",
        "0.0.0.0:8327",
        "127.0.0.2",
        "localhost:",
        "[::2]",
        "",
    ] {
        assert_eq!(host(refused), Err(Code::HostRefused), "{refused}");
    }
    for malformed in [
        "localhost:80x",
        "localhost:8327:1",
        "user@localhost",
        "::1",
        "[::1]x",
    ] {
        assert_eq!(host(malformed), Err(Code::HeadMalformed), "{malformed}");
    }
}

#[test]
fn pages_are_refused_unless_their_origin_is_listed() {
    let cases: &[(Headers, Result<bool, Code>)] = &[
        (&[], Ok(false)),
        (&[("sec-fetch-site", "none")], Ok(false)),
        (&[("sec-fetch-mode", "cors")], Ok(false)),
        (&[("origin", "http://app.local:3000")], Ok(true)),
        (
            &[
                ("origin", "http://app.local:3000"),
                ("sec-fetch-site", "cross-site"),
            ],
            Ok(true),
        ),
        (
            &[("origin", "http://evil.example")],
            Err(Code::OriginRefused),
        ),
        (&[("origin", "null")], Err(Code::OriginRefused)),
        (
            &[("origin", "http://localhost:8327")],
            Err(Code::OriginRefused),
        ),
        (
            &[
                ("origin", "http://app.local:3000"),
                ("origin", "http://evil.example"),
            ],
            Err(Code::OriginRefused),
        ),
        (&[("sec-fetch-site", "cross-site")], Err(Code::SiteRefused)),
        (&[("sec-fetch-site", "same-site")], Err(Code::SiteRefused)),
        (&[("sec-fetch-site", "same-origin")], Err(Code::SiteRefused)),
        (
            &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
            Err(Code::SiteRefused),
        ),
    ];
    for (headers, expected) in cases {
        assert_eq!(origin(headers), *expected, "{headers:?}");
    }
}

#[test]
fn a_preflight_is_answered_for_a_listed_origin_only() {
    let mut headers = HeaderMap::new();
    headers.insert(
        ACCESS_CONTROL_REQUEST_METHOD,
        HeaderValue::from_static("POST"),
    );
    assert!(preflight(&headers, None).is_err());
    headers.insert(ORIGIN, HeaderValue::from_static("http://app.local:3000"));
    let allowed = check_origin(&headers, &["http://app.local:3000".to_owned()]);
    let allowed = allowed.expect("the origin is listed");
    assert!(preflight(&headers, allowed).is_ok());
}
