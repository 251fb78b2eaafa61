//! What `bursar explain` says of a request in another dialect.

use bursar::ledger::entry::EntryId;
use serde_json::{Value, json};

use super::{MESSAGES, RESPONSES, ROUTES, answers, ask, asks};
use crate::support::daemon::command;
use crate::support::{Bursar, Origin, Step, origin};

async fn explain(bursar: &Bursar, id: EntryId, more: &[&str]) -> String {
    let state = bursar.state_dir();
    let id = id.to_string();
    let mut arguments = vec![
        "explain",
        "--state-dir",
        state.to_str().expect("a path"),
        &id,
    ];
    arguments.extend(more);
    let done = command(&arguments).output().await.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    assert!(done.status.success(), "{}", text(done.stderr));
    text(done.stdout)
}

#[tokio::test]
async fn what_was_left_out_of_a_request_is_explained() {
    let rows = [
        (
            RESPONSES,
            json!({"model": "auto", "input": "hi", "service_tier": "flex", "max_output_tokens": 200_000,
                "tools": [{"type": "web_search"}]}),
            "left out      service_tier, tool web_search, max_output_tokens above the window\n",
            json!([
                ["service_tier", 1],
                ["tool web_search", 1],
                ["max_output_tokens above the window", 1]
            ]),
        ),
        (
            MESSAGES,
            json!({"model": "auto", "max_tokens": 9, "top_k": 5,
                "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
                "messages": [{"role": "user", "content":
                    [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]}),
            "left out      cache_control ×2, top_k\n",
            json!([["cache_control", 2], ["top_k", 1]]),
        ),
    ];
    for (path, body, line, dropped) in rows {
        let origin = Origin::start([Step::Answer(answers(5, "x"))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar, path, &body.to_string(), &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let entry = bursar.entry_of(&answer);

        let printed = explain(&bursar, entry.id, &["--wide", "--tz", "UTC"]).await;
        let spoken = format!("spoken        {}\n", entry.spoken.as_str());
        for wanted in [
            line,
            &spoken,
            "3 tokens in, 4 tokens out",
            "state         settled, $0.000005\n",
        ] {
            assert!(printed.contains(wanted), "{wanted:?} in:\n{printed}");
        }
        let document = explain(&bursar, entry.id, &["--json"]).await;
        let document: Value = serde_json::from_str(&document).expect("JSON");
        let explained = &document["entries"][0];
        assert_eq!(explained["dropped"], dropped, "{explained}");
        assert_eq!(explained["spoken"], entry.spoken.as_str(), "{explained}");
    }
}

#[tokio::test]
async fn counts_that_the_service_did_not_report_are_explained() {
    let body = |usage: Value| {
        json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "x"}}], "usage": usage})
        .to_string()
    };
    let not = |what: &str| format!("tokens {what} not reported, which the answer shows as 0");
    for (usage, wanted) in [
        (Value::Null, vec![not("in"), not("out")]),
        (
            json!({"prompt_tokens": 3}),
            vec!["3 tokens in".to_owned(), not("out")],
        ),
        (
            json!({"prompt_tokens": 3, "completion_tokens": 0}),
            vec!["3 tokens in, 0 tokens out".to_owned()],
        ),
    ] {
        for (path, ..) in ROUTES {
            let answered = origin::json(200, &[("X-Service-Billed", "5")], &body(usage.clone()));
            let origin = Origin::start([Step::Answer(answered.clone()), Step::Answer(answered)]);
            let origin = origin.await;
            let bursar = Bursar::before(&origin.url()).await;
            let answer = ask(&bursar, path, &asks(path, "hi", false), &[]).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let id = bursar.entry_of(&answer).id;
            let printed = explain(&bursar, id, &["--wide"]).await;
            for wanted in &wanted {
                assert!(
                    printed.contains(wanted),
                    "{path}: {wanted:?} in:\n{printed}"
                );
            }
            let filled = wanted.iter().filter(|fact| fact.contains("shows as 0"));
            assert_eq!(
                printed.matches("shows as 0").count(),
                filled.count(),
                "{path}"
            );

            // On chat completions the app sees what the service said.
            let chat = crate::support::chat("hi");
            let answer = ask(&bursar, "/v1/chat/completions", &chat, &[]).await;
            let id = bursar.entry_of(&answer).id;
            let printed = explain(&bursar, id, &["--wide"]).await;
            assert!(!printed.contains("shows as 0"), "{printed}");
        }
    }
}
