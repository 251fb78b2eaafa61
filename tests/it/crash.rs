//! Process death: a child is killed at random instants while requests flow, and afterwards the ledger
//! is compared with the sandbox's own books. The apps behave as SDKs do: they send unanswered
//! requests again, to the next process.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bursar::ledger::entry::{KeyOrigin, State};
use bursar_sandbox::Options;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::bursar::{NO_LIMITS, entries};
use crate::support::daemon::Daemon;
use crate::support::wire::{Wire, request};
use crate::support::{Sandbox, chat, chat_stream, eventually, messages_stream, responses_stream};

/// Kills in `make test`; `make torture` sets more.
const KILLS: usize = 100;

/// Requests at once.
const CLIENTS: u64 = 4;

/// What an app wants to buy once, and repeats until then.
#[derive(Clone, Debug)]
struct Wish {
    kind: Kind,
    prompt: String,
    asked: u32,
    /// A stream broke after bytes of it had been sent: "In a stream the first body byte given out
    /// counts as delivered", so its repeat may be a purchase of its own.
    was_given_bytes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Stream,
    Agent,
    /// Translated, and given as events: all of them or none counts as delivered.
    Responses,
    Messages,
}

const KINDS: [Kind; 5] = [
    Kind::Json,
    Kind::Stream,
    Kind::Agent,
    Kind::Responses,
    Kind::Messages,
];

/// A fulfilled wish: an answer that was received whole.
#[derive(Clone, Debug)]
struct Bought {
    wish: Wish,
    entry: String,
    amount: u64,
}

/// What all apps together wait for and have.
#[derive(Default)]
struct Apps {
    /// By client; what a kill left unanswered.
    unanswered: HashMap<u64, Wish>,
    bought: Vec<Bought>,
    wishes: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "`make torture` asks for more kills this way"
)]
async fn whatever_instant_the_daemon_is_killed_at_the_ledger_agrees_with_the_books() {
    let kills =
        std::env::var("BURSAR_KILLS").map_or(KILLS, |kills| kills.parse().expect("a count"));
    let mut random = Random(0x5eed_0bad_cafe_0001);
    let sandbox = Sandbox::with(Options {
        in_flight_max: 1000,
        per_minute_max: 1_000_000,
        balance_micro_usd: u64::MAX / 4,
        ..Options::default()
    })
    .await;
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, NO_LIMITS).expect("the config is written");
    let config = ["--config", config.to_str().expect("a UTF-8 path")];
    let apps: Arc<Mutex<Apps>> = Arc::default();
    let mut tally = Tally::default();

    for _ in 0..kills {
        let daemon = Daemon::start(&sandbox.url(), &state_dir, &config).await;
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            clients.spawn(use_it(daemon.proxy, client, Arc::clone(&apps), true));
        }
        tokio::time::sleep(Duration::from_millis(random.below(120))).await;
        daemon.kill().await;
        while clients.join_next().await.is_some() {}
        tally.read_on(&state_dir);
        tally.agrees_with(&sandbox.debits().await);
    }

    // Requests running in the sandbox end without a reader; the apps get the answers that they
    // still wait for, and the start before that marks what the last kill left open.
    resting(&sandbox).await;
    let daemon = Daemon::start(&sandbox.url(), &state_dir, &config).await;
    for client in 0..CLIENTS {
        use_it(daemon.proxy, client, Arc::clone(&apps), false).await;
    }
    daemon.terminate().await;
    resting(&sandbox).await;
    let debits = sandbox.debits().await;
    tally.read_on(&state_dir);
    tally.agrees_with(&debits);

    let apps = apps.lock();
    assert!(apps.unanswered.is_empty(), "every app has its answer");
    assert!(
        apps.bought.len() > kills,
        "too few requests flowed to prove anything"
    );
    let retried = apps.bought.iter().filter(|bought| bought.wish.asked > 1);
    assert!(retried.count() > kills / 4, "too few were retried");
    said_the_truth(&state_dir, &apps.bought);
    tally.one_debit_each(&apps.bought, &debits);
}

