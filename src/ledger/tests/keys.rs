//! Apps' own keys: what stands for them in the journal, whose they are, and what an older bursar wrote.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use super::{in_doubt_now, settled};
use crate::clock::ManualClock;
use crate::ledger::Ledger;
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::fixtures::{Bench, billed, buy_own, own};
use crate::ledger::query::{find, verify};
use crate::protocol::receipt::Receipt;

fn replay() -> Receipt {
    Receipt {
        replayed: true,
        ..billed(0)
    }
}

async fn is_charged(ledger: &Ledger, key: &str, organization: u64, body: &[u8]) -> bool {
    let (key, fingerprint) = own(ledger, key, organization, body);
    ledger
        .key_standing(&key, fingerprint)
        .await
        .unwrap()
        .charge()
        .is_some()
}

/// A ledger that the bursar before this one wrote: a key of 300 characters stands in it as `h:` and a hash,
/// and so does a short key that is spelled like that.
struct Old {
    bench: Bench,
    hash: String,
}

fn chat(prompt: &str) -> Vec<u8> {
    let start = r#"{"model": "auto", "messages": [{"role": "user", "content": ""#;
    format!("{start}{prompt}\"}}]}}").into_bytes()
}

impl Old {
    fn new() -> Self {
        let bench = Bench {
            // A second after its last line.
            clock: ManualClock::at(1_795_360_124_500),
            root: tempfile::tempdir().unwrap(),
        };
        let journal = bench.state().join("journal");
        let mut private = fs::DirBuilder::new();
        private
            .recursive(true)
            .mode(0o700)
            .create(&journal)
            .unwrap();
        let files = [
            (
                bench.state().join("identity.json"),
                &include_bytes!("old/identity.json")[..],
            ),
            (journal.join("mark"), include_bytes!("old/mark")),
            (bench.segment(1), include_bytes!("old/journal.jsonl")),
        ];
        for (path, bytes) in files {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let hash = blake3::hash("L".repeat(300).as_bytes()).to_hex();
        Self {
            bench,
            hash: format!("h:{hash}"),
        }
    }
}

#[tokio::test]
async fn an_older_bursars_ledger_opens_and_stays_right() {
    let old = Old::new();
    let ledger = old.bench.open();
    let (long, lost) = ("L".repeat(300), "D".repeat(300));

    let totals = ledger.totals();
    assert_eq!(totals.billed().to_string(), "$0.000142");
    assert_eq!(in_doubt_now(&totals, InDoubt::NoResponse), 2);
    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 1);

    // Only the same request under the same key is charged already.
    let story = "Write a long story. ".repeat(60);
    for (key, prompt, wanted) in [
        ("fixture-short", "hi", true),
        ("fixture-short", "another", false),
        (&long, "hi", true),
        (&long, "another", false),
        (&lost, "lost too", true),
        ("fixture-open", "killed", true),
        // The text is not the key that it was the hash of, nor the other way round.
        (&old.hash, "hi", false),
        (&long, &story, true),
    ] {
        let is_charged = is_charged(&ledger, key, 7, &chat(prompt)).await;
        // Of the last one it cannot be known: such lines stand for either.
        assert_eq!(is_charged, wanted, "{key:.20} {prompt:.20}");
    }

    for key in ["fixture-short", &long] {
        let again = buy_own(&ledger, key, 7, &chat("hi"), replay()).await;
        assert_eq!(again.state, State::Replayed, "{key:.20}");
    }
    // What was in doubt stays so: the amount may be another organization's.
    for (key, prompt) in [("fixture-doubt", "lost"), (&lost, "lost too")] {
        let settlement = buy_own(&ledger, key, 7, &chat(prompt), billed(30)).await;
        assert_eq!(settlement.state, settled(30), "{key:.20}");
    }
    let dear = buy_own(&ledger, &old.hash, 7, &chat("dear"), billed(500)).await;
    assert_eq!(dear.state, settled(500));
    let totals = ledger.totals();
    assert_eq!(totals.billed().to_string(), "$0.000702");
    assert_eq!(in_doubt_now(&totals, InDoubt::NoResponse), 2);

