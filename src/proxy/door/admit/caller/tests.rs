use http::{HeaderMap, HeaderValue};

use super::{bearer, token};
use crate::apps::Stranger;

#[test]
fn a_token_stands_behind_bearer() {
    for (value, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER   abc ", Some("abc")),
        ("Bearer a b", Some("a b")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearerabc", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ] {
        let found = bearer(value.as_bytes());
        assert_eq!(found, token.map(str::as_bytes), "{value:?}");
    }
}

#[test]
fn the_headers_show_one_token_or_they_are_refused() {
    type Headers = &'static [(&'static str, &'static str)];
    let rows: [(Headers, Result<Option<&str>, Stranger>); 13] = [
        (&[], Ok(None)),
        (&[("authorization", "Bearer a")], Ok(Some("a"))),
        (&[("x-api-key", " a ")], Ok(Some("a"))),
        (&[("x-api-key", "")], Ok(None)),
        (
            &[("authorization", "Bearer a"), ("x-api-key", "a")],
            Ok(Some("a")),
        ),
        (
            &[("authorization", "Bearer a"), ("x-api-key", "")],
            Ok(Some("a")),
        ),
        (
            &[("authorization", "Basic a"), ("x-api-key", "b")],
            Ok(Some("b")),
        ),
        (&[("authorization", ""), ("x-api-key", "b")], Ok(Some("b"))),
        (
            &[("authorization", "Bearer a"), ("x-api-key", "b")],
            Err(Stranger::TwoTokens),
        ),
        (
            &[("x-api-key", "a"), ("x-api-key", "a")],
            Err(Stranger::TwoTokens),
        ),
        (
            &[("x-api-key", ""), ("x-api-key", "")],
            Err(Stranger::TwoTokens),
        ),
        (
            &[("authorization", "Bearer a"), ("authorization", "Bearer b")],
            Err(Stranger::TwoTokens),
        ),
        (
            &[
                ("authorization", "Basic a"),
                ("authorization", "Basic a"),
                ("x-api-key", "b"),
            ],
            Err(Stranger::TwoTokens),
        ),
    ];
    for (pairs, wanted) in rows {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let wanted = wanted.map(|token| token.map(str::as_bytes));
        assert_eq!(token(&headers), wanted, "{pairs:?}");
    }
}