async fn resting(sandbox: &Sandbox) {
    eventually("the sandbox to come to rest", || async {
        (sandbox.get("/sandbox/limits").await["in_flight"] == 0).then_some(())
    })
    .await;
}

/// One app: asks again for what it has no answer to, then for more while `goes_on`, until the daemon
/// is gone.
async fn use_it(address: std::net::SocketAddr, client: u64, apps: Arc<Mutex<Apps>>, goes_on: bool) {
    loop {
        let mut wish = {
            let mut apps = apps.lock();
            match apps.unanswered.remove(&client) {
                Some(wish) => wish,
                None if !goes_on => return,
                None => {
                    apps.wishes += 1;
                    Wish::new(apps.wishes)
                }
            }
        };
        let answer = match TcpStream::connect(address).await {
            Ok(stream) => wish.ask(Wire::over(stream)).await,
            Err(_) => None,
        };
        let mut apps = apps.lock();
        match answer {
            Some(Some((entry, amount))) => apps.bought.push(Bought {
                wish,
                entry,
                amount,
            }),
            Some(None) => {
                apps.unanswered.insert(client, wish);
            }
            None => {
                apps.unanswered.insert(client, wish);
                return;
            }
        }
    }
}

/// What the apps received is in the ledger with its amount. The repeat of an answer that a kill
/// took may show 0, or nothing: its price is then known to the books alone, and in doubt.
fn said_the_truth(state_dir: &Path, bought: &[Bought]) {
    let entries = entries(state_dir);
    assert!(entries.iter().all(|entry| entry.state != State::Open));
    let by_id: HashMap<String, _> = entries
        .iter()
        .map(|entry| (entry.id.0.to_string(), entry))
        .collect();
    for bought in bought {
        let id = &bought.entry;
        let entry = by_id.get(id).unwrap_or_else(|| panic!("no entry {id}"));
        let billed = entry.billed_micro_usd.map(|billed| billed.get());
        let is_settled =
            matches!(entry.state, State::Settled { .. }) && billed == Some(bought.amount);
        let is_repeat = matches!(entry.key_origin, Some(KeyOrigin::Adopted { .. }))
            && matches!(entry.state, State::InDoubt { .. } | State::Replayed);
        assert!(
            is_settled || is_repeat,
            "{bought:?} was received whole, and its entry says {:?}",
            entry.state
        );
    }
}

// === impl Wish ===

impl Wish {
    fn new(number: u64) -> Self {
        let kinds = u64::try_from(KINDS.len()).expect("a few");
        Self {
            kind: KINDS[(number % kinds) as usize],
            prompt: format!("what is {number} + 1?"),
            asked: 0,
            was_given_bytes: false,
        }
    }

    /// Sends one request. `None` if the daemon is gone; otherwise the entry and the amount of a
    /// whole answer.
    async fn ask(&mut self, mut wire: Wire) -> Option<Option<(String, u64)>> {
        let (path, body) = match self.kind {
            Kind::Json => ("/v1/chat/completions", chat(&self.prompt)),
            Kind::Stream => ("/v1/chat/completions", chat_stream(&self.prompt)),
            Kind::Agent => ("/agent/v1/chat/completions", chat(&self.prompt)),
            Kind::Responses => ("/v1/responses", responses_stream(&self.prompt)),
            Kind::Messages => ("/agent/v1/messages", messages_stream(&self.prompt)),
        };
        self.asked += 1;
        if !wire.try_send(request("POST", path, &[], &body)).await {
            return None;
        }
        let answer = wire.answer().await;
        if answer.status == 0 {
            return None;
        }
        if !answer.complete || answer.status != 200 {
            let is_given = answer.status == 200 && !answer.body.is_empty();
            self.was_given_bytes |= self.kind == Kind::Stream && is_given;
            return Some(None);
        }
        let amount = if self.kind == Kind::Stream {
            answer
                .text()
                .lines()
                .find_map(|line| line.strip_prefix(": service-billed-micro-usd "))
                .map(|amount| amount.parse().expect("an amount"))
        } else {
            answer
                .header("x-service-billed")
                .map(|amount| amount.parse().expect("an amount"))
        };
        let id = answer.header("x-bursar-entry").expect("an entry id");
        Some(Some((id.to_owned(), amount.expect("a receipt"))))
    }
}

