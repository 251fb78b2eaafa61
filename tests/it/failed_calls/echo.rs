//! A service whose refusals repeat the request, its key and more: nothing of it gets into the log, the journal, `explain` or
//! a metric.

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{CHAT, LINES, Logged};
use crate::support::KEY;
use crate::support::origin::json;
use crate::support::wire::request;

/// What must be nowhere: whole, and each run of 16 bytes of it.
const PROMPT: &str =
    "The patient's name is \"Zoë Quill\", born 1961-05-04; diagnosis: C50.9 (left)";

/// The token of an operator's own making.
const TOKEN: &str = "an-operators-own-token-of-39-characters";

/// What an app sends to a gateway of its own, in a header that is none of bursar's.
const IN_HEADER: &str = "hvs.a-token-of-another-program";

/// How a refusal repeats what came: body as text, `Authorization` as it was sent.
type Spelling = fn(&str, &str) -> String;

fn detail(words: &str) -> String {
    serde_json::json!({ "detail": words }).to_string()
}

fn ascii(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

const SPELLINGS: [(&str, Spelling); 13] = [
    ("as it came", |body, _| {
        detail(&format!("cannot read {body}"))
    }),
    ("as text", |_, _| detail(&format!("no: {PROMPT} {TOKEN}"))),
    ("as JSON in JSON", |body, _| {
        detail(&serde_json::to_string(body).expect("JSON"))
    }),
    ("thrice", |body, _| {
        let once = serde_json::to_string(body).expect("JSON");
        detail(&serde_json::to_string(&once).expect("JSON"))
    }),
    ("every letter as an escape", |_, _| {
        format!("{{\"detail\":\"{}\"}}", ascii(PROMPT))
    }),
    ("escapes within", |_, _| detail(&ascii(PROMPT))),
    ("in capitals", |_, _| detail(&PROMPT.to_uppercase())),
    ("in a list", |body, _| {
        serde_json::json!({"detail": [{
            "loc": ["body", PROMPT], "type": PROMPT, "msg": format!("bad: {PROMPT}"), "input": body,
            "ctx": {"given": PROMPT},
        }]})
        .to_string()
    }),
    ("with the key", |_, key| {
        detail(&format!("{key} may not {PROMPT}"))
    }),
    ("with the key, masked", |_, key| {
        let (most, _) = key.split_at(key.len() - 3);
        detail(&format!("Incorrect API key provided: {most}***"))
    }),
    ("with the key in capitals", |_, key| {
        detail(&format!("no: {}", key.to_uppercase()))
    }),
    ("with a header", |_, _| detail(&format!("no: {IN_HEADER}"))),
    ("behind much else", |body, key| {
        detail(&format!(
            "{}{key}{body}",
            format!("{body}{key}").repeat(2000)
        ))
    }),
];

/// Answers each request by the next spelling.
async fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut spellings = SPELLINGS.iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some((head, body)) = read(&mut stream).await else {
                continue;
            };
            let Some((_, spelling)) = spellings.next() else {
                return;
            };
            let key = head
                .lines()
                .find_map(|line| line.strip_prefix("Authorization: "))
                .or_else(|| {
                    head.lines()
                        .find_map(|line| line.strip_prefix("authorization: "))
                });
            let said = spelling(&body, key.expect("a key"));
            let answer = json(400, &[("Connection", "close")], &said);
            stream.write_all(&answer).await.ok();
        }
    });
    url
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut came = Vec::new();
    loop {
        if stream.read_buf(&mut came).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&came).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or_default() {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}

/// What of the secrets stands in a text: any run of 16 bytes, in any case of its letters.
fn found(what: &str, text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let secrets = [
        PROMPT,
        KEY,
        TOKEN,
        IN_HEADER,
        "\"messages\":[{\"role\":\"user\",\"content\":",
    ];
    let mut found = Vec::new();
    for secret in secrets {
        let secret = secret.to_lowercase();
        let letters: Vec<char> = secret.chars().collect();
        for run in letters.windows(16) {
            let run: String = run.iter().collect();
            if text.contains(&run) {
                found.push(format!("{what}: {run:?}"));
                break;
            }
        }
    }
    found
}

fn journal(state: &Path) -> String {
    let mut text = String::new();
    for file in std::fs::read_dir(state.join("journal")).expect("a journal") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("a file");
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    text
}

#[tokio::test]
async fn a_service_that_repeats_the_request_gets_none_of_it_into_log_or_ledger() {
    let url = service().await;
    let bursar = Logged::start(&url, LINES).await;
    let body = serde_json::json!({
        "model": "auto",
        "messages": [{"role": "user", "content": PROMPT}],
        "user": TOKEN,
    })
    .to_string();
    let mut details = 0;
    let mut wrong = Vec::new();
    for (name, _) in SPELLINGS {
        let mut app = bursar.daemon.connect().await;
        let authorization = format!("Bearer {TOKEN}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-Vault-Token", IN_HEADER),
        ];
        app.send(request("POST", CHAT, &headers, &body)).await;
        let answer = app.answer().await;
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        let id = answer.header("x-bursar-entry").expect("an id").to_owned();
        let line = bursar.line("entry", &id.clone().into()).await;
        let (printed, entry) = bursar.explained(&id).await;
        assert_eq!(entry["service_detail"], line["detail"], "{name}");
        let detail = line["detail"].as_str().expect("a detail");
        assert!(detail.chars().count() <= 256, "{name}: {detail}");
        assert!(detail.contains('…'), "{name}: {detail}");
        details += 1;
        wrong.extend(found(name, &printed));
        wrong.extend(found(name, &entry.to_string()));
    }
    assert_eq!(details, SPELLINGS.len());
    wrong.extend(found("the log", &bursar.log()));
    let state = bursar.state();
    wrong.extend(found("the journal", &journal(Path::new(&state))));
    let metrics = bursar.daemon.admin_page("/metrics").await.text();
    wrong.extend(found("the metrics", &metrics));
    let page = bursar.daemon.admin_page("/").await.text();
    wrong.extend(found("the page", &page));
    assert!(wrong.is_empty(), "{wrong:#?}");
    bursar.daemon.terminate().await;
}

#[tokio::test]
async fn with_service_detail_off_nothing_that_the_service_says_is_kept() {
    let url = service().await;
    let lines = format!("{LINES}service_detail = false\n");
    let bursar = Logged::start(&url, &lines).await;
    let answer = bursar.daemon.connect().await;
    let answer = answer.post(CHAT, &crate::support::chat("hi")).await;
    assert!(
        answer.text().contains("cannot read"),
        "the app has all of it"
    );
    let id = answer.header("x-bursar-entry").expect("an id").to_owned();
    let line = bursar.line("entry", &id.clone().into()).await;
    let (printed, entry) = bursar.explained(&id).await;
    assert!(line.get("detail").is_none(), "{line}");
    assert!(entry.get("service_detail").is_none(), "{entry}");
    for text in [printed, bursar.log(), journal(Path::new(&bursar.state()))] {
        assert!(!text.contains("cannot read"), "{text}");
    }
    bursar.daemon.terminate().await;
}
