//! The hand-written transcripts of `tests/golden` against the sandbox, and against bursar in front
//! of it. They arbitrate between two programs that share no protocol code.
//!
//! Promise: the language is that of `tests/golden/README.md`, a mismatch is reported with file,
//! exchange, line and the actual bytes, and no transcript is ever rewritten by a test.

mod compare;
mod stream;
mod transcript;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use bursar_sandbox::Options;

use self::compare::Kept;
use self::transcript::{Body, Exchange, Through, Transcript, Wanted};
use crate::support::{Answer, Bursar, KEY, Sandbox, Wire};

/// What a run of one file fills into its requests.
struct Fillings {
    host: String,
    /// What was kept of answers, and `idem`.
    kept: Kept,
}

#[tokio::test]
async fn the_sandbox_alone_answers_as_the_transcripts_say() {
    let sandbox = roomy_sandbox().await;
    let run = run_all(Through::Sandbox, sandbox.address).await;
    assert!(run >= 44, "only {run} transcripts are for the sandbox");
}

#[tokio::test]
async fn bursar_before_the_sandbox_answers_as_the_transcripts_say() {
    let sandbox = roomy_sandbox().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let run = run_all(Through::Bursar, bursar.address).await;
    assert!(run >= 42, "only {run} transcripts are for bursar");
}

#[test]
fn every_transcript_names_clauses_of_the_interface_and_no_open_question() {
    let page = std::fs::read_to_string(root().join("docs/interface.md")).expect("the interface");
    let known: BTreeSet<&str> = page.lines().filter_map(clause_id).collect();
    assert!(known.len() > 200, "only {} clauses were found", known.len());
    let mut wrong = Vec::new();
    for transcript in transcripts() {
        for clause in &transcript.clauses {
            if clause.starts_with("OPEN-") || !known.contains(clause.as_str()) {
                wrong.push(format!("{}: {clause}", transcript.file));
            }
        }
        if transcript.clauses.is_empty() || transcript.through.is_empty() {
            wrong.push(format!("{}: no clauses, or no `through`", transcript.file));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The id that a line of the interface opens with: `^(#+ |\| )([A-Z]+(-[A-Z0-9]+)*-\d+)\b`.
fn clause_id(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("| ").or_else(|| {
        let rest = line.trim_start_matches('#');
        (rest.len() < line.len()).then(|| rest.strip_prefix(' '))?
    })?;
    let is_id =
        |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '-';
    let id = rest.split(|letter| !is_id(letter)).next()?;
    let number = id.rsplit('-').next()?;
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (id.contains('-') && numbered).then_some(id)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn transcripts() -> Vec<Transcript> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join("tests/golden"))
        .expect("the directory of transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "http"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no transcripts");
    paths.iter().map(|path| Transcript::read(path)).collect()
}

/// All files of a pass share a sandbox, and the rate is not what they are about.
async fn roomy_sandbox() -> Sandbox {
    Sandbox::with(Options {
        per_minute_max: 10_000,
        ..Options::default()
    })
    .await
}

/// Runs every transcript that is meant for this path; returns how many there were.
async fn run_all(through: Through, address: SocketAddr) -> usize {
    let mut complaints = Vec::new();
    let mut run = 0;
    for transcript in transcripts() {
        if transcript.through.contains(&through) {
            run += 1;
            complaints.extend(run_file(&transcript, address).await);
        }
    }
    assert!(
        complaints.is_empty(),
        "{} mismatches:\n\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
    run
}

async fn run_file(transcript: &Transcript, address: SocketAddr) -> Vec<String> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).expect("random bytes");
    let idem: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut fillings = Fillings {
        host: address.to_string(),
        kept: Kept::from([("idem".to_owned(), idem)]),
    };
    let mut complaints = Vec::new();
    let mut before: Option<Answer> = None;
    for (number, exchange) in transcript.exchanges.iter().enumerate() {
        let (answer, differences) = converse(exchange, &fillings, before.as_ref(), address).await;
        if let (Body::Json(_, pattern), Ok(value)) =
            (&exchange.wanted.body, serde_json::from_slice(&answer.body))
        {
            compare::keep(pattern, &value, &mut fillings.kept);
        }
        for (line, what) in differences {
            complaints.push(format!(
                "tests/golden/{}:{line}: exchange {}: {what}\n  came: {} {:?}\n  body: {}",
                transcript.file,
                number + 1,
                answer.status,
                answer.headers,
                answer.text(),
            ));
        }
        before = Some(answer);
    }
    complaints
}

/// One request and its answer, with the mismatch. An answer that is expected to arrive later is requested
/// again, for 10 s.
async fn converse(
    exchange: &Exchange,
    fillings: &Fillings,
    before: Option<&Answer>,
    address: SocketAddr,
) -> (Answer, Vec<(usize, String)>) {
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let mut wire = Wire::tcp(address).await;
        wire.send(request(exchange, fillings)).await;
        let answer = wire.answer().await;
        let wrong = judge(&exchange.wanted, &answer, before, &fillings.kept);
        let late = tokio::time::Instant::now() > until;
        if wrong.is_empty() || !exchange.at_last || late {
            return (answer, wrong);
        }
        tokio::task::yield_now().await;
    }
}

