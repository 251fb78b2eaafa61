use http::{HeaderName, HeaderValue};

use super::*;

type Case = (
    Method,
    &'static [(&'static str, &'static str)],
    Result<(), u16>,
);

fn judge(method: &Method, path: &str, headers: &[(&'static str, &'static str)]) -> Result<(), u16> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    admit(method, path, &map, &["box.lan".to_owned()], false)
        .map_err(|refused| refused.status.as_u16())
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
            judge(&method, "/api/spend", headers),
            verdict,
            "{method} {headers:?}"
        );
    }
}

/// What browsers send, by what a page does: where from, how, what for, and a further line. The last two columns:
/// whether the status page, and an entry's, may be the answer.
#[test]
fn a_browser_gets_a_page_for_a_link_and_for_nothing_else_that_a_page_does() {
    type Marks = [&'static str; 3];
    type More = Option<(&'static str, &'static str)>;
    const LINK: Marks = ["cross-site", "navigate", "document"];
    let rows: [(&str, Marks, More, bool, bool); 17] = [
        ("a link of another site", LINK, None, true, true),
        (
            "of another port",
            ["same-site", "navigate", "document"],
            None,
            true,
            true,
        ),
        (
            "of its own",
            ["same-origin", "navigate", "document"],
            None,
            true,
            true,
        ),
        (
            "a form that is sent",
            LINK,
            Some(("origin", "null")),
            false,
            false,
        ),
        (
            "a frame",
            ["cross-site", "navigate", "iframe"],
            None,
            false,
            false,
        ),
        (
            "its own frame",
            ["same-origin", "navigate", "iframe"],
            None,
            false,
            false,
        ),
        (
            "an object",
            ["cross-site", "navigate", "object"],
            None,
            false,
            false,
        ),
        (
            "an image",
            ["cross-site", "no-cors", "image"],
            None,
            false,
            false,
        ),
        (
            "a script",
            ["cross-site", "no-cors", "script"],
            None,
            false,
            false,
        ),
        (
            "a fetch",
            ["cross-site", "no-cors", "empty"],
            None,
            false,
            false,
        ),
        (
            "a fetch with CORS",
            ["cross-site", "cors", "empty"],
            None,
            false,
            false,
        ),
        (
            "its own script",
            ["same-origin", "same-origin", "empty"],
            None,
            true,
            false,
        ),
        (
            "another's script",
            ["cross-site", "same-origin", "empty"],
            None,
            false,
            false,
        ),
        ("a site alone", ["cross-site", "", ""], None, false, false),
        (
            "no destination",
            ["cross-site", "navigate", ""],
            None,
            false,
            false,
        ),
        (
            "two modes",
            LINK,
            Some(("sec-fetch-mode", "cors")),
            false,
            false,
        ),
        (
            "two sites",
            LINK,
            Some(("sec-fetch-site", "none")),
            false,
            false,
        ),
    ];
    let names = ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"];
    let paths = ["/", "/explain/019a0000-0000-7000-8000-000000000000"];
    for (what, marks, more, status, entry) in rows {
        let marks = names.into_iter().zip(marks);
        let given = marks.filter(|(_, mark)| !mark.is_empty()).chain(more);
        let from = |host| [vec![("host", host)], given.clone().collect()].concat();
        let headers = from("localhost:8328");
        for (path, is_let_in) in paths.into_iter().zip([status, entry]) {
            let expected = if is_let_in { Ok(()) } else { Err(403) };
            assert_eq!(
                judge(&Method::GET, path, &headers),
                expected,
                "{what}: {path}"
            );
            assert_eq!(
                judge(&Method::HEAD, path, &headers),
                Err(403),
                "{what}: {path}"
            );
        }
        for path in [
            "/metrics",
            "/api/status",
            "/healthz",
            "//",
            "/explain",
            "/explain/a/b",
        ] {
            assert_eq!(
                judge(&Method::GET, path, &headers),
                Err(403),
                "{what}: {path}"
            );
        }
        let rebound = from("evil.example:8328");
        assert_eq!(
            judge(&Method::GET, "/", &rebound),
            Err(403),
            "{what}: rebound"
        );
    }
}

#[test]
fn the_icon_is_for_pages_of_this_listener() {
    let marks = |site| {
        [
            ("host", "localhost"),
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "image"),
        ]
    };
    let judge_icon = |site| judge(&Method::GET, "/favicon.ico", &marks(site));
    assert_eq!(judge_icon("same-origin"), Ok(()));
    assert_eq!(judge_icon("same-site"), Err(403));
    assert_eq!(judge_icon("cross-site"), Err(403));
}
