//! What people read of entries: the end of an id that finds it again, and text of apps that does nothing
//! to a screen.

use serde_json::Value;

use super::{BODY, CHAT, explain, run};
use crate::support::origin::json;
use crate::support::{Bursar, Origin, Step, chat};

/// The first characters of an id are its minute's: what lists show is its end, and that finds it.
#[tokio::test]
async fn an_entry_is_found_by_the_end_that_receipts_shows_and_a_shared_beginning_says_how_many() {
    let answer = || Step::Answer(json(200, &[("X-Service-Billed", "7")], BODY));
    let origin = Origin::start([answer(), answer()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut ids = Vec::new();
    for text in ["one", "two"] {
        let answer = bursar.post(CHAT, &chat(text)).await;
        ids.push(bursar.entry_of(&answer).id.to_string());
    }
    bursar.settled(2).await;
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");

    let (listed, error, code) = run(&["receipts", "--state-dir", state]).await;

    assert_eq!(code, Some(0), "{error}");
    let ends: Vec<&str> = listed
        .lines()
        .filter(|line| line.contains("settled") && line.contains("chat"))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(ends.len(), 2, "{listed}");
    for (id, end) in ids.iter().zip(ends) {
        assert!(id.ends_with(end), "{end} of {id}");
        assert!(explain(&bursar, end).await.contains(id.as_str()));
    }
    let shared: String = ids[0]
        .chars()
        .zip(ids[1].chars())
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one)
        .collect();
    assert!(shared.len() >= 8, "within a minute: {ids:?}");
    let (printed, error, code) = run(&["explain", "--state-dir", state, &shared]).await;
    assert_eq!(code, Some(1));
    assert!(
        ids.iter().all(|id| printed.contains(&id[id.len() - 12..])),
        "{printed}"
    );
    assert!(
        error.contains("2 ids begin or end with") && error.contains("give more of it"),
        "{error}"
    );
}

/// What an app or the service wrote is shown, and does nothing to the screen.
#[tokio::test]
async fn no_text_of_an_app_turns_hides_or_breaks_a_line_on_a_screen() {
    let model = "a\u{202e}\u{2028}\u{200b}\u{9b}1m\u{7}z";
    let answer = json(200, &[("X-Service-Billed", "7")], BODY);
    let origin = Origin::start([Step::Answer(answer)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let body = serde_json::json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    let answer = bursar.post(CHAT, &body.to_string()).await;
    let entry = bursar.entry_of(&answer);
    assert_eq!(entry.model.as_deref(), Some(model), "the ledger keeps it");
    let state = bursar.state_dir();
    let state = state.to_str().expect("a path");
    let id = entry.id.to_string();

    let commands: [&[&str]; 5] = [
        &["receipts", "--wide"],
        &["receipts", "--json"],
        &["explain", "--wide", &id],
        &["explain", "--json", &id],
        &["ledger", "export", "--format", "csv"],
    ];
    for arguments in commands {
        let whole = [arguments, &["--state-dir", state]].concat();
        let (printed, error, code) = run(&whole).await;
        assert_eq!(code, Some(0), "{arguments:?}: {error}");
        let is_bad = |letter: char| {
            (letter.is_control() && letter != '\n') || "\u{202e}\u{2028}\u{200b}".contains(letter)
        };
        assert!(!printed.contains(is_bad), "{arguments:?}: {printed:?}");
        if arguments.contains(&"--json") {
            let document: Value = serde_json::from_str(&printed).expect("JSON");
            let member = document
                .pointer("/entries/0/model")
                .or(document.get("model"));
            assert_eq!(
                member.and_then(Value::as_str),
                Some(model),
                "the same document"
            );
        } else {
            assert!(
                printed.contains("a\\u{202e}\\u{2028}\\u{200b}\\u{9b}1m\\u{7}z"),
                "{printed}"
            );
        }
    }
}
