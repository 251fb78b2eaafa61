//! OpenAI's form of the speech routes: through bursar, to the sandbox's own form and back.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bursar::ledger::entry::State;
use bursar::protocol::Dialect;
use bursar_sandbox::{Options, Settings, Synthesis};
use serde_json::{Value, json};

use super::stage::{FORM, SPEECH, TRANSCRIPTIONS, ask, form, post};
use crate::support::origin::{Received, json as answer_of};
use crate::support::{Answer, Bursar, Origin, Sandbox, Step};

const TEXT: &str = "The river is wide and the water is cold.";

/// As large as the service's limit, in bytes.
const LIMIT: usize = 30 * 1024 * 1024;

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

fn recording(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sandbox/tests/fixtures");
    std::fs::read(folder.join(name)).expect("a recording")
}

/// A recording and fields behind it, each a name and a value.
async fn hear(bursar: &Bursar, file: &[u8], fields: &[(&str, &str)]) -> Answer {
    let mut parts: Vec<(&str, Option<&str>, &[u8])> = vec![("file", Some("a.wav"), file)];
    parts.extend(
        fields
            .iter()
            .map(|(name, value)| (*name, None, value.as_bytes())),
    );
    ask(
        bursar.address,
        "POST",
        TRANSCRIPTIONS,
        &[FORM],
        &form(&parts),
    )
    .await
}

async fn say(bursar: &Bursar, body: &Value) -> Answer {
    post(bursar.address, SPEECH, body).await
}

