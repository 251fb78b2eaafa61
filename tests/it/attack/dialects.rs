//! The corpus on the routes that are translated: what is refused on chat completions for its origin, its type or its
//! coding is refused there by the same code, before anything is translated. How a request is framed is judged before its
//! route is known.

use super::case::{CHAT, Case, May};

/// Those that are translated to chat completions.
const ROUTES: [&str; 3] = ["/v1/responses", "/agent/v1/responses", "/agent/v1/messages"];

/// Rows of the threat model that a route has a part in.
const ROWS: [u8; 4] = [1, 2, 5, 14];

/// Of cases for chat completions.
pub fn cases(of_chat: &[Case]) -> Vec<Case> {
    let line = |route: &str| format!("POST {route} HTTP/1.1\r\n").into_bytes();
    let chat = line(CHAT);
    let refused = of_chat
        .iter()
        .filter(|case| ROWS.contains(&case.row) && matches!(case.may, May::Refused(_)));
    let of_route = |route: &str| -> Vec<Case> {
        let cases = refused.clone().filter_map(|case| {
            let behind = case.bytes.strip_prefix(chat.as_slice())?;
            Some(Case {
                name: format!("{route}: {}", case.name),
                bytes: [line(route).as_slice(), behind].concat(),
                ..case.clone()
            })
        });
        cases.collect()
    };
    ROUTES.into_iter().flat_map(of_route).collect()
}