fn request(exchange: &Exchange, fillings: &Fillings) -> String {
    let fill = |text: &str| {
        let text = text.replace("{host}", &fillings.host).replace("{key}", KEY);
        compare::filled_in(&text, &fillings.kept)
    };
    let body = fill(&exchange.body);
    let mut text = format!("{}\r\n", fill(&exchange.request_line));
    for header in &exchange.headers {
        text.push_str(&fill(header));
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}")
}

/// Every difference between an answer and the expected one, each with its line.
fn judge(
    wanted: &Wanted,
    came: &Answer,
    before: Option<&Answer>,
    kept: &Kept,
) -> Vec<(usize, String)> {
    let mut complaints = Vec::new();
    if !came.complete {
        complaints.push((wanted.line, "the answer broke off".to_owned()));
    }
    if !wanted.statuses.contains(&came.status) {
        let what = format!("status {:?} wanted, {} came", wanted.statuses, came.status);
        complaints.push((wanted.line, what));
    }
    for header in &wanted.headers {
        if let Err(what) = header.check(came, before) {
            complaints.push((header.line, what));
        }
    }
    match &wanted.body {
        Body::Any => {}
        Body::Same(line) => {
            let same = before.is_some_and(|before| before.body == came.body);
            if !same {
                let text = before.map(Answer::text);
                complaints.push((*line, format!("not the body of before, which was {text:?}")));
            }
        }
        Body::Json(line, pattern) => match serde_json::from_slice(&came.body) {
            Ok(value) => {
                let found = compare::differences(&compare::filled(pattern, kept), &value);
                complaints.extend(found.into_iter().map(|what| (*line, what)));
            }
            Err(_) => complaints.push((*line, "the body is no JSON".to_owned())),
        },
        Body::Stream(lines) => {
            let filled = lines
                .iter()
                .map(|(line, text)| (*line, compare::filled_in(text, kept)));
            let filled: Vec<_> = filled.collect();
            complaints.extend(stream::check(&filled, &came.text()).err());
        }
    }
    complaints
}

/// The runner itself: what it must not let pass.
#[test]
fn the_runner_sees_a_wrong_status_header_member_comment_and_end() {
    let text = "# clauses: SSE-2\n# through: sandbox\n\nGET / HTTP/1.1\nHost: {host}\n\n<<<\n\
        HTTP/1.1 200\nContent-Type: text/event-stream\nX-Amount: #+\n!X-Gone:\n\n\
        data: {\"a\": \"#+\", \"b\": \"~\"}\n...\ndata: {\"z\": \"*end*\"}\n\
        : service-billed-micro-usd #+\n: service-served-by specialist|frontier\ndata: [DONE]\n";
    let transcript = Transcript::parse("planted.http", text);
    let wanted = &transcript.exchanges[0].wanted;
    let good = "data: {\"a\":1}\n\ndata: {\"z\": \"no\"}\n\ndata: {\"z\": \"the end!\"}\n\n\
        : service-served-by frontier\n: other x\n: service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
    let answer = |status: u16, body: &str, headers: &[(&str, &str)]| Answer {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.as_bytes().to_vec(),
        complete: true,
        reset: false,
    };
    let headers = [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("x-amount", "12"),
    ];
    let judge = |wanted, came: &Answer, before| judge(wanted, came, before, &Kept::new());
    let judged = judge(wanted, &answer(200, good, &headers), None);
    assert!(judged.is_empty(), "{judged:?}");

    let bad_bodies = [
        ("a is 0", good.replace("\"a\":1", "\"a\":0")),
        ("b is there", good.replace("\"a\":1", "\"a\":1,\"b\":2")),
        ("no end member", good.replace("the end!", "that is all")),
        ("the amount is 0", good.replace("usd 7", "usd 0")),
        ("the amount is signed", good.replace("usd 7", "usd +7")),
        ("another word", good.replace("by frontier", "by none")),
        (
            "no comment",
            good.replace(": service-billed-micro-usd 7\n", ""),
        ),
        (
            "comment after the end",
            format!("{good}: service-billed-micro-usd 7\n"),
        ),
        (
            "two amounts",
            good.replace(": other x", ": service-billed-micro-usd 8"),
        ),
        ("no end mark", good.replace("data: [DONE]\n", "")),
        ("two end marks", format!("{good}data: [DONE]\n")),
        ("an event name", format!("event: x\n{good}")),
        ("comment too early", {
            let comment = ": service-billed-micro-usd 7\n";
            format!("{comment}\n{}", good.replace(comment, ""))
        }),
    ];
    for (what, body) in bad_bodies {
        assert_ne!(body, good, "{what}");
        assert!(
            !judge(wanted, &answer(200, &body, &headers), None).is_empty(),
            "passed: {what}"
        );
    }
    let bad_heads: [(u16, &[(&str, &str)]); 5] = [
        (201, &headers),
        (
            200,
            &[("content-type", "text/event-streams"), ("x-amount", "12")],
        ),
        (
            200,
            &[("content-type", "text/event-stream"), ("x-amount", "0")],
        ),
        (200, &[("content-type", "text/event-stream")]),
        (
            200,
            &[
                ("content-type", "text/event-stream"),
                ("x-amount", "1"),
                ("x-gone", ""),
            ],
        ),
    ];
    for (status, headers) in bad_heads {
        let judged = judge(wanted, &answer(status, good, headers), None);
        assert_eq!(judged.len(), 1, "{status} {headers:?}: {judged:?}");
    }
}