fn param(answer: &Answer) -> String {
    let param = answer.json()["error"]["param"].clone();
    param.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn what_was_said_as_bytes_is_heard_as_a_form_and_each_is_one_debit_with_its_seconds() {
    let sandbox = speaking().await;
    let lines = "[models]\nvoices = { alloy = \"bass\" }\nspeech_formats = [\"wav\"]\n";
    let bursar = Bursar::with(&sandbox.url(), lines).await;

    let said = say(
        &bursar,
        &json!({"model": "tts-1", "input": TEXT, "voice": "alloy", "response_format": "wav",
                "instructions": "slowly"}),
    )
    .await;
    assert_eq!(said.status, 200, "{}", said.text());
    assert_eq!(said.header("content-type"), Some("audio/wav"));
    assert_eq!(
        (&said.body[..4], &said.body[8..12]),
        (&b"RIFF"[..], &b"WAVE"[..])
    );
    let plain = say(&bursar, &json!({"input": TEXT, "voice": "nova"})).await;
    assert_eq!(plain.header("content-type"), Some("audio/wav"));
    assert_ne!(plain.body, said.body, "the default voice is another");
    let entry = bursar.entry_of(&said);
    assert_eq!(
        (entry.spoken, entry.state),
        (Dialect::Audio, State::Unreported)
    );
    assert_eq!(entry.model.as_deref(), Some("tts-1"));
    assert_eq!(entry.dropped.to_string(), "instructions");
    assert!(entry.audio_ms.is_some_and(|ms| ms > 1000), "{entry:?}");
    assert_eq!(bursar.entry_of(&plain).dropped.to_string(), "voice");

    let heard = hear(
        &bursar,
        &said.body,
        &[("model", "whisper-1"), ("prompt", "rivers")],
    )
    .await;
    assert_eq!(heard.status, 200, "{}", heard.text());
    assert_eq!(heard.json(), json!({"text": TEXT}));
    let entry = bursar.entry_of(&heard);
    assert_eq!(
        (entry.spoken, entry.dropped.to_string().as_str()),
        (Dialect::Audio, "prompt")
    );
    assert_eq!(entry.audio_ms, bursar.entry_of(&said).audio_ms);
    let text = hear(&bursar, &said.body, &[("response_format", "text")]).await;
    assert_eq!(
        (text.text().as_str(), text.header("content-type")),
        (TEXT, Some("text/plain; charset=utf-8"))
    );
    let verbose = hear(
        &bursar,
        &said.body,
        &[("response_format", "verbose_json"), ("language", "en")],
    )
    .await;
    let verbose = verbose.json();
    assert_eq!(
        (&verbose["text"], &verbose["language"]),
        (&json!(TEXT), &json!("en"))
    );
    assert!(
        verbose["duration"]
            .as_f64()
            .is_some_and(|seconds| seconds > 1.0),
        "{verbose}"
    );
    for (spoken, count) in [("openai_audio", 5.0), ("responses", 0.0), ("messages", 0.0)] {
        let label = format!("spoken=\"{spoken}\"");
        let counted = bursar.metric("bursar_translated_requests_total", &label);
        assert_eq!(counted, count, "{spoken}");
    }

    let debits = sandbox.debits().await;
    let routes: Vec<_> = debits.iter().map(|debit| debit["route"].clone()).collect();
    assert_eq!(
        routes,
        [
            SPEECH,
            SPEECH,
            TRANSCRIPTIONS,
            TRANSCRIPTIONS,
            TRANSCRIPTIONS
        ]
    );
}

/// Byte for byte what Open WebUI sends (python-requests): fields first, a file without a type of its own.
#[tokio::test]
async fn open_webuis_requests_are_answered() {
    let sandbox = speaking().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let edge = "0123456789abcdef0123456789abcdef";
    let mut body = format!(
        "--{edge}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n\
         --{edge}\r\nContent-Disposition: form-data; name=\"language\"\r\n\r\nen\r\n\
         --{edge}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"c0ffee.mp3\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(&recording("tone.mp3"));
    body.extend_from_slice(format!("\r\n--{edge}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={edge}");
    let headers = [("Content-Type", kind.as_str()), ("Accept", "*/*")];
    let heard = ask(bursar.address, "POST", TRANSCRIPTIONS, &headers, &body).await;
    assert_eq!(heard.status, 200, "{}", heard.text());
    assert_eq!(heard.json(), json!({"text": ""}), "a tone has no words");

    let said = say(
        &bursar,
        &json!({"model": "tts-1", "input": TEXT, "voice": "alloy"}),
    )
    .await;
    assert_eq!(said.status, 200, "{}", said.text());
    assert_eq!(&said.body[..4], b"RIFF");
}

#[tokio::test]
async fn what_the_service_does_not_have_is_refused_by_name_and_not_sent() {
    let origin = Origin::start([]).await;
    let bursar = Bursar::before(&origin.url()).await;
    for (field, value, refused) in [
        ("response_format", "srt", "response_format"),
        ("response_format", "vtt", "response_format"),
        (
            "timestamp_granularities[]",
            "word",
            "timestamp_granularities",
        ),
        ("stream", "true", "stream"),
        ("response_format", "diarized_json", "response_format"),
    ] {
        let answer = hear(&bursar, b"RIFF", &[(field, value)]).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, Some("untranslatable")),
            "{field}"
        );
        assert_eq!(param(&answer), refused);
    }
    for (member, value) in [
        ("response_format", json!("mp3")),
        ("speed", json!(1.25)),
        ("stream_format", json!("sse")),
        ("stream", json!(true)),
    ] {
        let mut body = json!({"input": TEXT, "voice": "alloy"});
        body[member] = value;
        let answer = say(&bursar, &body).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, Some("untranslatable")),
            "{member}"
        );
        assert_eq!(param(&answer), member);
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    let answer = ask(
        bursar.address,
        "POST",
        SPEECH,
        &[FORM],
        &form(&[("input", None, b"x")]),
    )
    .await;
    assert_eq!(answer.status, 415, "speech is asked for in JSON");
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty());
}

