//! Heads of answers: too large, never ending, in other grammars, framed twice.

use super::{App, Ask, BROKEN, Books, Case, LOST, UNKNOWN, case, head_with, play, whole};
use crate::support::origin::billed;

const PAID: Books = Books::Settled(7);

fn fields(count: usize) -> String {
    (0..count).map(|n| format!("X-{n}: y\r\n")).collect()
}

/// A 200 that reports 7 micro-USD, with these additional lines.
fn paid(lines: &str) -> Vec<u8> {
    head_with(&format!("X-Service-Billed: 7\r\n{lines}"))
}

fn chat(name: &str, sends: impl Into<Vec<u8>>, app: App, books: Books) -> Case {
    case(21, Ask::Chat, name, sends, app, books)
}

/// Framing is row 24: one parser's body is another one's next answer.
fn framed(name: &str, lines: &str, body: &str, app: App, books: Books) -> Case {
    let sends = format!("HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\n{lines}\r\n{body}");
    case(24, Ask::Chat, name, sends, app, books).closing()
}

fn sizes() -> Vec<Case> {
    let field = |bytes: usize| format!("X-Long: {}\r\n", "x".repeat(bytes));
    vec![
        chat("a field of 60 KB", paid(&field(60_000)), whole("{}"), PAID),
        chat("a field of 66 KB", paid(&field(66_000)), BROKEN, PAID),
        chat(
            "70 fields of 1 KB",
            paid(&field(1000).repeat(70)),
            BROKEN,
            PAID,
        ),
        chat("90 fields", paid(&fields(90)), whole("{}"), PAID),
        chat("110 fields", paid(&fields(110)), BROKEN, PAID),
        chat("300 fields", paid(&fields(300)), UNKNOWN, LOST).closing(),
        chat("a field of 3 MB", paid(&field(3_000_000)), UNKNOWN, LOST).closing(),
        chat(
            "a head that never ends",
            format!("HTTP/1.1 200 OK\r\n{}", field(1000).repeat(3000)),
            UNKNOWN,
            LOST,
        )
        .closing(),
        chat(
            "a name of 70 KB",
            paid(&format!("{}: y\r\n", "x".repeat(70_000))),
            UNKNOWN,
            LOST,
        )
        .closing(),
        chat(
            "a reason of 70 KB",
            [
                b"HTTP/1.1 200 ".to_vec(),
                vec![b'x'; 70_000],
                b"\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{}".to_vec(),
            ]
            .concat(),
            BROKEN,
            PAID,
        ),
        chat(
            "an error with 110 fields",
            String::from_utf8(paid(&fields(110)))
                .expect("text")
                .replacen("200 OK", "400 No", 1)
                .replace("X-Service-Billed: 7\r\n", ""),
            BROKEN,
            Books::Failed,
        ),
        case(
            21,
            Ask::Speech,
            "110 fields on a route without a key",
            paid(&fields(110)),
            BROKEN,
            PAID,
        ),
        case(
            21,
            Ask::Free,
            "110 fields on a free route",
            paid(&fields(110)),
            BROKEN,
            Books::Nothing,
        ),
    ]
}

