//! The table of undelivered requests over restarts, kills and lost indexes.

use std::time::Duration;

use proptest::prelude::*;

use super::{Delivery, FirstSent, KeyUse, ROWS_MAX, Remembered, Undelivered};
use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, Intent};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fixtures::{Bench, billed, ended, intent, kill_after_next, minted};
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeptKey;
use crate::ledger::kept_key::{EntryKey, KeyOrigin};
use crate::ledger::{Ledger, LedgerOptions, OnFailure};
use crate::protocol::receipt::Receipt;

/// One request as the proxy would write it.
#[derive(Clone, Debug)]
struct Request(Intent);

impl Request {
    async fn begin(ledger: &Ledger, bench: &Bench, key: &str) -> Self {
        let id = ledger.new_entry_id();
        let mut intent = intent(id, bench.clock.wall_ms(), Some(key));
        intent.key_use = Some(first_use(bench));
        ledger.intend(intent.clone()).await.unwrap();
        Self(intent)
    }

    async fn adopt(ledger: &Ledger, bench: &Bench, row: &Undelivered) -> Self {
        let id = ledger.new_entry_id();
        let mut intent = intent(id, bench.clock.wall_ms(), Some(&row.key.value));
        intent.key_use = Some(KeyUse {
            adoptions: row.key_use.adoptions + 1,
            ..row.key_use
        });
        intent.key = Some(KeptKey {
            origin: KeyOrigin::Adopted { from: row.id },
            ..minted(&row.key.value)
        });
        ledger.intend(intent.clone()).await.unwrap();
        Self(intent)
    }

    async fn end(&self, ledger: &Ledger, bench: &Bench, end: AttemptEnd, delivery: Delivery) {
        let receipt = match end {
            AttemptEnd::Answered => billed(7),
            _ => Receipt::default(),
        };
        let mut outcome = ended(self.0.id, end, receipt);
        outcome.at_ms = bench.clock.wall_ms();
        outcome.delivery = delivery;
        ledger.settle(outcome).await.unwrap();
    }

    /// The row that it would leave now.
    fn row(&self, bench: &Bench) -> Undelivered {
        Undelivered {
            at_ms: bench.clock.wall_ms(),
            ..Undelivered::of_intent(&self.0).unwrap()
        }
    }
}

/// Of a key that is sent now.
fn first_use(bench: &Bench) -> KeyUse {
    KeyUse {
        first_sent: FirstSent::now(&bench.clock),
        adoptions: 0,
    }
}

async fn rows(ledger: &Ledger) -> Vec<Undelivered> {
    ledger.undelivered().await.unwrap().rows
}

/// The process ends in order and another one begins.
async fn restart(bench: &Bench, ledger: Ledger) -> Ledger {
    ledger.close().await;
    drop(ledger);
    bench.open()
}

#[tokio::test]
async fn an_outcome_says_whether_its_answer_reached_the_app() {
    use AttemptEnd::{Answered, NoHead, NotSent, Refused};
    use Delivery::{Given, Missed, Pending};
    let rows_wanted: [(AttemptEnd, Delivery, bool); 7] = [
        (Answered, Given, false),
        (Answered, Pending, false),
        (Answered, Missed, true),
        (NoHead, Missed, true),
        // Nothing ran: nothing is to be passed on.
        (Refused, Missed, false),
        (NotSent, Missed, false),
        (NoHead, Given, false),
    ];
    for (end, delivery, wanted) in rows_wanted {
        let bench = Bench::new();
        let ledger = bench.open();
        let request = Request::begin(&ledger, &bench, "k").await;
        bench.clock.advance(Duration::from_secs(1));
        request.end(&ledger, &bench, end, delivery).await;
        let row = request.row(&bench);
        bench.clock.advance(Duration::from_secs(1));
        let before = rows(&ledger).await;
        let ledger = restart(&bench, ledger).await;
        let wanted: Vec<_> = wanted.then_some(row).into_iter().collect();
        assert_eq!(before, wanted, "{end:?} {delivery:?}");
        assert_eq!(rows(&ledger).await, wanted, "{end:?} {delivery:?}");
    }
}