    ledger.close().await;
    drop(ledger);
    let reopened = old.bench.open();
    assert_eq!(reopened.totals().billed().to_string(), "$0.000702");
    // Those of its time, and the key's own.
    for (key, wanted) in [
        (&*long, 3),
        (&old.hash, 3),
        ("fixture-short", 3),
        (&lost, 2),
    ] {
        let found = find(&old.bench.state(), key).unwrap().entries.len();
        assert_eq!(found, wanted, "{key:.20}");
    }
    reopened.close().await;
    drop(reopened);
    let report = verify(&old.bench.state()).unwrap();
    assert!(report.ok, "{report:?}");
}

#[tokio::test]
async fn no_text_is_taken_for_the_hash_of_a_long_key() {
    let bench = Bench::new();
    let ledger = bench.open();
    let long = "k".repeat(300);
    let cheap = buy_own(&ledger, &long, 1, b"{}", billed(60)).await;
    assert_eq!(cheap.state, settled(60));
    let shown = find(&bench.state(), &long).unwrap();
    let hash = shown.entries[0].key_hash.unwrap().to_string();
    let unkeyed = blake3::hash(long.as_bytes()).to_hex();

    let spellings = [hash.clone(), format!("h:{hash}"), format!("h:{unkeyed}")];
    for text in &spellings {
        assert!(!is_charged(&ledger, text, 1, b"{}").await, "{text}");
        let dear = buy_own(&ledger, text, 1, b"{}", billed(2_000_000)).await;
        assert_eq!(dear.state, settled(2_000_000), "{text}");
        assert!(is_charged(&ledger, text, 1, b"{}").await, "{text}");
        assert_eq!(find(&bench.state(), &long).unwrap().entries.len(), 1);
    }
    assert_eq!(ledger.totals().billed().to_string(), "$6.000060");
    ledger.close().await;
    drop(ledger);
    let _ledger = bench.open();
    assert_eq!(find(&bench.state(), &long).unwrap().entries.len(), 1);
    // A hash that was shown finds the key, and the text that is spelled so.
    assert_eq!(find(&bench.state(), &hash).unwrap().entries.len(), 2);
}

#[tokio::test]
async fn i3_the_same_own_key_of_another_organization_is_another_purchase() {
    let bench = Bench::new();
    let mut ledger = bench.open();
    for (organization, receipt, state) in [
        (1, billed(60), settled(60)),
        (2, billed(70), settled(70)),
        (1, replay(), State::Replayed),
        (2, billed(70), State::Replayed),
        (3, billed(60), settled(60)),
    ] {
        let is_repeat = state == State::Replayed;
        let is_charged = is_charged(&ledger, "mine", organization, b"{}").await;
        assert_eq!(is_charged, is_repeat, "{organization}");
        let settlement = buy_own(&ledger, "mine", organization, b"{}", receipt).await;
        assert_eq!(settlement.state, state, "{organization}");
        // What was read back knows it, too.
        ledger.close().await;
        drop(ledger);
        ledger = bench.open();
    }
    assert_eq!(ledger.totals().billed().to_string(), "$0.000190");
}

#[tokio::test]
async fn i3_a_reordered_body_repeats_and_a_different_one_is_added() {
    let bench = Bench::new();
    let ledger = bench.open();
    for (body, receipt, state) in [
        (&br#"{"a":1,"b":2}"#[..], billed(60), settled(60)),
        (br#"{ "b": 2, "a": 1 }"#, billed(60), State::Replayed),
        (br#"{"a":1,"b":3}"#, billed(2_000_000), settled(2_000_000)),
        (br#"{"a":1,"b":4}"#, replay(), State::Replayed),
    ] {
        let settlement = buy_own(&ledger, "mine", 1, body, receipt).await;
        assert_eq!(settlement.state, state, "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(ledger.totals().billed().to_string(), "$2.000060");
}
