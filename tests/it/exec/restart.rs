//! A run and its daemon's restart, its app's removal: the child of a run gets no 401, which SDKs do not
//! repeat, for what is over in a moment.

use bursar::config::Token;

use super::{PREAMBLE, Place, ask};
use crate::support::daemon::{Daemon, Signal, command, send};
use crate::support::origin::billed;
use crate::support::{Origin, Step, eventually};

/// A daemon on the state and the address of one that has ended.
async fn again(address: &str, url: &str, state: &str) -> Daemon {
    let arguments = [
        "run",
        "--upstream",
        url,
        "--listen",
        address,
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        state,
    ];
    Daemon::ready(command(&arguments)).await
}

#[tokio::test]
async fn a_child_that_goes_on_asking_sees_no_401_over_restarts() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    // Sends requests without a pause until it is stopped; a refused connection is not an answer.
    let script = r#"
told = []
threading.Thread(target=lambda: told.append(sys.stdin.readline()), daemon=True).start()
number, seen, served, lost = 0, set(), 0, True
while not told:
    number += 1
    try:
        status, body = ask(f"number {number}")
    except (OSError, http.client.HTTPException):
        served, lost = 0, True
        continue
    seen.add(status if status == 200 else (status, body))
    served += status == 200
    if served == 3 and lost:
        lost = False
        say("served")
say(sorted(map(str, seen)))
"#;
    assert!(PREAMBLE.contains("import json"));
    let mut talk = place.talk(&[], &format!("import http.client\n{script}"));
    assert_eq!(talk.line().await, "served");
    let address = place.daemon.proxy.to_string();
    let (state, url) = (place.state(), origin.url());
    let Place { folder, daemon } = place;

    daemon.kill().await;
    let daemon = again(&address, &url, &state).await;
    assert_eq!(talk.line().await, "served", "after a kill");
    daemon.terminate().await;
    let daemon = again(&address, &url, &state).await;
    assert_eq!(talk.line().await, "served", "after a stop");
    talk.go().await;
    let seen = talk.line().await;

    assert!(!seen.contains("401") && seen.contains("200"), "{seen}");
    // The answer may report a stop, or a long wait; nothing else.
    for other in ["402", "403", "404", "500", "502"] {
        assert!(!seen.contains(other), "{seen}");
    }
    assert_eq!(talk.end().await.0, Some(0));
    daemon.terminate().await;
    drop(folder);
}

#[tokio::test]
async fn a_token_that_is_waited_for_is_asked_to_come_again_and_a_stranger_is_not() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let (talk, token) = place.waiting_run().await;
    let address = place.daemon.proxy.to_string();
    let (state, url) = (place.state(), origin.url());
    let Place { folder, daemon } = place;
    // It cannot announce its run to the next daemon.
    send(&talk.exec, Signal::STOP);
    daemon.kill().await;
    let daemon = again(&address, &url, &state).await;

    let unknown = Token::draw().expect("a token");
    let (awaited, stranger) = tokio::join!(
        ask(&daemon, &token, "awaited"),
        ask(&daemon, unknown.reveal(), "stranger"),
    );
    assert_eq!((awaited.status, awaited.code()), (503, Some("run_awaited")));
    assert_eq!(awaited.header("retry-after"), Some("1"));
    assert_eq!(
        awaited.header("x-should-retry"),
        None,
        "an SDK may repeat it"
    );
    assert_eq!(
        (stranger.status, stranger.code()),
        (401, Some("token_refused"))
    );
    assert!(origin.received().is_empty());

    send(&talk.exec, Signal::CONT);
    let served = ask(&daemon, &token, "once more").await;
    assert_eq!(
        served.status,
        200,
        "a waiting request is let in: {}",
        served.text()
    );
    assert_eq!(talk.end().await.0, Some(0));
    eventually("the token to end", || async {
        (ask(&daemon, &token, "late").await.code() == Some("token_refused")).then_some(())
    })
    .await;
    daemon.terminate().await;
    drop(folder);
}

#[tokio::test]
async fn an_app_that_is_removed_and_added_at_once_keeps_its_runs() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let (talk, token) = place.waiting_run().await;
    let done = async |arguments: &[&str]| {
        let output = place.bursar(arguments).output().await.expect("it ends");
        assert!(output.status.success(), "{}", super::said(&output));
    };

    done(&["app", "remove", "nightly"]).await;
    let (answer, ()) = tokio::join!(
        ask(&place.daemon, &token, "between"),
        done(&["app", "add", "nightly", "--cap-day-usd", "0.000007"]),
    );
    // The machine may be too busy to add it in time: then the answer asks for a retry.
    if answer.status != 200 {
        assert_eq!(answer.code(), Some("run_awaited"), "{}", answer.text());
        assert_eq!(ask(&place.daemon, &token, "again").await.status, 200);
    }
    let capped = ask(&place.daemon, &token, "capped").await;
    assert_eq!(
        capped.code(),
        Some("cap_reached"),
        "it has the new app's cap"
    );

    done(&["app", "remove", "nightly"]).await;
    let gone = ask(&place.daemon, &token, "gone").await;
    assert_eq!(gone.code(), Some("token_refused"), "it ends in the end");
    assert_eq!(talk.end().await.0, Some(0));
    place.daemon.terminate().await;
}