#[tokio::test]
async fn what_a_killed_process_had_open_is_undelivered() {
    let bench = Bench::new();
    let ledger = bench.open();
    let first = Request::begin(&ledger, &bench, "k1").await;
    kill_after_next(&ledger);
    let second = Request::begin(&ledger, &bench, "k2").await;
    drop(ledger);
    bench.clock.advance(Duration::from_secs(60));

    let ledger = bench.open();
    let wanted = vec![first.row(&bench), second.row(&bench)];
    assert_eq!(rows(&ledger).await, wanted);
    let ledger = restart(&bench, ledger).await;
    assert_eq!(rows(&ledger).await, wanted, "and after one more restart");
}

#[tokio::test]
async fn an_apps_own_key_and_an_older_bursars_line_leave_nothing() {
    let bench = Bench::new();
    let ledger = bench.open();
    let uses = [Some(first_use(&bench)), None];
    for (key_use, origin) in uses.into_iter().zip([KeyOrigin::App, KeyOrigin::Minted]) {
        let id = ledger.new_entry_id();
        let mut intent = intent(id, bench.clock.wall_ms(), Some("k"));
        intent.key_use = key_use;
        intent.key = intent.key.map(|key| KeptKey { origin, ..key });
        ledger.intend(intent).await.unwrap();
    }
    ledger.close().await;
    drop(ledger);
    assert_eq!(bench.open().totals().requests(), 2, "they crashed");
    assert_eq!(rows(&bench.open()).await, []);
}

#[tokio::test]
async fn an_adopting_intent_takes_the_row_out_and_its_end_decides() {
    use AttemptEnd::{Answered, NoHead, Refused};
    use Delivery::{Missed, Pending};
    for (end, delivery, stays) in [
        (Answered, Pending, false),
        (NoHead, Missed, true),
        // The request that the key was adopted from may have run.
        (Refused, Missed, true),
    ] {
        let bench = Bench::new();
        let ledger = bench.open();
        let first = Request::begin(&ledger, &bench, "k").await;
        first.end(&ledger, &bench, NoHead, Missed).await;
        let ledger = restart(&bench, ledger).await;
        let row = rows(&ledger).await.remove(0);
        let second = Request::adopt(&ledger, &bench, &row).await;
        assert_eq!(rows(&ledger).await, [], "a key has one holder");
        bench.clock.advance(Duration::from_secs(9));
        second.end(&ledger, &bench, end, delivery).await;
        let left = second.row(&bench);
        let ledger = restart(&bench, ledger).await;
        let now = rows(&ledger).await;
        assert_eq!(now, Vec::from_iter(stays.then_some(left)), "{end:?}");
        if let Some(row) = now.first() {
            let wanted = KeyUse {
                adoptions: 1,
                ..first.0.key_use.unwrap()
            };
            assert_eq!(row.key_use, wanted, "its key's age");
        }
    }
}

#[tokio::test]
async fn what_is_known_after_the_outcome_is_noted_by_a_line_of_its_own() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
        .await;
    ledger.note_delivery(request.row(&bench), false);
    assert_eq!(rows(&ledger).await, [request.row(&bench)]);
    let ledger = restart(&bench, ledger).await;
    assert_eq!(rows(&ledger).await, [request.row(&bench)]);
    ledger.note_delivery(request.row(&bench), true);
    assert_eq!(rows(&ledger).await, []);
    let ledger = restart(&bench, ledger).await;
    assert_eq!(rows(&ledger).await, []);
    assert_eq!(ledger.totals().billed().get(), 7, "sums do not see it");
}