/// The journal's own words, read line by line as they come, without bursar's reader.
#[derive(Default)]
struct Tally {
    offset: usize,
    billed: u64,
    /// Of an entry: key, and fingerprint of its request.
    intents: HashMap<String, (String, String)>,
    /// Keys with an entry that is open or in doubt, and how many.
    in_doubt: HashMap<String, i64>,
    keys: HashSet<String>,
}

impl Tally {
    /// Whole lines only: a torn one is cut off by the next start, and so are the empty ones behind the last.
    fn read_on(&mut self, state_dir: &Path) {
        let path = state_dir.join("journal/00000001.jsonl");
        let text = std::fs::read(path).expect("a journal");
        let written = text.iter().rposition(|byte| *byte != b'\n');
        let written = written.map_or(0, |at| at + 1);
        while self.offset < written {
            let rest = &text[self.offset..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                break;
            };
            match serde_json::from_slice(&rest[..end]) {
                Ok(line) => self.line(&line),
                Err(error) => {
                    assert_eq!(self.offset + end, written, "JSON: {error}");
                    break;
                }
            }
            self.offset += end + 1;
        }
    }

    fn line(&mut self, line: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let kind = line["kind"].as_str().expect("a kind");
        self.billed += line["adds_micro_usd"].as_u64().unwrap_or(0);
        if kind == "intent" {
            let key = text(&line["key"]["value"]);
            self.keys.insert(key.clone());
            *self.in_doubt.entry(key.clone()).or_default() += 1;
            let intent = (key, text(&line["fingerprint"]));
            self.intents.insert(text(&line["id"]), intent);
        }
        let ends = matches!(kind, "outcome" | "crashed" | "withdrawn");
        let is_unknown = line["state"].get("in_doubt").is_some();
        if kind == "reconciled" || ends && !is_unknown {
            let (key, _) = &self.intents[&text(&line["id"])];
            *self.in_doubt.get_mut(key).expect("a key") -= 1;
        }
    }

    /// settled ≤ books ≤ settled + the books' debits for keys marked in doubt. Of a dead daemon, what
    /// is open is in doubt.
    fn agrees_with(&self, debits: &[Value]) {
        let (mut books, mut doubtful) = (0, 0);
        for debit in debits {
            let key = debit["key"].as_str().expect("every debit has a key");
            let amount = debit["amount_micro_usd"].as_u64().expect("an amount");
            assert!(self.keys.contains(key), "no entry for key {key}");
            books += amount;
            if self.in_doubt[key] > 0 {
                doubtful += amount;
            }
        }
        let billed = self.billed;
        assert!(billed <= books, "settled {billed} > books {books}");
        assert!(
            books <= billed + doubtful,
            "books {books} > settled {billed} + in doubt {doubtful}"
        );
    }

    /// Each wish was paid for once, however often it was sent and whichever process died meanwhile.
    /// Only a stream whose bytes had been sent may have been bought again.
    fn one_debit_each(&self, bought: &[Bought], debits: &[Value]) {
        let mut debits_of: HashMap<&str, u32> = HashMap::new();
        for debit in debits {
            *debits_of
                .entry(debit["key"].as_str().expect("a key"))
                .or_default() += 1;
        }
        let mut keys_of: HashMap<&str, HashSet<&str>> = HashMap::new();
        for (key, fingerprint) in self.intents.values() {
            keys_of.entry(fingerprint).or_default().insert(key);
        }
        for bought in bought {
            let (_, fingerprint) = &self.intents[&bought.entry];
            let keys = &keys_of[fingerprint.as_str()];
            let paid: u32 = keys.iter().filter_map(|key| debits_of.get(key)).sum();
            if bought.wish.was_given_bytes {
                assert!(
                    (1..=bought.wish.asked).contains(&paid),
                    "{paid}: {bought:?}"
                );
            } else {
                assert_eq!(paid, 1, "{bought:?}");
            }
        }
    }
}

/// A small generator, so that a failing run can be repeated.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound` (xorshift).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
