//! The key hidden by JSON's escapes: as long as the text stays as received, it is not visible there;
//! where bursar parses the text and writes it anew, the key is removed.

use crate::support::wire::request;
use crate::support::{Answer, Bursar, KEY, Origin, Step, chat, chat_stream, origin};

const SETTINGS: &str = "[streams]\nagent_receipts = \"exact\"\n\
    [[app]]\nname = \"default\"\non_clarification = \"error\"\n";

/// The text that the app reads when the service answers `said` with every letter of the key
/// escaped.
async fn read(path: &str, body: &str, status: u16, headers: &[(&str, &str)], said: &str) -> Answer {
    let escaped: String = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let said = said.replace("KEY", &escaped);
    let service = Origin::start([Step::Answer(origin::json(status, headers, &said))]).await;
    let bursar = Bursar::with(&service.url(), SETTINGS).await;
    let mut app = bursar.connect().await;
    app.send(request("POST", path, &[], body)).await;
    app.answer().await
}

#[tokio::test]
async fn the_key_is_struck_out_of_what_is_written_anew() {
    let turn = r#"{"id":"a","choices":[{"index":0,"message":{"role":"assistant","content":"it is KEY."},"finish_reason":"stop"}],"usage":{"total_tokens":3}}"#;
    let asks = [
        ("X-Service-Billed", "3"),
        ("X-Service-Input-Required", "text"),
    ];
    let chat_path = "/v1/chat/completions";
    let cases = [
        (
            "a turn made a stream",
            "/agent/v1/chat/completions",
            chat_stream("hi"),
            200,
            &asks[..1],
            turn,
        ),
        (
            "a question made an error",
            chat_path,
            chat("hi"),
            200,
            &asks[..],
            turn,
        ),
        (
            "a detail made an error object",
            chat_path,
            chat("hi"),
            400,
            &[],
            r#"{"detail":"it is KEY."}"#,
        ),
    ];
    for (name, path, body, status, headers, said) in cases {
        let answer = read(path, &body, status, headers, said).await;
        let text = answer.text();
        assert!(!text.contains(KEY), "{name}: {text}");
        assert!(text.contains("it is ***."), "{name}: {text}");
        assert!(answer.complete, "{name}: {text}");
    }
}