/// With `on_failure = "serve"` the outcome itself waits, and takes the note in.
#[tokio::test]
async fn what_is_known_while_the_outcome_waits_is_written_with_it() {
    for (before, delivered) in [(Delivery::Pending, false), (Delivery::Missed, true)] {
        let bench = Bench::new();
        let ledger = Ledger::open(LedgerOptions {
            on_failure: OnFailure::Serve,
            ..bench.options()
        })
        .unwrap();
        let request = Request::begin(&ledger, &bench, "k").await;
        bench.fail_next_write(0, 5);
        request
            .end(&ledger, &bench, AttemptEnd::Answered, before)
            .await;
        ledger.note_delivery(request.row(&bench), delivered);
        // Behind the note, while the journal is still closed.
        let _ = ledger.undelivered().await;
        assert_eq!(ledger.health().waiting, 1);
        bench.clock.advance(Duration::from_secs(2));
        let left: Vec<EntryId> = rows(&ledger).await.iter().map(|row| row.id).collect();
        assert_eq!(ledger.health().waiting, 0);
        let ledger = restart(&bench, ledger).await;
        let after: Vec<EntryId> = rows(&ledger).await.iter().map(|row| row.id).collect();
        assert_eq!((left.is_empty(), after.is_empty()), (delivered, delivered));
        assert_eq!(ledger.totals().billed().get(), 7);
    }
}

/// Killed between settling and writing: money comes first.
#[tokio::test]
async fn an_answer_of_the_last_moments_before_a_kill_is_assumed_to_be_undelivered() {
    for lose_index in [false, true] {
        let bench = Bench::new();
        let ledger = bench.open();
        let request = Request::begin(&ledger, &bench, "k").await;
        kill_after_next(&ledger);
        request
            .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
            .await;
        drop(ledger);
        if lose_index {
            std::fs::remove_dir_all(bench.state().join("index")).unwrap();
        }
        let row = request.row(&bench);
        bench.clock.advance(Duration::from_secs(30));
        let ledger = bench.open();
        assert_eq!(rows(&ledger).await.first(), Some(&row), "{lose_index}");
        let ledger = restart(&bench, ledger).await;
        assert_eq!(
            rows(&ledger).await,
            [row],
            "{lose_index}: it is written down"
        );
    }
}

#[tokio::test]
async fn an_answer_that_was_surely_given_is_not_assumed_to_be_undelivered() {
    // Two seconds later the process still lived, or it ended in order.
    for (name, lives_on_ms, in_order) in [
        ("lived on", 2_001, false),
        ("ended in order", 0, true),
        ("index lost after that", 0, true),
    ] {
        let bench = Bench::new();
        let ledger = bench.open();
        let request = Request::begin(&ledger, &bench, "k").await;
        request
            .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
            .await;
        bench.clock.advance(Duration::from_millis(lives_on_ms));
        if in_order {
            ledger.close().await;
        } else {
            kill_after_next(&ledger);
            Request::begin(&ledger, &bench, "other").await;
        }
        drop(ledger);
        if name.starts_with("index") {
            std::fs::remove_dir_all(bench.state().join("index")).unwrap();
        }
        let left = rows(&bench.open()).await;
        assert!(
            left.iter().all(|row| &*row.key.value != "k"),
            "{name}: {left:?}"
        );
    }
}

/// The index is updated when the writer has nothing else to do: by then an answer has gone out.
#[tokio::test]
async fn an_answer_that_the_index_has_is_not_assumed_to_be_undelivered() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
        .await;
    // Real time: the writer waits half a second for something to do.
    let until = tokio::time::Instant::now() + Duration::from_secs(10);
    while ledger.indexed_seq() < 2 {
        assert!(
            tokio::time::Instant::now() < until,
            "the index is not updated"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    kill_after_next(&ledger);
    rows(&ledger).await;
    drop(ledger);
    assert_eq!(rows(&bench.open()).await, []);
}

/// Under load the index is updated in between, a moment after the answers were settled.
#[tokio::test]
async fn an_answer_that_was_indexed_under_load_may_still_be_on_its_way() {
    let bench = Bench::new();
    let ledger = bench.open();
    let mut requests = Vec::new();
    for number in 0..150 {
        requests.push(Request::begin(&ledger, &bench, &format!("k{number}")).await);
    }
    let ends = requests
        .iter()
        .map(|request| request.end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending));
    // The index is due, and written beside the writer.
    bench.clock.advance(Duration::from_secs(1));
    futures_util::future::join_all(ends).await;
    // What was committed behind that write is due a second later.
    bench.clock.advance(Duration::from_secs(1));
    while ledger.indexed_seq() <= 150 {
        rows(&ledger).await;
    }
    kill_after_next(&ledger);
    rows(&ledger).await;
    drop(ledger);
    let left = rows(&bench.open()).await;
    assert_eq!(left.len(), requests.len());
}

