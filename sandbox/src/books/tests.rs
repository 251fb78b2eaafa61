//! The disk fails here until it is mended.

use super::*;
use crate::{
    clock::Clock,
    fingerprint::Fingerprint,
    idempotency::{Begin, Claim, Keys, RunPermit, WhileRunning},
    key_id::KeyId,
    store::Store,
};
use http::HeaderValue;
use std::sync::Arc;

struct Ground {
    store: Store,
    keep: Keep,
    books: Books,
    keys: Arc<Keys>,
    /// The store's file, while its disk is broken.
    broken: Mutex<Option<redb::Database>>,
}

fn micro(amount: u64) -> MicroUsd {
    MicroUsd::new(amount).unwrap()
}

fn key() -> KeyId {
    let header = HeaderValue::from_static("a");
    KeyId::read("org-1", Some(&header)).unwrap().unwrap()
}

fn debit(request_id: &str, amount: u64) -> Debit {
    Debit {
        n: 0,
        org: "org-1".to_owned(),
        key: None,
        route: "/v1/chat/completions".to_owned(),
        amount_micro_usd: micro(amount),
        request_id: request_id.to_owned(),
        at: "2026-01-01T00:00:00Z".to_owned(),
        stream: false,
        body_fingerprint: String::new(),
    }
}

// === impl Ground ===

impl Ground {
    fn new() -> Self {
        let store = Store::open(None).unwrap();
        let keep = Keep::new(&store, true);
        let organizations = std::iter::once("org-1".to_owned());
        let books = Books::new(organizations, micro(1_000)).kept(
            keep.clone(),
            Totals::default(),
            Vec::new(),
            Default::default(),
        );
        let keys = Keys::kept(Clock::system(), keep.clone(), Vec::new());
        Self {
            store,
            keep,
            books,
            keys,
            broken: Mutex::new(None),
        }
    }

    async fn begin(&self) -> RunPermit {
        let fingerprint = Fingerprint::of("/v1/chat/completions", b"{}", None, None);
        let begin = self
            .keys
            .begin(Some(key()), fingerprint, WhileRunning::RunAlongside);
        match begin.await.unwrap() {
            Begin::Run(run) => run,
            Begin::Replay(_) => panic!("nothing is stored"),
        }
    }

    fn charge(&self, run: &RunPermit, request_id: &str, amount: u64) {
        assert_eq!(run.claim(micro(amount)), Claim::Bill);
        let keyed = Debit {
            key: Some("a".to_owned()),
            ..debit(request_id, amount)
        };
        let entered = (self.books).enter(keyed, |mutations| run.charged(&self.keep, mutations));
        entered.unwrap();
    }

    async fn settle(&self, request_id: &str) -> bool {
        let withdraw = || self.books.withdraw(request_id, |key| self.keys.unbind(key));
        self.keep.commit_or(withdraw).await.is_ok()
    }

    fn broken() -> Self {
        let ground = Self::new();
        *ground.broken.lock() = ground.store.take_away();
        ground
    }

    /// From now on writes succeed.
    fn mend(&self) {
        self.store.put_back(self.broken.lock().take());
    }

    fn balance(&self) -> i64 {
        self.books.view("org-1").balance_micro_usd.get()
    }

    fn lines(&self) -> Vec<(u64, String)> {
        let view = self.books.view("org-1");
        let sum: i64 = view
            .debits
            .iter()
            .map(|line| line.amount_micro_usd.get())
            .sum();
        assert_eq!(view.debited_micro_usd.get(), sum);
        assert_eq!(view.debits_made, view.debits.len() as u64);
        let lines = view.debits.into_iter();
        lines.map(|line| (line.n, line.request_id)).collect()
    }
}

#[tokio::test]
async fn a_debit_that_cannot_be_written_leaves_books_and_key_as_they_were() {
    let ground = Ground::broken();
    let run = ground.begin().await;
    ground.charge(&run, "req_1", 300);
    run.bind();

    assert!(!ground.settle("req_1").await);

    assert_eq!((ground.balance(), ground.lines()), (1_000, vec![]));
    ground.mend();
    // The key is as new: the next run is billed, once, in memory and on disk.
    let run = ground.begin().await;
    ground.charge(&run, "req_2", 200);
    run.bind();
    assert!(ground.settle("req_2").await);
    assert_eq!(ground.balance(), 800);
    assert_eq!(ground.lines(), [(1, "req_2".to_owned())]);
    let totals: Totals = ground.store.get(SINGLES, TOTALS).unwrap().unwrap();
    assert_eq!(totals.balances["org-1"], micro(800));
    assert_eq!((totals.debited, totals.debits_made), (micro(200), 1));
    let rows = ground
        .store
        .all::<serde_json::Value>(crate::keep::KEYS)
        .unwrap();
    assert_eq!(rows.len(), 1);
}

/// The keys were forgotten while the first ran, as a reset does, and another bought under its key: before the first
/// was charged, and after.
#[tokio::test]
async fn a_debit_that_is_taken_back_frees_no_later_binding_of_its_key() {
    for is_charged_before in [false, true] {
        let ground = Ground::new();
        let first = ground.begin().await;
        *ground.broken.lock() = ground.store.take_away();
        if is_charged_before {
            ground.charge(&first, "req_1", 300);
        }
        ground.keys.forget_all();
        let second = ground.begin().await;
        ground.charge(&second, "req_2", 200);
        second.bind();
        if !is_charged_before {
            ground.charge(&first, "req_1", 300);
        }

        assert!(!ground.settle("req_1").await);

        assert_eq!(ground.lines(), [(1, "req_2".to_owned())]);
        assert!(
            ground.begin().await.is_free(),
            "it was billed to the second"
        );
    }
}

