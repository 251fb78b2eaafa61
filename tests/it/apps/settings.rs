//! An app's own settings take precedence over those for all apps.

use bursar::ledger::entry::{InDoubt, State};
use serde_json::json;

use super::{CHAT, add, ask};
use crate::support::origin::{self, billed, chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Sandbox, Step, Wire, chat, chat_stream, eventually};

/// The token of the app `own`, by a file beside the configuration.
const OWN: &str = "own-token-0123456789abcdef0123456789abcdef";

/// The lines of an app `own` with a token file in a directory that outlives the test's bursar.
fn own(directory: &std::path::Path, more: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = directory.join("token");
    std::fs::write(&file, format!("{OWN}\n")).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    format!(
        "[[app]]\nname = \"own\"\ntoken_file = \"{}\"\n{more}\n",
        file.display()
    )
}

#[tokio::test]
async fn a_stream_is_given_up_for_the_app_that_says_so_and_read_on_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let stream = || {
        Step::Pieces(vec![
            [stream_head(), chunk("data: {\"a\":1}\n\n")].concat(),
            [
                chunk(": service-billed-micro-usd 42\n\ndata: [DONE]\n\n"),
                origin::last_chunk(),
            ]
            .concat(),
        ])
    };
    let origin = Origin::start([stream(), stream()]).await;
    let bursar = Bursar::with(
        &origin.url(),
        &own(directory.path(), "on_disconnect = \"cancel\""),
    )
    .await;
    let other = add(&bursar, "reader");
    for (count, token) in [(1, OWN), (2, other.as_str())] {
        let mut wire = Wire::tcp_that_resets(bursar.address).await;
        let shown = super::bearer(token);
        let body = chat_stream(token);
        wire.send(request("POST", CHAT, &[("Authorization", &shown)], &body))
            .await;
        origin.go();
        let mut head = wire.head().await;
        wire.chunk(&mut head).await.expect("the first chunk");
        drop(wire);
        eventually("the app to be missed", || async {
            (bursar.metric("bursar_client_disconnects_total", "") >= f64::from(count)).then_some(())
        })
        .await;
        origin.go();
    }
    let entries = bursar.settled(2).await;
    let of = |app: &str| {
        entries
            .iter()
            .find(|entry| *entry.app == *app)
            .expect("an entry")
            .state
    };
    assert_eq!(
        of("own"),
        State::InDoubt {
            reason: InDoubt::ClientGone
        }
    );
    assert!(
        matches!(of("reader"), State::Settled { .. }),
        "{:?}",
        of("reader")
    );
}

#[tokio::test]
async fn an_agent_turn_reports_its_price_for_the_app_that_wants_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::with(
        &sandbox.url(),
        &own(directory.path(), "agent_receipts = \"exact\""),
    )
    .await;
    let other = add(&bursar, "reader");
    for token in [OWN, other.as_str()] {
        let mut wire = bursar.connect().await;
        let shown = super::bearer(token);
        let path = "/agent/v1/chat/completions";
        wire.send(request(
            "POST",
            path,
            &[("Authorization", &shown)],
            &chat_stream("hi"),
        ))
        .await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().ends_with("data: [DONE]\n\n"));
    }
    let entries = bursar.settled(2).await;
    let of = |app: &str| {
        entries
            .iter()
            .find(|entry| *entry.app == *app)
            .expect("an entry")
            .state
    };
    assert!(
        matches!(of("own"), State::Settled { .. }),
        "{:?}",
        of("own")
    );
    assert!(
        matches!(of("reader"), State::Unreported),
        "{:?}",
        of("reader")
    );
}

#[tokio::test]
async fn a_question_back_is_an_error_for_the_app_that_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let question = json!({"id": "c1", "choices": [{"index": 0, "finish_reason": "stop", "message":
        {"role": "assistant", "content": "Please attach the invoice."}}]});
    let step = || {
        let headers = [
            ("X-Service-Billed", "0"),
            ("X-Service-Input-Required", "document"),
        ];
        Step::Answer(origin::json(200, &headers, &question.to_string()))
    };
    let origin = Origin::start([step(), step(), Step::Answer(billed(9))]).await;
    let bursar = Bursar::with(
        &origin.url(),
        &own(directory.path(), "on_clarification = \"error\""),
    )
    .await;
    let other = add(&bursar, "reader");

    let answer = ask(&bursar, OWN, &chat("read it")).await;
    assert_eq!((answer.status, answer.code()), (422, Some("clarification")));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(
        answer.header("x-service-billed"),
        Some("0"),
        "the receipt stays on it"
    );
    assert_eq!(answer.header("x-service-input-required"), Some("document"));
    let body = answer.json();
    let text = body["error"]["message"].as_str().expect("a text");
    assert!(
        text.contains("(document): Please attach the invoice."),
        "{text}"
    );
    assert_eq!(body["error"]["code"], "clarification");
    assert_eq!(body["detail"], body["error"]["message"]);
    assert_eq!(body["answer"], question, "the whole answer is there");

    let passed = ask(&bursar, &other, &chat("read it")).await;
    assert_eq!(passed.status, 200);
    assert_eq!(passed.json(), question);
    // An answer that asks nothing is an answer.
    assert_eq!(ask(&bursar, OWN, &chat("add it")).await.status, 200);

    let entries = bursar.settled(3).await;
    let own: Vec<State> = entries
        .iter()
        .filter(|entry| *entry.app == *"own")
        .map(|entry| entry.state)
        .collect();
    assert!(
        own.iter()
            .all(|state| matches!(state, State::Settled { .. })),
        "{own:?}"
    );
    assert_eq!(bursar.billed(), 9);
    assert_eq!(bursar.metric("bursar_clarifications_total", ""), 2.0);
}
