use http::{HeaderName, HeaderValue};

use super::*;

type Case = (
    Method,
    &'static [(&'static str, &'static str)],
    Result<(), u16>,
);

fn judge(method: Method, headers: &[(&'static str, &'static str)]) -> Result<(), u16> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    admit(&method, &map, &["box.lan".to_owned()], false).map_err(|refused| refused.status.as_u16())
}

#[test]
fn the_door_is_a_table() {
    let cases: [Case; 16] = [
        (Method::GET, &[("host", "127.0.0.1:8328")], Ok(())),
        (Method::HEAD, &[("host", "localhost")], Ok(())),
        (Method::GET, &[("host", "[::1]:8328")], Ok(())),
        (Method::GET, &[("host", "LOCALHOST:1")], Ok(())),
        (Method::GET, &[("host", "box.lan:8328")], Ok(())),
        (
            Method::GET,
            &[("host", "localhost"), ("sec-fetch-site", "none")],
            Ok(()),
        ),
        (Method::GET, &[], Err(403)),
        (Method::GET, &[("host", "evil.example")], Err(403)),
        (Method::GET, &[("host", "localhost.evil.example")], Err(403)),
        (Method::GET, &[("host", "localhost:123456")], Err(403)),
        (Method::GET, &[("host", "localhost:80:80")], Err(403)),
        (
            Method::GET,
            &[("host", "localhost"), ("host", "localhost")],
            Err(403),
        ),
        (
            Method::GET,
            &[("host", "localhost"), ("origin", "null")],
            Err(403),
        ),
        (
            Method::GET,
            &[("host", "localhost"), ("sec-fetch-site", "same-origin")],
            Err(403),
        ),
        (Method::POST, &[("host", "localhost")], Err(405)),
        (Method::OPTIONS, &[("host", "localhost")], Err(405)),
    ];

    for (method, headers, verdict) in cases {
        assert_eq!(
            judge(method.clone(), headers),
            verdict,
            "{method} {headers:?}"
        );
    }
}
