//! What apps say of their requests, and compaction: sums by user and tag stay, and add up to all.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::*;
use crate::ledger::entry::{AttemptEnd, Intent};
use crate::ledger::fixtures::{billed, ended, intent};
use crate::ledger::marks::{Marks, SessionHasher};
use crate::ledger::query::{GroupBy, Spend};
use crate::protocol::receipt::Receipt;
use crate::protocol::tags::Tags;

const HOURS: u64 = 96;

fn marks(hour: u64) -> Marks {
    let keys = ["customer", "id"].map(|key| key.parse().unwrap());
    let user = ["ann", "bob", ""][usize::try_from(hour % 3).unwrap()];
    let tags = ["customer=acme,id=1", "customer=beta", "", "id=2"];
    let session = SessionHasher::default().session("notes", "s");
    Marks {
        session: Some(session).filter(|_| hour.is_multiple_of(2)),
        user: Some(user.to_owned()).filter(|user| !user.is_empty()),
        tags: Tags::parse(tags[usize::try_from(hour % 4).unwrap()], &keys).unwrap(),
    }
}

async fn history(bench: &Bench) {
    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 2_000,
        ..bench.options()
    })
    .unwrap();
    for hour in 0..HOURS {
        let id = ledger.new_entry_id();
        let intent = Intent {
            marks: marks(hour).into_shared(),
            ..intent(id, bench_now(bench), None)
        };
        ledger.intend(intent).await.unwrap();
        let receipt = match hour % 5 {
            0 => Receipt::default(),
            _ => billed(hour),
        };
        let outcome = ended(id, AttemptEnd::Answered, receipt);
        ledger.settle(outcome).await.unwrap();
        bench.clock.advance(Duration::from_secs(3_600));
    }
    ledger.close().await;
}

fn asked(bench: &Bench, by: &[&str]) -> Spend {
    let by: Vec<GroupBy> = by
        .iter()
        .map(|by| GroupBy::from_word(by).unwrap())
        .collect();
    spend(&bench.state(), None, None, &by, &TimeZone::UTC).unwrap()
}

fn words(spend: &Spend) -> Vec<Vec<&str>> {
    let rows = spend.rows.iter();
    rows.map(|row| row.labels.values().map(String::as_str).collect())
        .collect()
}

#[tokio::test]
async fn sums_by_user_and_by_tag_are_the_same_before_and_after() {
    const KEPT: [&[&str]; 7] = [
        &["user"],
        &["tag:customer"],
        &["tag:id", "app"],
        &["user", "day"],
        &["tag:customer", "state", "operation"],
        &["tag:unheard_of"],
        &["app", "day"],
    ];
    let bench = Bench::new();
    history(&bench).await;
    let before = KEPT.map(|by| asked(&bench, by));
    let total = asked(&bench, &["app"]).total;
    assert!(
        words(&before[0]) == [["ann"], ["bob"], ["none"]],
        "{before:?}"
    );
    for days in [3, 2] {
        let age = Duration::from_secs(days * 24 * 3_600);
        let report = crate::ledger::compact(bench.options(), age).unwrap();
        assert!(
            report.entries.is_some_and(|entries| entries > 0),
            "{report:?}"
        );
        for (by, before) in KEPT.iter().zip(&before) {
            let after = asked(&bench, by);
            assert_eq!(after.rows, before.rows, "{by:?}");
            assert_eq!(after.total, total, "{by:?}");
        }
        // Of two together no sums are kept, and of sessions none.
        for by in [&["user", "tag:customer"][..], &["session"]] {
            let after = asked(&bench, by);
            assert_eq!(after.total, total, "{by:?}");
            let has_compacted = words(&after)
                .iter()
                .any(|words| words.contains(&"(compacted)"));
            assert!(has_compacted, "{after:?}");
        }
        assert!(asked(&bench, &["session"]).listed_since_ms.is_some());
    }
    sound(&bench.state());
}

#[tokio::test]
async fn what_tags_were_billed_for_metrics_survives_compaction_and_a_lost_index() {
    let bench = Bench::new();
    history(&bench).await;
    let before = started(&bench).globals.tagged;
    assert_eq!(before["notes"].len(), 2, "{before:?}");
    crate::ledger::compact(bench.options(), Duration::from_secs(2 * 24 * 3_600)).unwrap();
    assert_eq!(started(&bench).globals.tagged, before);
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    assert_eq!(started(&bench).globals.tagged, before);
}