/// The note is not repeated, and the process ends in order.
#[tokio::test]
async fn what_is_noted_while_the_journal_fails_is_noted_when_it_is_open_again() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
        .await;
    let row = request.row(&bench);
    bench.fail_next_write(0, 5);
    ledger.note_delivery(row.clone(), false);
    ledger.undelivered().await.unwrap_err();
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(rows(&ledger).await.first(), Some(&row));
    let ledger = restart(&bench, ledger).await;
    assert_eq!(rows(&ledger).await, [row]);
}

/// As at a second signal to stop: the process goes while answers are being written.
#[tokio::test]
async fn a_ledger_that_is_dropped_and_not_closed_did_not_end_in_order() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
        .await;
    drop(ledger);
    assert_eq!(rows(&bench.open()).await, [request.row(&bench)]);
}

/// The next process is killed at once, and the index is lost with it.
#[tokio::test]
async fn a_kill_casts_no_doubt_on_a_process_before_that_ended_in_order() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::Answered, Delivery::Pending)
        .await;
    let ledger = restart(&bench, ledger).await;
    kill_after_next(&ledger);
    let other = Request::begin(&ledger, &bench, "other").await;
    drop(ledger);
    std::fs::remove_dir_all(bench.state().join("index")).unwrap();
    assert_eq!(rows(&bench.open()).await, [other.row(&bench)]);
}

#[tokio::test]
async fn rows_are_kept_for_24_hours() {
    let bench = Bench::new();
    let ledger = bench.open();
    let request = Request::begin(&ledger, &bench, "k").await;
    request
        .end(&ledger, &bench, AttemptEnd::NoHead, Delivery::Missed)
        .await;
    let day = Duration::from_secs(24 * 3600);
    bench.clock.advance(day - Duration::from_millis(1));
    let ledger = restart(&bench, ledger).await;
    assert_eq!(rows(&ledger).await.len(), 1);
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(rows(&ledger).await, []);
}

#[tokio::test]
async fn the_end_of_the_journal_shows_that_the_clock_was_set_back() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.clock.advance(Duration::from_secs(50));
    let ended_ms = bench.clock.wall_ms();
    Request::begin(&ledger, &bench, "k").await;
    kill_after_next(&ledger);
    rows(&ledger).await;
    drop(ledger);
    bench.clock.set_wall_ms(ended_ms - 10_000);
    let ledger = bench.open();
    let Remembered {
        journal_ended_ms, ..
    } = ledger.undelivered().await.unwrap();
    // Not the time of the line that this start wrote for the dead process.
    assert_eq!(journal_ended_ms, ended_ms);
}

#[test]
fn rows_are_bounded_and_the_oldest_is_forgotten_first() {
    let mut deliveries = super::Deliveries::default();
    let key_use = first_use(&Bench::new());
    for number in 0..=ROWS_MAX {
        deliveries.insert(Undelivered {
            id: EntryId(uuid::Uuid::from_u128(number as u128)),
            at_ms: 0,
            app: "a".into(),
            fingerprint: Fingerprint([0; 32]),
            key: EntryKey {
                value: format!("k{number}").into(),
                origin: KeyOrigin::Minted,
            },
            key_use,
        });
    }
    let rows = deliveries.rows(0);
    assert_eq!(rows.len(), ROWS_MAX);
    assert_eq!(&*rows[0].key.value, "k1");
    assert_eq!(
        (deliveries.rows.len(), deliveries.order.len()),
        (ROWS_MAX, ROWS_MAX)
    );
}

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Adopt(prop::sample::Index),
    End(prop::sample::Index, u8, u8),
    Note(prop::sample::Index, bool),
    Advance(u16),
    Restart(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        5 => Just(Step::Begin),
        4 => index().prop_map(Step::Adopt),
        6 => (index(), 0u8..4, 0u8..3).prop_map(|(of, end, delivery)| Step::End(of, end, delivery)),
        2 => (index(), any::<bool>()).prop_map(|(of, delivered)| Step::Note(of, delivered)),
        2 => (0u16..3_000).prop_map(Step::Advance),
        2 => (0u8..4).prop_map(Step::Restart),
    ]
}