#[tokio::test]
async fn a_recording_that_is_too_large_in_base64_is_refused_with_the_largest_size_that_fits() {
    let origin = Origin::start([Step::Answer(answer_of(200, &[], r#"{"text":"x"}"#))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let largest = (LIMIT - 19) / 4 * 3;
    for bytes in [largest + 1, LIMIT - 300, LIMIT + 1] {
        let answer = hear(&bursar, &vec![7; bytes], &[]).await;
        assert_eq!(
            (answer.status, answer.code()),
            (413, Some("body_too_large")),
            "{bytes}"
        );
        assert!(
            answer.text().contains("The largest file has 2359"),
            "{}",
            answer.text()
        );
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert!(origin.received().is_empty() && bursar.entries().is_empty());

    let answer = hear(&bursar, &vec![7; largest], &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let received = origin.received();
    assert!(
        (LIMIT - 3..=LIMIT).contains(&received[0].body.len()),
        "{}",
        received[0].body.len()
    );
    assert_eq!(received[0].header("content-type"), Some("application/json"));
    let sent: Value = serde_json::from_slice(&received[0].body).expect("JSON");
    let audio = STANDARD.decode(sent["audio_base64"].as_str().expect("base64"));
    assert!(audio.expect("base64").iter().all(|byte| *byte == 7));
}

/// Rule I7: a route without a key is asked once, and an SDK is told not to ask again.
#[tokio::test]
async fn a_request_that_may_have_run_is_sent_once_and_its_failure_says_not_to_retry() {
    let sound = STANDARD.encode(b"RIFF");
    // Neither sound nor a text.
    let unfit = answer_of(
        200,
        &[],
        r#"{"audio_base64":"*","duration_s":2,"format":"wav"}"#,
    );
    for (step, status, code) in [
        (Step::Close, 502, Some("outcome_unknown")),
        (Step::Reset, 502, Some("outcome_unknown")),
        (
            Step::Answer(answer_of(500, &[], r#"{"detail":"broken"}"#)),
            500,
            None,
        ),
        (Step::Answer(answer_of(504, &[], "")), 504, None),
        (Step::Answer(unfit), 400, Some("answer_untranslatable")),
        (
            Step::AnswerAndClose(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
                    .to_vec(),
            ),
            502,
            Some("upstream_broken"),
        ),
    ] {
        for route in [SPEECH, TRANSCRIPTIONS] {
            let what = format!("{route} {step:?}");
            let origin = Origin::start([step.clone()]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let answer = match route {
                SPEECH => say(&bursar, &json!({"input": TEXT})).await,
                _ => hear(&bursar, b"RIFF", &[("model", "whisper-1")]).await,
            };
            assert_eq!(answer.status, status, "{what}: {}", answer.text());
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{what}");
            let given = answer.header("x-bursar-error");
            assert_eq!(given, code, "{what}");
            let received = origin.received();
            let lines: Vec<_> = received.iter().map(Received::request_line).collect();
            assert_eq!(lines, [format!("POST {route} HTTP/1.1")], "{what}");
        }
    }
    // A 200 that cannot be given was bought: its seconds are known.
    let good = format!(r#"{{"audio_base64":"{sound}","duration_s":2,"format":"wav"}}"#);
    let origin = Origin::start([
        Step::Answer(answer_of(200, &[], r#"{"audio_base64":5,"duration_s":2}"#)),
        Step::Answer(answer_of(200, &[], &good)),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = say(&bursar, &json!({"input": TEXT})).await;
    assert!(answer.text().contains("billed again"), "{}", answer.text());
    assert_eq!(bursar.entry_of(&answer).audio_ms, Some(2000));
    let answer = say(&bursar, &json!({"input": TEXT})).await;
    assert_eq!(
        (answer.body.as_slice(), answer.header("content-length")),
        (&b"RIFF"[..], Some("4"))
    );
}

/// The same service request asked for in two forms is two purchases: neither app is given the other's form.
#[tokio::test]
async fn the_services_own_form_is_left_alone_and_translation_can_be_off() {
    let detail = r#"{"detail":"text is required"}"#;
    let own = r#"{"text":"hello","voice":"alto"}"#;
    let answer = r#"{"audio_base64":"UklGRg==","duration_s":1,"format":"wav"}"#;
    let origin = Origin::start([Step::Answer(answer_of(200, &[], answer))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let given = ask(bursar.address, "POST", SPEECH, &[], own.as_bytes()).await;
    assert_eq!(given.text(), answer);
    assert_eq!(origin.received()[0].body, own.as_bytes());
    let entry = bursar.entry_of(&given);
    assert!(entry.spoken.is_chat() && entry.dropped.is_empty());

    let origin = Origin::start([Step::Answer(answer_of(422, &[], detail))]).await;
    let bursar = Bursar::with(&origin.url(), "[models]\ntranslate = false\n").await;
    let openais = r#"{"input":"hello","voice":"alloy"}"#;
    let given = ask(bursar.address, "POST", SPEECH, &[], openais.as_bytes()).await;
    assert_eq!(given.status, 422);
    assert_eq!(origin.received()[0].body, openais.as_bytes());
    let given = hear(&bursar, b"RIFF", &[]).await;
    assert_eq!(
        (given.status, given.code()),
        (415, Some("content_type_refused"))
    );
    assert!(given.text().contains("audio_base64"), "{}", given.text());
}
