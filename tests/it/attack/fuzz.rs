//! Unforeseen requests: valid ones, changed at random. `BURSAR_DOOR_SEED` replays a run,
//! `BURSAR_DOOR_CASES` makes it longer.
//!
//! Promise: the origin gets well-formed requests of the route table with our key, exactly one for each
//! answer of the service that the client receives; each connection ends in time; the daemon continues.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::case::{framed, get, hidden, post};
use super::stage::Stage;
use crate::support::chat;

const CASES: u64 = 2_500;
/// A busy machine does fewer of them.
const ENOUGH: Duration = Duration::from_secs(8);
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is put in: bytes that mean something to a parser, and pieces of requests.
const PIECES: [&[u8]; 40] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"\x0b",
    b"\x7f",
    b"\xff",
    b"%00",
    b"%2e",
    b"/",
    b"//",
    b"..",
    b"\\",
    b"?",
    b"#",
    b"\r\n\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 5\r\n",
    b"Host: evil.example\r\n",
    b"Connection: idempotency-key\r\n",
    b"Expect: 100-continue\r\n",
    b"Upgrade: h2c\r\n",
    b"Idempotency-Key: k\r\n",
    b"Origin: null\r\n",
    b"X-Service-Session: s\r\n",
    b"HTTP/1.0",
    b"HTTP/1.1",
    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"chunked",
    b"identity",
    b"-1",
    b"FFFFFFFFFFFFFFFF",
];

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(SEED);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).expect("a bound");
        usize::try_from(self.next() % bound).expect("an index")
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let json = chat("fuzzed");
    let chunks = format!(
        "5\r\n{}\r\n{:x};a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
        &json[..5],
        json.len() - 5,
        &json[5..]
    );
    vec![
        get("/v1/models", ""),
        get(
            "/v1/tasks/t-1?examples_n=3",
            "Accept: application/json\r\nX-Custom: one\r\n",
        ),
        post("fuzzed", ""),
        post(
            "fuzzed",
            "Idempotency-Key: own\r\nX-Service-Session: s-1\r\nAuthorization: Bearer app\r\n",
        ),
        post(
            "fuzzed",
            "Expect: 100-continue\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n",
        ),
        framed("Transfer-Encoding: chunked\r\n", chunks.as_bytes()),
        [get("/v1/models", ""), hidden()].concat(),
        [hidden(), get("/v1/models", "")].concat(),
        b"DELETE /v1/endpoints/e-1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"GET /v1/models HTTP/1.0\r\n\r\n".to_vec(),
    ]
}

fn changed(chance: &mut Chance, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[chance.below(seeds.len())].clone();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        let until = (at + 1 + chance.below(12)).min(bytes.len());
        match chance.below(8) {
            0 => bytes.truncate(at.max(1)),
            1 if at < bytes.len() => {
                bytes.drain(at..until);
            }
            2 if at < bytes.len() => {
                let again = bytes[at..until].to_vec();
                bytes.splice(at..at, again);
            }
            3 if at < bytes.len() => bytes[at] = u8::try_from(chance.below(256)).expect("a byte"),
            4 => {
                let other = &seeds[chance.below(seeds.len())];
                let from = chance.below(other.len());
                bytes.splice(at..at, other[from..].iter().copied());
            }
            5 => {
                // Between two lines, where a field may be.
                let ends: Vec<usize> = (0..bytes.len().saturating_sub(1))
                    .filter(|end| bytes[*end..].starts_with(b"\r\n"))
                    .collect();
                let at = ends.get(chance.below(ends.len())).map_or(0, |end| end + 2);
                bytes.splice(at..at, PIECES[chance.below(PIECES.len())].iter().copied());
            }
            _ => {
                bytes.splice(at..at, PIECES[chance.below(PIECES.len())].iter().copied());
            }
        }
    }
    bytes
}

/// Sends everything, closes its half, and reads until the connection ends.
async fn talk(address: std::net::SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes).await.ok();
    stream.shutdown().await.ok();
    let mut answered = Vec::new();
    // A reset ends it as well.
    stream.read_to_end(&mut answered).await.ok();
    answered
}

#[expect(clippy::disallowed_methods, reason = "a run is replayed by hand")]
fn number(name: &str) -> Option<u64> {
    let set = std::env::var(name).ok()?;
    Some(set.parse().expect("a number"))
}

#[tokio::test]
async fn whatever_is_sent_the_service_sees_whole_requests_only() {
    let seed = number("BURSAR_DOOR_SEED").unwrap_or(SEED);
    let asked = number("BURSAR_DOOR_CASES");
    let began = Instant::now();
    let mut chance = Chance(seed);
    let stage = Stage::open().await;
    let seeds = seeds();
    let (mut relayed, mut tried) = (0, 0);
    for at in 0..asked.unwrap_or(CASES) {
        // A busy machine takes longer for the least that counts.
        if asked.is_none() && at >= CASES / 8 && began.elapsed() > ENOUGH {
            break;
        }
        let bytes = changed(&mut chance, &seeds);
        let what = || format!("case {at} of seed {seed}: {}", bytes.escape_ascii());
        let before = stage.witness.count();
        let answered = timeout(Duration::from_secs(10), talk(stage.daemon.proxy, &bytes)).await;
        let answered = answered.unwrap_or_else(|_| panic!("no end: {}", what()));
        let answered = String::from_utf8_lossy(&answered).to_ascii_lowercase();
        let answers = answered.matches("x-service-billed: 1\r\n").count();
        let seen = stage.witness.count() - before;
        let complaints = stage.witness.complaints();
        assert!(complaints.is_empty(), "{complaints:?}: {}", what());
        assert_eq!(answers, seen, "{}\n{answered}", what());
        relayed += seen;
        tried += 1;
    }
    // Of as many as were tried: a busy machine is no less of a proof.
    assert!(
        relayed > tried / 25,
        "{relayed} of {tried} requests came through: the fuzzing reaches nothing"
    );
    let entries = stage.entries();
    stage.close(entries).await;
}
