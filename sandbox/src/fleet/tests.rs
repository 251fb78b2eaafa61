//! The reasoner and the transcriber against a server that speaks the protocol, and what is printed of a
//! key.

use super::*;
use crate::Scenario;
use axum::{Json, Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use serde_json::json;
use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};
use tracing::{Event, Metadata, Subscriber, field::Field, field::Visit, span};

/// What a server got.
type RequestFacts = Arc<Mutex<Vec<String>>>;

/// A server whose chat returns this text, and a fleet with it in the place.
async fn fleet(role: &str, said: &'static str, status: StatusCode) -> (Fleet, RequestFacts) {
    let seen = RequestFacts::default();
    let note = move |State(seen): State<RequestFacts>, body: Bytes| async move {
        let body = String::from_utf8_lossy(&body).into_owned();
        seen.lock().unwrap().push(body);
        let choice = json!({"message": {"content": said}, "finish_reason": "stop"});
        let answer = json!({"choices": [choice], "text": said, "language": "en"});
        (status, Json(answer))
    };
    let router = Router::new()
        .route("/v1/chat/completions", post(note))
        .route("/v1/audio/transcriptions", post(note))
        .with_state(Arc::clone(&seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let text = format!(
        "[[model]]\nrole = \"{role}\"\nbase_url = \"http://{address}/v1/\"\nmodel = \"m\"\napi_key = \"sk-own-key\""
    );
    let scenario = Scenario::from_toml_str(&text).unwrap();
    let fleet = Fleet::new(1, &scenario.models, &Clock::system()).unwrap();
    (fleet, seen)
}

fn one_word() -> Value {
    json!({"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}})
}

// Interface, POST /v1/tasks/match: "an LLM reasoning router that falls back … when the router is unavailable".
#[tokio::test]
async fn a_reasoner_gives_a_value_of_the_schema_or_nothing() {
    let rows = [
        (r#"{"word": "river"}"#, StatusCode::OK, true),
        (
            "<think>{}</think>\n```json\n{\"word\": \"river\"}\n```",
            StatusCode::OK,
            true,
        ),
        (r#"{"word": 7}"#, StatusCode::OK, false),
        ("river", StatusCode::OK, false),
        (
            r#"{"word": "river"}"#,
            StatusCode::INTERNAL_SERVER_ERROR,
            false,
        ),
    ];
    for (said, status, is_some) in rows {
        let (fleet, seen) = fleet("reasoner", said, status).await;

        let value = fleet.reason("Choose.", "one word", &one_word()).await;

        assert_eq!(
            value,
            is_some.then(|| json!({"word": "river"})),
            "{status} {said}"
        );
        let asked: Value = serde_json::from_str(&seen.lock().unwrap()[0]).unwrap();
        assert_eq!(
            asked["response_format"]["json_schema"]["schema"],
            one_word()
        );
        assert_eq!(asked["messages"][0]["content"], "Choose.");
    }
}

// Interface, POST /v1/audio/transcriptions.
#[tokio::test]
async fn a_transcriber_gets_the_recording_and_gives_its_words() {
    let (fleet, seen) = fleet("transcription", "good morning", StatusCode::OK).await;

    let heard = fleet.transcribe(b"RIFF....", "a.wav", Some("en")).await;

    let heard = heard.unwrap().unwrap();
    assert_eq!(heard.text, "good morning");
    assert_eq!(heard.language.as_deref(), Some("en"));
    let form = seen.lock().unwrap()[0].clone();
    for part in [
        "name=\"model\"\r\n\r\nm\r\n",
        "name=\"language\"\r\n\r\nen\r\n",
        "filename=\"a.wav\"",
        "\r\n\r\nRIFF....\r\n",
    ] {
        assert!(form.contains(part), "{form}");
    }
}

#[tokio::test]
async fn a_failing_transcriber_gives_the_status_of_a_failing_backend() {
    let rows = [
        (StatusCode::INTERNAL_SERVER_ERROR, 502),
        (StatusCode::TOO_MANY_REQUESTS, 503),
        (StatusCode::BAD_REQUEST, 400),
    ];
    for (status, expected) in rows {
        let (fleet, _) = fleet("transcription", "x", status).await;
        let heard = fleet.transcribe(b"RIFF", "a.wav", None).await.unwrap();
        assert_eq!(heard.unwrap_err().status().as_u16(), expected);
    }
}

#[tokio::test]
async fn without_a_server_judge_reasoner_and_transcriber_are_none() {
    let fleet = Fleet::new(1, &[], &Clock::system()).unwrap();

    assert!(fleet.judge("q", None, "a").await.is_none());
    assert!(fleet.reason("s", "u", &one_word()).await.is_none());
    assert!(fleet.transcribe(b"", "a.wav", None).await.is_none());
}

/// Keeps the fields of every event.
#[derive(Clone, Default)]
struct Listener {
    text: Arc<Mutex<String>>,
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("bursar_sandbox")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.text.lock().unwrap()));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

#[tokio::test]
async fn neither_the_log_nor_a_debug_print_shows_a_servers_key_or_words() {
    let listener = Listener::default();
    let _guard = tracing::subscriber::set_default(listener.clone());
    let said = "what the server said";
    let (refusing, _) = fleet("reasoner", said, StatusCode::UNAUTHORIZED).await;
    let (nonsense, _) = fleet("judge", said, StatusCode::OK).await;
    let absent = "[[model]]\nrole = \"judge\"\nbase_url = \"http://127.0.0.1:1\"\nmodel = \"m\"\napi_key = \"sk-own-key\"";
    let scenario = Scenario::from_toml_str(absent).unwrap();
    let absent = Fleet::new(1, &scenario.models, &Clock::system()).unwrap();

    refusing.reason("s", "u", &one_word()).await;
    nonsense.judge("q", None, "a").await;
    absent.judge("q", None, "a").await;

    let mut logged = listener.text.lock().unwrap().clone();
    assert!(logged.contains("status=401"), "{logged}");
    assert!(logged.contains("no number"), "{logged}");
    assert!(logged.contains("cannot be reached"), "{logged}");
    let _ = write!(logged, "{refusing:?} {absent:?} {:?}", scenario.models);
    for secret in ["sk-own-key", said] {
        assert!(!logged.contains(secret), "{logged}");
    }
}
