//! Speech reports seconds and no price: it is unreported, its seconds are summed, and a cap keeps
//! what it has set aside.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bursar::ledger::entry::State;
use bursar_sandbox::{Options, Settings, Synthesis};
use serde_json::{Value, json};

use super::stage::{
    SPEECH, TRANSCRIPTIONS, amount, ask, post, release, rows, send, spend, spend_said,
};
use crate::support::{Answer, Bursar, Sandbox, eventually};

async fn speaking() -> Sandbox {
    Sandbox::with(Options {
        settings: Settings {
            synthesis: Synthesis::BuiltIn,
            ..Settings::default()
        },
        ..Options::default()
    })
    .await
}

/// A short recording of the sandbox's own tests.
fn recording(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sandbox/tests/fixtures");
    STANDARD.encode(std::fs::read(folder.join(name)).expect("a recording"))
}

async fn hear(bursar: &Bursar, audio: &str) -> Answer {
    let answer = post(
        bursar.address,
        TRANSCRIPTIONS,
        &json!({"audio_base64": audio}),
    )
    .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

async fn say(bursar: &Bursar, text: &str) -> Answer {
    let answer = post(bursar.address, SPEECH, &json!({"text": text})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// The duration in the answer, in milliseconds. In a test a float may be rounded.
fn duration_ms(answer: &Answer) -> u64 {
    let seconds = answer.json()["duration_s"].as_f64().expect("a length");
    (seconds * 1000.0).round() as u64
}

async fn rows_of(bursar: &Bursar) -> std::collections::BTreeMap<String, Value> {
    rows(&spend(&bursar.state_dir(), "operation").await, "operation")
}

fn heard_s(bursar: &Bursar, operation: &str) -> f64 {
    let label = format!("operation=\"{operation}\"");
    bursar.metric("bursar_audio_seconds_total", &label)
}

/// What the books debited for a route.
async fn debited(sandbox: &Sandbox, route: &str) -> u64 {
    let debits = sandbox.debits().await;
    let of_route = debits.iter().filter(|debit| debit["route"] == route);
    of_route.map(amount).sum()
}

#[tokio::test]
async fn seconds_are_summed_by_operation_and_explain_what_the_books_debited() {
    let sandbox = speaking().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let spoken = say(&bursar, "Rivers run. Do lakes lie?").await;
    let own = spoken.json()["audio_base64"]
        .as_str()
        .expect("a WAV")
        .to_owned();
    let mut heard = 0;
    for audio in [
        own,
        recording("tone.mp3"),
        recording("tone.m4a"),
        recording("tone.webm"),
    ] {
        let answer = hear(&bursar, &audio).await;
        heard += duration_ms(&answer);
        let entry = bursar.entry_of(&answer);
        assert_eq!(entry.state, State::Unreported);
        assert_eq!(entry.audio_ms, Some(duration_ms(&answer)));
    }

    let rows = rows_of(&bursar).await;
    let (speech, transcription) = (&rows["speech"], &rows["transcription"]);
    assert_eq!(transcription["audio_ms"], heard);
    assert_eq!(transcription["unreported"], 4);
    assert_eq!(transcription["billed_micro_usd"], 0, "no price is guessed");
    assert_eq!(speech["audio_ms"], duration_ms(&spoken));
    assert_eq!(
        (&speech["unreported"], &speech["audio_untold"]),
        (&json!(1), &json!(0))
    );
    // The sandbox's prices a minute; each debit is rounded up, and each length to a millisecond.
    for (route, row, a_minute) in [
        (SPEECH, speech, 15_000),
        (TRANSCRIPTIONS, transcription, 6_000),
    ] {
        let ms = row["audio_ms"].as_u64().expect("milliseconds");
        let answers = row["requests"].as_u64().expect("a count");
        let books = debited(&sandbox, route).await;
        assert!(books > 0, "{route}");
        assert!(
            books.abs_diff(ms * a_minute / 60_000) <= 2 * answers,
            "{route}: {books} for {ms} ms"
        );
    }

    let table = spend_said(&bursar.state_dir(), &["--by", "operation", "--wide"]).await;
    let line = |word: &str| {
        let found = table.lines().find(|line| line.starts_with(word));
        found
            .unwrap_or_else(|| panic!("{word}: {table}"))
            .to_owned()
    };
    let shown = |ms: u64| format!("{}.{:03} s", ms / 1000, ms % 1000);
    assert!(line("operation").contains("  audio  "), "{table}");
    assert!(line("transcription").contains(&shown(heard)), "{table}");
    let all = heard + duration_ms(&spoken);
    assert!(line("all").contains(&shown(all)), "{table}");
    assert!(table.contains("5 unreported (`bursar receipts"), "{table}");

    // Seconds are the ledger's, so they outlive the process and the index.
    let seconds = heard as f64 / 1000.0;
    assert!((heard_s(&bursar, "transcription") - seconds).abs() < 1e-9);
    let state_dir = bursar.state_dir();
    let bursar = bursar.restart("").await;
    assert!((heard_s(&bursar, "transcription") - seconds).abs() < 1e-9);
    assert!(state_dir.join("index").is_dir());
}

/// Half a minute of sound is more than a megabyte, and its length comes after it.
#[tokio::test]
async fn the_length_of_a_long_recording_is_known() {
    let sandbox = speaking().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let text = "Rivers run to the sea and never come back again. ".repeat(14);

    let answer = say(&bursar, &text).await;

    assert!(answer.body.len() > 1 << 20, "{}", answer.body.len());
    let entry = bursar.entry_of(&answer);
    assert_eq!(entry.audio_ms, Some(duration_ms(&answer)));
    assert_eq!(
        rows_of(&bursar).await["speech"]["audio_ms"],
        duration_ms(&answer)
    );
}

#[tokio::test]
async fn what_was_made_for_an_app_that_left_has_its_seconds_too() {
    let sandbox = speaking().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let hold = json!({"match": {"path": SPEECH}, "fault": {"hold": "work"}});
    sandbox.control("/sandbox/faults", hold).await;
    let body = json!({"text": "Rivers run."}).to_string();
    let wire = send(bursar.address, "POST", SPEECH, &[], body.as_bytes()).await;
    eventually("the service to receive", || async {
        let log = sandbox.get("/sandbox/requests").await;
        (log["received"] == 1).then_some(())
    })
    .await;
    drop(wire);
    eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;
    release(&sandbox, "work").await;

    let entries = bursar.settled(1).await;

    assert_eq!(entries[0].state, State::Unreported);
    let ms = entries[0].audio_ms.expect("a length");
    assert!(ms > 0);
    assert_eq!(rows_of(&bursar).await["speech"]["audio_ms"], ms);
    // A repeat gets that answer: it was bought once.
    let again = ask(bursar.address, "POST", SPEECH, &[], body.as_bytes()).await;
    assert_eq!(duration_ms(&again), ms);
    assert_eq!(sandbox.debits().await.len(), 1);
    assert_eq!(rows_of(&bursar).await["speech"]["audio_ms"], ms);
}

/// A failed answer has no seconds, whatever its body contains; a complete answer without a length is
/// counted.
#[tokio::test]
async fn seconds_that_were_not_reported_are_counted_and_never_zero() {
    let sandbox = speaking().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let lies = json!({"detail": "no", "duration_s": 1000});
    for fault in [
        json!({"status": 400, "body": lies}),
        json!({"status": 200, "body": {"text": "t"}}),
        json!({"status": 200, "body": {"text": "t", "duration_s": "12"}}),
        json!({"status": 200, "body": {"text": "t", "duration_s": -1}}),
        json!({"status": 200, "body": {"text": "t", "duration_s": 0}}),
        json!({"cut_before_head": true}),
    ] {
        let rule = json!({"match": {"path": TRANSCRIPTIONS}, "fault": fault});
        sandbox.control("/sandbox/faults", rule).await;
        let body = json!({"audio_base64": recording("tone.mp3")});
        post(bursar.address, TRANSCRIPTIONS, &body).await;
    }

    let row = rows_of(&bursar).await["transcription"].clone();

    assert_eq!(row["requests"], 6);
    assert_eq!(row["failed"], 1);
    assert_eq!(row["in_doubt"], 1, "it may have been billed");
    assert_eq!(row["unreported"], 4);
    assert_eq!(
        (&row["audio_ms"], &row["audio_untold"]),
        (&json!(0), &json!(3))
    );
    let table = spend_said(&bursar.state_dir(), &["--by", "operation", "--wide"]).await;
    assert!(table.contains("3 answers of the speech routes"), "{table}");
}

/// Its price stays unknown, so a cap keeps what it has set aside until the window ends.
#[tokio::test]
async fn speech_stays_charged_to_a_cap_at_what_was_set_aside() {
    let sandbox = speaking().await;
    let caps =
        "[caps]\ntime_zone = \"UTC\"\nmonth_micro_usd = 2500\nrequest_floor_micro_usd = 1000\n";
    let bursar = Bursar::with(&sandbox.url(), caps).await;
    let tone = recording("tone.mp3");
    // Two set 1,000 aside each; with 500 left, one more is sent.
    for _ in 0..3 {
        hear(&bursar, &tone).await;
    }
    let body = json!({"audio_base64": tone});
    let refused = post(bursar.address, TRANSCRIPTIONS, &body).await;
    assert_eq!(refused.code(), Some("cap_reached"), "{}", refused.text());
    let refused = post(bursar.address, SPEECH, &json!({"text": "hi"})).await;
    assert_eq!(refused.code(), Some("cap_reached"), "{}", refused.text());

    assert_eq!(sandbox.debits().await.len(), 3);
    let held = bursar.metric("bursar_total_cap_held_usd", "");
    assert!((held - 0.003).abs() < 1e-9, "{held}");
    assert_eq!(bursar.billed(), 0, "what is held is no billed money");
    let bursar = bursar.restart(caps).await;
    let refused = post(bursar.address, SPEECH, &json!({"text": "hi"})).await;
    assert_eq!(refused.code(), Some("cap_reached"), "{}", refused.text());
    let free = ask(bursar.address, "GET", "/v1/models", &[], b"").await;
    assert_eq!(free.status, 200);
}