fn grammar() -> Vec<Case> {
    let text = |name: &str, sends: &str, app: App, books: Books| {
        chat(name, sends.as_bytes(), app, books).closing()
    };
    vec![
        text(
            "no status line",
            "X-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text("HTTP/0.9", "<html>hello</html>", UNKNOWN, LOST),
        text("only a line feed", "\n", UNKNOWN, LOST),
        text("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", UNKNOWN, LOST),
        text(
            "HTTP/2.0 in text",
            "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "two digits",
            "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "four digits",
            "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "status 000",
            "HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "status 099",
            "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "status 999",
            "HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\n{}",
            App::Whole(999, b"{}".to_vec()),
            Books::Failed,
        ),
        text(
            "a negative status",
            "HTTP/1.1 -20 OK\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "a NUL in a value",
            "HTTP/1.1 200 OK\r\nX-A: b\0c\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "an escape in a value",
            "HTTP/1.1 200 OK\r\nX-A: \x1b[2J\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "an escape in the reason",
            "HTTP/1.1 200 \x1b[2J\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "a line without a colon",
            "HTTP/1.1 200 OK\r\nX-A\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "an empty name",
            "HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "a bare carriage return",
            "HTTP/1.1 200 OK\r\nX-A: b\rX-C: d\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "a head that is cut",
            "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Le",
            UNKNOWN,
            LOST,
        ),
        text(
            "bare line feeds",
            "HTTP/1.1 200 OK\nX-Service-Billed: 7\nContent-Length: 2\n\n{}",
            whole("{}"),
            PAID,
        ),
        text(
            "no reason",
            "HTTP/1.1 200\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{}",
            whole("{}"),
            PAID,
        ),
        text(
            "a space before the colon",
            "HTTP/1.1 200 OK\r\nX-Service-Billed : 7\r\nContent-Length: 2\r\n\r\n{}",
            whole("{}"),
            PAID,
        ),
        text(
            "101 and nothing",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            UNKNOWN,
            LOST,
        ),
        text(
            "101 and an answer",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{}",
            UNKNOWN,
            LOST,
        ),
        text(
            "50 interim heads",
            &format!(
                "{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}",
                "HTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n".repeat(50)
            ),
            UNKNOWN,
            LOST,
        ),
        text(
            "9 interim heads with lengths",
            &format!(
                "{}HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{{}}",
                "HTTP/1.1 100 Go\r\nContent-Length: 5\r\nX-Service-Billed: 9\r\n\r\n".repeat(9)
            ),
            whole("{}"),
            PAID,
        ),
        text(
            "only interim heads",
            &"HTTP/1.1 102 Wait\r\n\r\n".repeat(3),
            UNKNOWN,
            LOST,
        ),
    ]
}

fn framing() -> Vec<Case> {
    let two = "{}";
    let chunked = "2\r\n{}\r\n0\r\n\r\n";
    vec![
        framed(
            "one length twice",
            "Content-Length: 2\r\nContent-Length: 2\r\n",
            two,
            whole(two),
            PAID,
        ),
        framed(
            "a list of one length",
            "Content-Length: 2, 2\r\n",
            two,
            whole(two),
            PAID,
        ),
        framed(
            "two lengths",
            "Content-Length: 2\r\nContent-Length: 3\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a list of two lengths",
            "Content-Length: 2, 3\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a length with a sign",
            "Content-Length: +2\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a negative length",
            "Content-Length: -2\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a hexadecimal length",
            "Content-Length: 0x2\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a fraction as length",
            "Content-Length: 2.0\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "an empty length",
            "Content-Length: \r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a length of 20 digits",
            "Content-Length: 99999999999999999999\r\n",
            two,
            UNKNOWN,
            LOST,
        ),
        framed(
            "a length of 2^63",
            "Content-Length: 9223372036854775808\r\n",
            two,
            BROKEN,
            PAID,
        ),
        framed(
            "a length of 2^63-1",
            "Content-Length: 9223372036854775807\r\n",
            two,
            BROKEN,
            PAID,
        ),
        framed(
            "chunked and a length",
            "Content-Length: 99\r\nTransfer-Encoding: chunked\r\n",
            chunked,
            whole(two),
            PAID,
        ),
        framed(
            "chunked and two lengths",
            "Content-Length: 99\r\nContent-Length: 98\r\nTransfer-Encoding: chunked\r\n",
            chunked,
            whole(two),
            PAID,
        ),
        framed(
            "gzip as transfer coding",
            "Transfer-Encoding: gzip\r\n",
            two,
            BROKEN,
            PAID,
        ),
        framed(
            "gzip and chunked",
            "Transfer-Encoding: gzip, chunked\r\n",
            chunked,
            BROKEN,
            PAID,
        ),
        framed(
            "chunked and gzip",
            "Transfer-Encoding: chunked, gzip\r\n",
            chunked,
            BROKEN,
            PAID,
        ),
        framed(
            "chunked twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            chunked,
            BROKEN,
            PAID,
        ),
        framed(
            "a coding like chunked",
            "Transfer-Encoding: xchunked\r\n",
            chunked,
            BROKEN,
            PAID,
        ),
        framed(
            "chunked with a parameter",
            "Transfer-Encoding: chunked;q=1\r\n",
            chunked,
            BROKEN,
            PAID,
        ),
        framed(
            "identity as transfer coding",
            "Transfer-Encoding: identity\r\nContent-Length: 2\r\n",
            two,
            BROKEN,
            PAID,
        ),
        framed(
            "a folded value",
            "X-A: b\r\n\tc\r\nContent-Length: 2\r\n",
            two,
            whole(two),
            PAID,
        ),
        framed(
            "a folded length",
            "Content-Length:\r\n 2\r\n",
            two,
            whole(two),
            PAID,
        ),
        framed(
            "a head inside of a folded value",
            "X-A: b\r\n HTTP/1.1 200 OK\r\n X-Service-Billed: 9\r\nContent-Length: 2\r\n",
            two,
            whole(two),
            PAID,
        ),
        framed("no length and a close", "", two, whole(two), PAID),
        framed(
            "a length nominated away",
            "Connection: content-length, x-service-billed\r\nContent-Length: 2\r\n",
            two,
            whole(two),
            PAID,
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    let fine = chat("a plain answer", billed(7), App::Status(200), PAID);
    [vec![fine], sizes(), grammar(), framing()].concat()
}

#[tokio::test]
async fn heads_of_any_size_grammar_and_framing() {
    play(cases()).await;
}

/// What reaches the app has one length, no folded line and no field of a forged head.
#[tokio::test]
async fn an_answers_head_reaches_the_app_in_the_plainest_form() {
    let stage = super::Stage::with(super::ONCE).await;
    let large = "z".repeat(2 << 20);
    for length in [
        "Content-Length: 2097152\r\nContent-Length: 2097152\r\n",
        "Content-Length: 2097152, 2097152\r\n",
    ] {
        let name = format!("a large document, {length:?}");
        let sends = format!("HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\n{length}\r\n{large}");
        let plain = case(24, Ask::Chat, name.clone(), sends, whole(&large), PAID);
        let answer = stage.plays(&plain).await;
        let lengths = answer
            .headers
            .iter()
            .filter(|(known, _)| known == "content-length");
        let lengths: Vec<&str> = lengths.map(|(_, value)| value.as_str()).collect();
        assert_eq!(lengths, ["2097152"], "{name}");
    }
    let folded = "Refresh: 0;url=http://elsewhere/\r\nX-A: b\r\n\tX-Service-Billed: 9\r\n X-Forged: 1\r\nContent-Length: 2\r\n";
    let case = framed("folded lines", folded, "{}", whole("{}"), PAID);
    let answer = stage.plays(&case).await;
    let folded = answer.header("x-a").expect("the folded value");
    assert!(folded.bytes().all(|byte| byte >= b' '), "{folded:?}");
    for gone in ["x-forged", "refresh", "transfer-encoding"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    assert_eq!(answer.header("x-service-billed"), Some("7"));
}

/// A head that comes byte by byte has, in all, the time that a silence may last.
#[tokio::test]
async fn a_dripping_head_is_a_timeout() {
    let lines = "[upstream]\nread_timeout_s = 1\n[retry]\nattempts = 1\n";
    for drip in [
        "HTTP/1.1 200 OK\r\nX-A: ",
        "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\nX-B: ",
    ] {
        let origin = crate::support::Origin::start([]).await;
        let bursar = crate::support::Bursar::with(&origin.url(), lines).await;
        origin.push(crate::support::Step::Drip(drip.into(), b"x".to_vec()));
        let began = tokio::time::Instant::now();
        let answer = bursar
            .post(super::CHAT, &crate::support::chat("drip"))
            .await;
        assert_eq!(answer.code(), Some("upstream_timeout"), "{drip:?}");
        assert!(
            began.elapsed().as_secs() < 8,
            "{drip:?}: {:?}",
            began.elapsed()
        );
    }
}
