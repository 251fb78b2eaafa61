//! The organization's key, repeated by the service in every place of an answer. It is removed where it
//! appears letter by letter, and as JSON may spell it; a key hidden in any other way cannot be
//! recognised.

use super::{
    App, Ask, Books, Case, LOST, UNKNOWN, assert_no_key, case, contains, events, events_in, play,
};
use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{KEY, Origin, Step, chat_stream};

const PAID: Books = Books::Settled(7);
const END: &str = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";

/// As many stars as the key has letters: where the length was announced before, it stays.
fn stars() -> String {
    "*".repeat(KEY.len())
}

/// As JSON may spell it, as many letters escaped as can be.
fn in_json() -> String {
    KEY.chars()
        .map(|letter| format!("\\u{:04x}", u32::from(letter)))
        .collect()
}

fn answer(name: &str, status: u16, lines: &str, body: &str, app: App, books: Books) -> Case {
    let sends = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{lines}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    case(20, Ask::Chat, name, sends, app, books)
}

fn whole_answers() -> Vec<Case> {
    let said = format!("{{\"m\":\"Bearer {KEY}, {KEY}\"}}");
    let struck = b"{\"m\":\"Bearer ***, ***\"}".to_vec();
    let pieces: Vec<Vec<u8>> = said
        .as_bytes()
        .chunks(5)
        .map(|piece| chunk(std::str::from_utf8(piece).expect("ASCII")))
        .collect();
    let in_chunks = [
        b"HTTP/1.1 401 X\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        pieces.concat(),
        last_chunk(),
    ];
    let spelled = said.replace(KEY, &in_json());
    let far = format!("{{\"m\":\"{}{KEY}\"}}", "x".repeat(900_000));
    let mut rows = vec![
        answer(
            "an error",
            401,
            "",
            &said,
            App::Whole(401, struck.clone()),
            Books::Failed,
        ),
        answer(
            "an error of 900 KB",
            400,
            "",
            &far,
            App::Whole(400, far.replace(KEY, "***").into_bytes()),
            Books::Failed,
        ),
        answer(
            "a success",
            200,
            "X-Service-Billed: 7\r\n",
            &said,
            App::Whole(200, struck.clone()),
            PAID,
        ),
        answer(
            "an error in JSON's spelling",
            401,
            "",
            &spelled,
            App::Whole(401, struck.clone()),
            Books::Failed,
        ),
        answer(
            "a success in JSON's spelling",
            200,
            "X-Service-Billed: 7\r\n",
            &spelled,
            App::Whole(200, struck.clone()),
            PAID,
        ),
        answer(
            "a redirect",
            307,
            &format!("Location: http://elsewhere/?k={KEY}\r\n"),
            &said,
            App::Whole(307, struck.clone()),
            Books::Failed,
        ),
        case(
            20,
            Ask::Chat,
            "an error in chunks of 5",
            in_chunks.concat(),
            App::Whole(401, struck.clone()),
            Books::Failed,
        ),
        case(
            20,
            Ask::Chat,
            "the reason",
            format!("HTTP/1.1 400 {KEY}\r\nContent-Length: 2\r\n\r\n{{}}"),
            App::Whole(400, b"{}".to_vec()),
            Books::Failed,
        ),
        case(
            20,
            Ask::Chat,
            "a trailer",
            format!(
                "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nX-Key: {KEY}\r\n\r\n"
            ),
            App::Whole(200, b"{}".to_vec()),
            PAID,
        ),
        case(
            20,
            Ask::Chat,
            "an interim head",
            format!(
                "HTTP/1.1 103 Early\r\nLink: <{KEY}>\r\n\r\nHTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            App::Whole(200, b"{}".to_vec()),
            PAID,
        ),
        case(
            20,
            Ask::Chat,
            "a length",
            format!("HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n{{}}"),
            UNKNOWN,
            LOST,
        )
        .closing(),
        case(
            20,
            Ask::Free,
            "a free answer",
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{KEY}",
                KEY.len()
            ),
            App::Whole(200, b"***".to_vec()),
            Books::Nothing,
        ),
    ];
    for name in [
        "X-Debug",
        "WWW-Authenticate",
        "Server",
        "X-Request-Id",
        "Retry-After",
        "Content-Type",
        "Connection",
        "X-Service-Specialist",
        "X-Service-Route-Version",
        "X-Service-Served-By",
        "X-Service-Input-Required",
        "X-Service-Frontier-Would-Have-Cost",
        "Idempotent-Replayed",
        "Transfer-Encoding-X",
        "Content-Encoding",
    ] {
        let lines = format!("X-Service-Billed: 7\r\n{name}: a {KEY} b\r\n");
        rows.push(answer(
            &format!("a header {name}"),
            200,
            &lines,
            "{}",
            App::Whole(200, b"{}".to_vec()),
            PAID,
        ));
    }
    let lines = format!("X-Service-Billed: {KEY}\r\n");
    rows.push(
        answer(
            "an amount",
            200,
            &lines,
            "{}",
            App::Whole(200, b"{}".to_vec()),
            Books::Unreported,
        )
        .odd(&[bursar::ledger::entry::Anomaly::Malformed]),
    );
    let lines = format!("X-Service-Billed: 7\r\nX-{KEY}: a\r\n");
    rows.push(answer(
        "a header's name",
        200,
        &lines,
        "{}",
        App::Whole(200, b"{}".to_vec()),
        PAID,
    ));
    rows
}

