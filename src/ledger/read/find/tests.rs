use std::time::Duration;

use super::*;
use crate::ledger::entry::{AttemptEnd, State};
use crate::ledger::fixtures::{Bench, begin, billed, buy, ended, intent};
use crate::ledger::kept_key::KeyOrigin;
use crate::ledger::{Ledger, LedgerOptions};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn buy_as(ledger: &Ledger, key: Option<&str>, request_id: &str, receipt: Receipt) -> EntryId {
    let id = begin(ledger, key).await;
    let mut outcome = ended(id, AttemptEnd::Answered, receipt);
    outcome.request_id = Some(request_id.to_owned());
    ledger.settle(outcome).await.unwrap();
    id
}

fn ids(views: &[EntryView]) -> Vec<EntryId> {
    views.iter().map(|view| view.id).collect()
}

#[tokio::test]
async fn an_entry_is_found_by_all_that_a_person_has_of_it() {
    let bench = Bench::new();
    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 2_000,
        ..bench.options()
    })
    .unwrap();
    let long = "k".repeat(300);
    let mut wanted = Vec::new();
    for (at, key) in [
        Some("plain"),
        Some("wi\"th \\ marks"),
        Some(long.as_str()),
        None,
    ]
    .into_iter()
    .enumerate()
    {
        bench.clock.advance(Duration::from_secs(600));
        let id = buy_as(&ledger, key, &format!("req-{at}"), billed(7)).await;
        wanted.push((id, key, format!("req-{at}")));
    }
    bench.clock.advance(Duration::from_secs(600));
    let open = begin(&ledger, Some("still open")).await;

    for (id, key, request_id) in wanted {
        let text = id.to_string();
        let asked = [
            (text.clone(), FoundBy::Id),
            (text.to_uppercase(), FoundBy::Id),
            (format!(" {text}\n"), FoundBy::Id),
            (text[..8].to_owned(), FoundBy::Prefix),
            (text[..20].to_uppercase(), FoundBy::Prefix),
            (
                text[text.len() - PART_CHARS_MIN..].to_owned(),
                FoundBy::Tail,
            ),
            (text[text.len() - TAIL_CHARS..].to_owned(), FoundBy::Tail),
            (text[10..].to_uppercase(), FoundBy::Tail),
            (request_id, FoundBy::RequestId),
        ];
        let by_key = key.map(|key| (key.to_owned(), FoundBy::Key));
        for (asked, by) in asked.into_iter().chain(by_key) {
            let found = find(&bench.state(), &asked).unwrap();

            assert_eq!(found.by, Some(by), "{asked}");
            assert_eq!(ids(&found.entries), [id], "{asked}");
            assert_eq!(ids(&found.family), [id], "{asked}");
            let view = &found.entries[0];
            assert_eq!(view.model.as_deref(), Some("auto"), "its intent is read");
            assert_eq!(view.attempts.len(), 1, "its outcome is read");
            assert!(!found.more && found.candidates.is_empty());
        }
    }
    let found = find(&bench.state(), "still open").unwrap();
    assert_eq!(ids(&found.entries), [open]);
    assert_eq!(found.entries[0].state, State::Open);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_a_mention_is_no_match() {
    let bench = Bench::new();
    let ledger = bench.open();
    let first = begin(&ledger, Some("shared")).await;
    let second = ledger.new_entry_id();
    let mut adopting = intent(second, 1_778_284_800_001, Some("shared"));
    if let Some(key) = &mut adopting.key {
        key.origin = KeyOrigin::Adopted { from: first };
    }
    ledger.intend(adopting).await.unwrap();

    for nothing in [
        "", "  ", "auto", "chat", "0190", "ffffffff", "default", "seq", "shar",
    ] {
        let found = find(&bench.state(), nothing).unwrap();
        assert!(found.by.is_none() && found.entries.is_empty(), "{nothing}");
    }
    // The second entry's line names the first; asked for the first, only that is listed.
    let found = find(&bench.state(), &first.to_string()).unwrap();
    assert_eq!(ids(&found.entries), [first]);
    assert_eq!(ids(&found.family), [first, second]);
}