/// What a file keeps of one answer, and what it must refuse in the next.
#[test]
fn what_was_kept_is_filled_in_and_wanted_again() {
    let first = serde_json::json!({"run": {"id": "{run_id}", "n": [{"of": "{set}"}]}});
    let came = serde_json::json!({"run": {"id": "run_7", "n": [{"of": "es_1"}], "more": 1}});
    let mut kept = Kept::new();

    compare::keep(&first, &came, &mut kept);

    let wanted = compare::filled(&first, &kept);
    assert!(compare::differences(&wanted, &came).is_empty());
    let other = serde_json::json!({"run": {"id": "run_8", "n": [{"of": "es_1"}]}});
    assert_eq!(compare::differences(&wanted, &other).len(), 1);
    let text = "# clauses: RUN-5\n# through: sandbox\n\nGET /v1/eval-runs/{run_id} HTTP/1.1\n\n<<< at last\n\
        HTTP/1.1 200\n";
    let transcript = Transcript::parse("planted.http", text);
    let exchange = &transcript.exchanges[0];
    let fillings = Fillings {
        host: String::new(),
        kept,
    };
    let sent = request(exchange, &fillings);
    assert!(exchange.at_last);
    assert!(
        sent.starts_with("GET /v1/eval-runs/run_7 HTTP/1.1\r\n"),
        "{sent}"
    );
}

/// Named events: the name belongs to the data below it, and one too many is seen.
#[test]
fn the_runner_sees_a_wrong_event_name_order_and_end() {
    let lines = |text: &str| -> Vec<(usize, String)> {
        let lines = text.lines().enumerate();
        lines.map(|(at, line)| (at, line.to_owned())).collect()
    };
    let wanted = lines("event: progress\n...\nevent: complete\ndata: {\"endpoint\": \"?\"}");
    let progress = "event: progress\ndata: {\"pct\": 1}\n\n";
    let complete = "event: complete\ndata: {\"endpoint\": {}}\n\n";
    let good = format!("{progress}{progress}{complete}");
    assert_eq!(stream::check(&wanted, &good), Ok(()));
    for (what, bad) in [
        ("no end", format!("{progress}{progress}")),
        ("an event behind the end", format!("{good}{progress}")),
        (
            "another name",
            good.replace("event: complete", "event: done"),
        ),
        (
            "another in between",
            good.replacen("event: progress", "event: error", 1),
        ),
        ("no name", good.replacen("event: progress\n", "", 1)),
        ("another member", good.replace("endpoint", "url")),
    ] {
        assert!(stream::check(&wanted, &bad).is_err(), "passed: {what}");
    }
    let plain = lines("data: {\"pct\": 1}");
    assert!(
        stream::check(&plain, progress).is_err(),
        "a name that was not asked for"
    );
}