fn flowing_answers() -> Vec<Case> {
    let stream = |name: &str, text: &str| {
        let text = format!("{text}{END}");
        let stars_in_json = "*".repeat(in_json().len());
        let struck = text.replace(KEY, &stars());
        let struck = struck.replace(&in_json(), &stars_in_json);
        case(
            20,
            Ask::Stream,
            name,
            events(&text),
            App::Whole(200, struck.into_bytes()),
            PAID,
        )
    };
    let error = format!("data: {{\"error\":{{\"message\":\"bad key {KEY}\"}}}}\n\n");
    let comment = format!(": service-route-version {KEY}\n: {KEY}\n\n");
    let large = format!("{}{KEY}{}", "x".repeat(1_500_000), "y".repeat(1_500_000));
    let broken = format!("data: {KEY}\n\n");
    vec![
        stream("an event", &error),
        stream(
            "an event in JSON's spelling",
            &error.replace(KEY, &in_json()),
        ),
        stream("comments", &comment),
        stream(
            "keys behind each other",
            &format!("data: {KEY}{KEY} {KEY}\n\n"),
        ),
        stream(
            "half a key and a whole one",
            &format!("data: {}{KEY}\n\n", &KEY[..9]),
        ),
        stream("100 keys", &format!("data: {KEY}\n\n").repeat(100)),
        answer(
            "a document of 3 MB",
            200,
            "X-Service-Billed: 7\r\n",
            &large,
            App::Whole(200, large.replace(KEY, &stars()).into_bytes()),
            PAID,
        ),
        case(
            20,
            Ask::Stream,
            "a stream that breaks",
            events_in(&[&broken]),
            App::BrokenOff,
            Books::InDoubt(bursar::ledger::entry::InDoubt::StreamDrop),
        ),
        case(
            20,
            Ask::Stream,
            "a stream that breaks inside of the key",
            [
                stream_head(),
                chunk("data: {}\n\n"),
                chunk(&format!("data: {}", &KEY[..12])),
            ]
            .concat(),
            App::BrokenOff,
            Books::InDoubt(bursar::ledger::entry::InDoubt::StreamDrop),
        )
        .closing(),
    ]
}

pub fn cases() -> Vec<Case> {
    [whole_answers(), flowing_answers()].concat()
}

#[tokio::test]
async fn the_key_is_struck_out_wherever_the_service_says_it() {
    play(cases()).await;
}

/// Wherever two chunks meet, and however small they are.
#[tokio::test]
async fn the_key_is_struck_out_over_the_border_of_chunks() {
    for spelling in [KEY.to_owned(), in_json()] {
        cut_at_every_border(&spelling).await;
    }
}

async fn cut_at_every_border(spelling: &str) {
    let text = format!("data: a{spelling}b\n\n{END}");
    let struck = text.replace(spelling, &"*".repeat(spelling.len()));
    let start = text.find(spelling).expect("it is there");
    let origin = Origin::start([]).await;
    let bursar = crate::support::Bursar::with(&origin.url(), super::ONCE).await;
    for at in start..=start + spelling.len() {
        let (first, second) = text.split_at(at);
        origin.push(Step::Pieces(vec![
            [stream_head(), chunk(first)].concat(),
            [chunk(second), last_chunk()].concat(),
        ]));
        let mut wire = bursar.connect().await;
        let body = chat_stream(&at.to_string());
        wire.send(request("POST", super::CHAT, &[], &body)).await;
        origin.go();
        let mut answer = wire.head().await;
        // Chunks that arrive together are read as one: the second comes when the first was passed on.
        while answer.body.len() < start {
            let piece = wire.chunk(&mut answer).await.expect("more of the first");
            answer.body.extend_from_slice(&piece);
        }
        origin.go();
        wire.rest(&mut answer).await;
        assert_eq!(answer.text(), struck, "cut at {at}");
    }

    let stage = super::Stage::with(super::ONCE).await;
    let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    let cut = case(
        20,
        Ask::Stream,
        format!("{} pieces", pieces.len()),
        events_in(&pieces),
        App::Whole(200, struck.into_bytes()),
        PAID,
    );
    stage.plays(&cut).await;
    stage.check_what_is_kept();
}

/// What only begins like the key is not kept from the app: with the next byte it flows.
#[tokio::test]
async fn what_begins_like_the_key_flows_on() {
    let begin = format!("data: a{}", &KEY[..10]);
    let pieces = [
        [stream_head(), chunk(&begin)].concat(),
        chunk("-and other letters\n\n"),
        [chunk(END), last_chunk()].concat(),
    ];
    let origin = Origin::start([Step::Pieces(pieces.to_vec())]).await;
    let bursar = crate::support::Bursar::with(&origin.url(), super::ONCE).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", super::CHAT, &[], &chat_stream("x")))
        .await;
    origin.go();
    let mut answer = wire.head().await;
    let first = wire
        .chunk(&mut answer)
        .await
        .expect("what is no part of a key");
    assert_eq!(first, b"data: a");
    origin.go();
    let mut text = first;
    while !contains(&text, b"letters\n\n") {
        text.extend(wire.chunk(&mut answer).await.expect("the rest of the line"));
    }
    assert_eq!(text, format!("{begin}-and other letters\n\n").into_bytes());
    origin.go();
    while let Some(more) = wire
        .chunk(&mut answer)
        .await
        .filter(|chunk| !chunk.is_empty())
    {
        text.extend(more);
    }
    answer.body = text;
    assert_no_key("letters", &answer);
    assert!(answer.body.ends_with(b"data: [DONE]\n\n"));
}