#[tokio::test]
async fn a_beginning_that_several_ids_have_lists_them() {
    let bench = Bench::new();
    let ledger = bench.open();
    let first = begin(&ledger, Some("a")).await;
    let second = begin(&ledger, Some("b")).await;

    let found = find(&bench.state(), &first.to_string()[..8]).unwrap();

    assert_eq!(found.by, Some(FoundBy::Prefix));
    assert_eq!(ids(&found.candidates), [first, second]);
    assert!(found.entries.is_empty() && found.family.is_empty());
    // Their ends are their own, although they began in the same millisecond.
    for id in [first, second] {
        let text = id.to_string();
        let found = find(&bench.state(), &text[text.len() - PART_CHARS_MIN..]).unwrap();
        assert_eq!(
            (found.by, ids(&found.entries)),
            (Some(FoundBy::Tail), vec![id])
        );
    }
}

/// Ids that are the same at an end, as among many.
#[tokio::test]
async fn an_end_that_several_ids_have_or_that_begins_another_lists_them() {
    let bench = Bench::new();
    let ledger = bench.open();
    let id = |text: &str| -> EntryId { text.parse().unwrap() };
    let (one, two, three) = (
        id("0190aaaa-0000-7000-8000-0000cafe1234"),
        id("0190aaaa-0000-7000-8000-1111cafe1234"),
        id("cafe1234-0000-7000-8000-000000000001"),
    );
    for (id, key) in [(one, "a"), (two, "b"), (three, "c")] {
        let at_ms = 1_778_284_800_000;
        ledger.intend(intent(id, at_ms, Some(key))).await.unwrap();
    }

    let found = find(&bench.state(), "cafe1234").unwrap();

    assert!(found.entries.is_empty());
    assert_eq!(ids(&found.candidates), [one, two, three]);
    let found = find(&bench.state(), "1111cafe1234").unwrap();
    assert_eq!(ids(&found.entries), [two]);
}

#[tokio::test]
async fn the_family_is_one_purchase_and_not_what_the_key_bought_on_another_day() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    ledger
        .settle(ended(lost, AttemptEnd::NoHead, Receipt::default()))
        .await
        .unwrap();
    bench.clock.advance(Duration::from_secs(60));
    let paid = buy_as(&ledger, Some("k"), "r", billed(42)).await;
    bench.clock.advance(DAY * 2);
    buy(&ledger, Some("k"), billed(5)).await;

    let found = find(&bench.state(), &lost.to_string()).unwrap();

    assert_eq!(ids(&found.family), [lost, paid]);
    let first = &found.entries[0];
    assert_eq!(
        first.state,
        State::Reconciled {
            billed: MicroUsd::ZERO
        }
    );
    assert!(first.reconciled_ms.is_some(), "when the evidence came");
    assert!(matches!(first.was, Some(State::InDoubt { .. })));
    assert_eq!(find(&bench.state(), "k").unwrap().entries.len(), 3);
}

#[tokio::test]
async fn the_entries_found_are_bounded_and_that_there_are_more_is_reported() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..FOUND_MAX + 5 {
        begin(&ledger, Some("k")).await;
    }

    let found = find(&bench.state(), "k").unwrap();

    assert_eq!(found.entries.len(), FOUND_MAX);
    assert!(found.more);
}

/// Of a key with more entries than an answer holds, the lines of those held are all read; what came under it on
/// another day is no part of the purchase.
#[tokio::test]
async fn a_key_of_many_entries_hides_none_of_the_one_asked_for() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..FOUND_MAX + 5 {
        begin(&ledger, Some("k")).await;
    }
    let lost = begin(&ledger, Some("k")).await;
    let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
    ledger.settle(broken).await.unwrap();
    bench.clock.advance(DAY * 2);
    let alone = begin(&ledger, Some("k")).await;

    let found = find(&bench.state(), &lost.to_string()).unwrap();
    assert_eq!((found.family.len(), found.more), (FOUND_MAX, true));
    assert!(matches!(found.entries[0].state, State::InDoubt { .. }));
    let found = find(&bench.state(), &alone.to_string()).unwrap();
    assert_eq!((ids(&found.family), found.more), (vec![alone], false));
}

/// Its beginning is the time: some thousand entries may share it.
#[test]
fn a_whole_id_is_not_looked_for_by_its_beginning() {
    let id = uuid::Uuid::from_u128(0x0198_f3a2_1c4d_7abc_9def_0123_4567_89ab);
    let written = [id.hyphenated().to_string(), id.simple().to_string()];

    for text in written {
        let sought = Query::of(&text, &[0; 32]).sought();
        assert_eq!((sought.head, sought.needles.len()), (None, 3), "{text}");
    }
    let part = Query::of("0198f3a2", &[0; 32]).sought();
    assert_eq!(part.head, Some(0x0198_f3a2));
}