#[tokio::test]
async fn only_the_own_debit_is_taken_back_and_the_lines_behind_it_move_up() {
    let ground = Ground::broken();
    for (id, amount) in [("req_1", 1), ("req_2", 20), ("req_3", 300)] {
        ground.books.debit(debit(id, amount)).unwrap();
    }

    assert!(!ground.settle("req_2").await);

    assert_eq!(ground.balance(), 1_000 - 301);
    let left = [(1, "req_1".to_owned()), (2, "req_3".to_owned())];
    assert_eq!(ground.lines(), left);
    ground.mend();
    // The failed write may have reached the disk.
    let row = format!("{:020}-req_2", 2);
    ground.store.put(DEBITS, &row, &debit("req_2", 20)).unwrap();
    assert!(ground.settle("req_1").await);
    ground.books.debit(debit("req_4", 4_000)).unwrap();
    assert!(ground.settle("req_4").await);
    let on_disk = ground.store.all::<Debit>(crate::keep::DEBITS).unwrap();
    let ids: Vec<&str> = on_disk
        .iter()
        .map(|(_, line)| line.request_id.as_str())
        .collect();
    assert_eq!(ids, ["req_1", "req_3", "req_4"]);
}

#[tokio::test]
async fn a_balance_that_was_set_since_and_books_that_were_reset_since_get_nothing_back() {
    let ground = Ground::broken();
    ground.books.debit(debit("req_1", 300)).unwrap();
    ground.books.set_balance(None, micro(50));
    // The disk fails at the debit, before the balance is written.
    assert!(!ground.settle("req_1").await);
    assert_eq!((ground.balance(), ground.lines()), (50, vec![]));

    ground.books.debit(debit("req_2", 30)).unwrap();
    ground.books.reset(|| ground.keys.forget_all());
    ground.books.debit(debit("req_3", 5)).unwrap();
    assert!(!ground.settle("req_2").await);
    assert_eq!(ground.balance(), 995);
    ground.mend();
    assert!(ground.settle("req_3").await);
    let totals: Totals = ground.store.get(SINGLES, TOTALS).unwrap().unwrap();
    assert_eq!(
        (totals.balances["org-1"], totals.debited),
        (micro(995), micro(5))
    );
}

#[tokio::test]
async fn what_a_dropped_commit_took_to_be_written_is_written() {
    let ground = Ground::new();
    ground.books.debit(debit("req_1", 300)).unwrap();

    // Polled until it waits for the disk, then dropped, as when a client leaves.
    let mut commit = Box::pin(ground.keep.commit());
    assert!(futures_util::poll!(commit.as_mut()).is_pending());
    tokio::task::yield_now().await;
    drop(commit);

    ground.books.debit(debit("req_2", 1)).unwrap();
    assert!(ground.settle("req_2").await);
    let totals: Totals = ground.store.get(SINGLES, TOTALS).unwrap().unwrap();
    assert_eq!((totals.debited, totals.debits_made), (micro(301), 2));
}

#[test]
fn a_debit_that_does_not_fit_changes_nothing() {
    let ground = Ground::new();
    ground.books.debit(debit("req_1", i64::MAX as u64)).unwrap();
    let before = (ground.balance(), ground.lines());

    let elsewhere = Debit {
        org: "org-2".to_owned(),
        ..debit("req_2", 1)
    };
    for debit in [debit("req_2", i64::MAX as u64), elsewhere] {
        assert!(ground.books.debit(debit).is_err());
        assert_eq!((ground.balance(), ground.lines()), before);
    }
}

#[tokio::test]
async fn one_transaction_clears_and_then_writes_what_came_later() {
    let ground = Ground::broken();
    ground.books.debit(debit("req_1", 300)).unwrap();
    assert!(ground.keep.commit().await.is_err());
    ground.books.reset(|| ground.keys.forget_all());
    ground.books.debit(debit("req_2", 5)).unwrap();
    assert!(ground.keep.commit().await.is_err());
    ground.mend();

    ground.keep.commit().await.unwrap();

    let on_disk = ground.store.all::<Debit>(DEBITS).unwrap();
    let ids: Vec<&str> = on_disk
        .iter()
        .map(|(_, one)| one.request_id.as_str())
        .collect();
    assert_eq!(ids, ["req_2"]);
    let totals: Totals = ground.store.get(SINGLES, TOTALS).unwrap().unwrap();
    assert_eq!((totals.debited, totals.debits_made), (micro(5), 1));
}

#[tokio::test]
async fn hours_that_several_requests_queue_at_once_are_written_as_they_are_last() {
    const THREADS: usize = 4;
    const HOURS: i64 = 700;
    let ground = Ground::new();
    // All of them at the same hour, which none changes later.
    let begin = std::sync::Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for hour in 0..HOURS {
                    let at = Timestamp::from_second(hour * 3_600).unwrap();
                    begin.wait();
                    for _ in 0..10 {
                        ground.books.count_request("org-1", at, 1, true);
                        ground.books.queue_hours();
                    }
                }
            });
        }
    });

    ground.keep.commit().await.unwrap();

    let rows = ground.store.all::<serde_json::Value>(ROLLUP_HOURS).unwrap();
    let whole = |(_, hour): &&(String, serde_json::Value)| hour["requests"] == 10 * THREADS;
    let whole = rows.iter().filter(whole).count();
    assert_eq!(whole, usize::try_from(HOURS).unwrap());
}
