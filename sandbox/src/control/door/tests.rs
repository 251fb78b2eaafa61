use super::*;
use http::HeaderValue;

fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
    all.iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

#[test]
fn a_host_is_this_machines_or_no_public_name() {
    for own in [
        "localhost",
        "localhost:8329",
        "127.0.0.1:8329",
        "[::1]:8329",
        "[::1]",
        "192.168.1.7:80",
        "sandbox",
        "sandbox:8329",
    ] {
        assert_eq!(check(&headers(&[("host", own)])), Ok(()), "{own}");
    }
    for foreign in [
        "evil.example",
        "evil.example:8329",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost.",
        "",
        ":8329",
        "a:b:1",
        "[evil]",
    ] {
        assert!(check(&headers(&[("host", foreign)])).is_err(), "{foreign}");
    }
    assert_eq!(
        check(&HeaderMap::new()),
        Ok(()),
        "HTTP/1.0, which no browser sends"
    );
}

#[test]
fn what_a_page_sends_is_refused_and_what_curl_sends_is_not() {
    let table: [(&[(&str, &str)], bool); 9] = [
        (&[], true),
        (&[("content-type", "application/json; charset=utf-8")], true),
        (
            &[("content-type", "application/x-www-form-urlencoded")],
            true,
        ),
        (&[("sec-fetch-site", "none")], true),
        (&[("sec-fetch-site", "same-origin")], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("origin", "null")], false),
        (&[("content-type", "text/plain")], false),
        (
            &[("content-type", "multipart/form-data; boundary=b")],
            false,
        ),
    ];
    for (sent, let_in) in table {
        assert_eq!(check(&headers(sent)).is_ok(), let_in, "{sent:?}");
    }
}
