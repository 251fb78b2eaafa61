//! The head's framing, the request target, and the route table, for any bytes.
//!
//! Promise: a target that passes is the same path for every reader; a route that is found is the
//! one whose pattern the path matches, segment by segment.

use bursar::protocol::routes::{ExtraRoute, Lookup, RouteTable};
use bursar::proxy::door::admit::head::{Framing, RequestLine};
use http::{Method, Version};

/// Where the routes of one model begin.
const MODELS: [&str; 2] = ["/v1/models/", "/agent/v1/models/"];

pub fn check(bytes: &[u8]) {
    if let Ok(framing) = Framing::read(bytes, Version::HTTP_11) {
        check_framing(bytes, framing);
    }
    let Ok(line) = RequestLine::read(bytes) else {
        return;
    };
    let target = line.target.as_str();
    assert!(target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic()));
    let path = line.path();
    // The id of a model may have a slash, plain or escaped: it goes nowhere.
    let is_model = MODELS.iter().any(|models| path.starts_with(models));
    let mut lower = path.to_ascii_lowercase();
    if is_model {
        lower = lower.replace("%2f", "/");
    }
    for trick in ["//", "\\", "#", "%2e", "%2f", "%5c", "%00"] {
        assert!(!lower.contains(trick), "{path} holds {trick}");
    }
    assert!(
        lower
            .split('/')
            .all(|segment| segment != "." && segment != "..")
    );

    let extra = ExtraRoute {
        method: Method::POST,
        path: "/v1/extra".to_owned(),
    };
    let table = RouteTable::new(&[extra]);
    let word = bytes.split(|byte| *byte == b' ').next().unwrap_or_default();
    let Ok(method) = Method::from_bytes(word) else {
        return;
    };
    let matching: Vec<(&Method, &str)> = table
        .rows()
        .iter()
        .map(|row| (&row.method, row.pattern))
        .filter(|(_, pattern)| plain_match(pattern, path))
        .collect();
    match table.look_up(&method, path) {
        Lookup::Found(_) if path == "/v1/extra" => assert_eq!(method, Method::POST),
        Lookup::Found(route) => {
            assert!(
                plain_match(route.pattern, path),
                "{path} is not {}",
                route.pattern
            );
            let asked = if method == Method::HEAD {
                Method::GET
            } else {
                method
            };
            assert_eq!(route.method, asked);
        }
        Lookup::OtherMethods(allowed) => {
            assert!(!allowed.is_empty() && !allowed.contains(&method));
            assert!(path == "/v1/extra" || !matching.is_empty());
        }
        Lookup::Unknown => assert!(matching.is_empty(), "{path} is {matching:?}"),
    }
}

/// What an escape that is none says is itself.
fn unescaped(spelled: &str) -> Vec<u8> {
    let mut said = Vec::new();
    let mut rest = spelled.as_bytes();
    while let [first, behind @ ..] = rest {
        let escape = (*first == b'%').then(|| behind.get(..2)).flatten();
        let code = escape
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        said.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    said
}

/// What passes has one length or one encoding, and no line that two readers may take differently.
fn check_framing(head: &[u8], framing: Framing) {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let fields: Vec<&str> = text
        .split("\r\n")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(fields.iter().all(|line| !line.starts_with([' ', '\t'])));
    assert!(
        fields
            .iter()
            .all(|line| !line.contains('\n') && !line.contains('\0'))
    );
    let of = |name: &str| {
        let is_it = |line: &&&str| line.split(':').next() == Some(name);
        fields.iter().filter(is_it).count()
    };
    assert_eq!(of("host"), 1);
    assert!(of("content-length") + of("transfer-encoding") <= 1);
    assert_eq!(framing.chunked, of("transfer-encoding") == 1);
    assert!(framing.content_length == 0 || of("content-length") == 1);
}

/// A pattern's `{}` is one id: `[A-Za-z0-9._~-]{1,128}` and no dot segment. `{model}` is all that is left, and may say
/// what it says in escapes.
fn plain_match(pattern: &str, path: &str) -> bool {
    if let Some(models) = pattern.strip_suffix("{model}") {
        let id = path.strip_prefix(models).map(unescaped);
        let id = id.and_then(|id| String::from_utf8(id).ok());
        let is_plain = |letter: char| !letter.is_control() && letter != '\\';
        return id.is_some_and(|id| {
            (1..=256).contains(&id.len())
                && id.chars().all(is_plain)
                && id.split('/').all(|part| !["", ".", ".."].contains(&part))
        });
    }
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some("{}"), Some(id)) => {
                let is_id = (1..=128).contains(&id.len())
                    && !matches!(id, "." | "..")
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte));
                if !is_id {
                    return false;
                }
            }
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}