/// Plays the steps. `wanted` is the table as the proxy would keep it, worked out beside the ledger.
async fn play(steps: Vec<Step>) {
    let bench = Bench::new();
    let mut ledger = bench.open();
    let (mut open, mut ended) = (Vec::<Request>::new(), Vec::<Request>::new());
    let mut wanted: Vec<Undelivered> = Vec::new();
    let mut number = 0;
    let drop_key = |wanted: &mut Vec<Undelivered>, key: &str| {
        wanted.retain(|row| &*row.key.value != key);
    };
    for step in steps {
        match step {
            Step::Begin => {
                number += 1;
                open.push(Request::begin(&ledger, &bench, &format!("k{number}")).await);
            }
            Step::Adopt(of) if !wanted.is_empty() => {
                let row = wanted.remove(of.index(wanted.len()));
                ended.retain(|request| request.0.id != row.id);
                open.push(Request::adopt(&ledger, &bench, &row).await);
            }
            Step::End(of, end, delivery) if !open.is_empty() => {
                use AttemptEnd::{Answered, NoHead, NotSent, Refused};
                let request = open.remove(of.index(open.len()));
                let end = [Answered, NoHead, NotSent, Refused][usize::from(end)];
                let delivery =
                    [Delivery::Given, Delivery::Pending, Delivery::Missed][usize::from(delivery)];
                request.end(&ledger, &bench, end, delivery).await;
                let ran =
                    matches!(end, Answered | NoHead) || request.0.key_use.unwrap().adoptions > 0;
                if delivery == Delivery::Missed && ran {
                    wanted.push(request.row(&bench));
                }
                ended.push(request);
            }
            Step::Note(of, delivered) if !ended.is_empty() => {
                let request = ended.remove(of.index(ended.len()));
                let row = request.row(&bench);
                ledger.note_delivery(row.clone(), delivered);
                drop_key(&mut wanted, &row.key.value);
                if !delivered {
                    wanted.push(row);
                }
            }
            Step::Advance(by_ms) => bench.clock.advance(Duration::from_millis(by_ms.into())),
            Step::Restart(how) => {
                assert_eq!(rows(&ledger).await, wanted);
                if how == 0 {
                    kill_after_next(&ledger);
                    rows(&ledger).await;
                } else {
                    ledger.close().await;
                }
                drop(ledger);
                if how == 2 {
                    std::fs::remove_dir_all(bench.state().join("index")).unwrap();
                }
                ledger = bench.open();
                let now = rows(&ledger).await;
                if how == 0 {
                    // Whether the index has an answer's end by now is the writer's affair.
                    let known = wanted.clone();
                    let assumed = now.iter().filter(|row| {
                        ended.iter().any(|request| request.0.id == row.id)
                            && known.iter().all(|known| known.id != row.id)
                    });
                    wanted.extend(assumed.cloned());
                }
                wanted.extend(std::mem::take(&mut open).iter().map(|one| one.row(&bench)));
                assert_eq!(now, wanted);
                ended.clear();
            }
            Step::Adopt(_) | Step::End(..) | Step::Note(..) => {}
        }
    }
    assert_eq!(rows(&ledger).await, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_table_is_the_same_after_any_restart(steps in prop::collection::vec(step(), 1..70)) {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(play(steps));
    }
}
