//! The corpus on the routes that are translated: what is refused on chat completions for its origin, its type or its
//! coding is refused there by the same code, before anything is translated. How a request is framed is judged before its
//! route is known.

use super::case::{CHAT, Case, May};

/// Those that are translated to chat completions.
const ROUTES: [&str; 3] = ["/v1/responses", "/agent/v1/responses", "/agent/v1/messages"];

/// Rows of the threat model that a route has a part in, and how many refused cases of chat completions each has at
/// least. Forms (row 2) go to other routes, and preflights (row 5) are judged before the route is known.
const ROWS: [(u8, usize); 2] = [(1, 25), (14, 4)];

/// Of cases for chat completions. An empty list does not pass: each route has at least as many as its rows say.
pub fn cases(of_chat: &[Case]) -> Vec<Case> {
    let line = |route: &str| format!("POST {route} HTTP/1.1\r\n").into_bytes();
    let chat = line(CHAT);
    let refused = of_chat.iter().filter(|case| {
        let has_part = ROWS.iter().any(|(row, _)| *row == case.row);
        has_part && matches!(case.may, May::Refused(_))
    });
    let of_route = |route: &str| -> Vec<Case> {
        let derived = refused.clone().filter_map(|case| {
            let behind = case.bytes.strip_prefix(chat.as_slice())?;
            Some(Case {
                name: format!("{route}: {}", case.name),
                bytes: [line(route).as_slice(), behind].concat(),
                ..case.clone()
            })
        });
        let cases: Vec<Case> = derived.collect();
        for (row, least) in ROWS {
            let count = cases.iter().filter(|case| case.row == row).count();
            assert!(
                count >= least,
                "{route}: {count} cases of row {row}, {least} at least"
            );
        }
        cases
    };
    ROUTES.into_iter().flat_map(of_route).collect()
}
