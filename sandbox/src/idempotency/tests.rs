use super::{table::BINDINGS_MAX, *};
use crate::{
    clock::Clock,
    error::ServiceError,
    fingerprint::{Fingerprint, hex, sha256},
    key_id::KeyId,
    money::MicroUsd,
    spec,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::{sync::Arc, time::Duration};

const HOUR: Duration = Duration::from_secs(3600);

struct Table {
    clock: Clock,
    keys: Arc<Keys>,
}

// === impl Table ===

impl Table {
    fn new() -> Self {
        let clock = Clock::system();
        clock.elapsed();
        Self {
            keys: Keys::new(clock.clone()),
            clock,
        }
    }

    async fn begin(&self, body: &str, while_running: WhileRunning) -> Result<Begin, ServiceError> {
        self.keys
            .begin(id("org-1", "k"), print(body), while_running)
            .await
    }

    async fn run(&self, body: &str) -> RunPermit {
        match self.begin(body, WhileRunning::Wait).await {
            Ok(Begin::Run(run)) => run,
            other => panic!("expected a run, got {other:?}"),
        }
    }

    async fn alongside(&self, body: &str) -> RunPermit {
        match self.begin(body, WhileRunning::RunAlongside).await {
            Ok(Begin::Run(run)) => run,
            other => panic!("expected a run, got {other:?}"),
        }
    }
}

fn id(org: &str, key: &str) -> Option<KeyId> {
    KeyId::read(org, Some(&HeaderValue::from_str(key).unwrap())).unwrap()
}

fn print(body: &str) -> Fingerprint {
    Fingerprint::of("/v1/chat/completions", body.as_bytes(), None, None)
}

fn answer(bytes: usize) -> Stored {
    Stored::new(
        StatusCode::OK,
        &http::HeaderMap::new(),
        vec![b'x'; bytes].into(),
    )
}

fn amount(n: u64) -> MicroUsd {
    MicroUsd::new(n).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stored_answer_is_replayed_for_24_hours_and_then_the_key_is_free() {
    let table = Table::new();
    let run = table.run("{}").await;
    assert_eq!(run.claim(amount(5)), Claim::Bill);
    run.store(answer(3), spec::STORED_BYTES_MAX);

    table.clock.advance(23 * HOUR);
    assert!(matches!(
        table.begin("{}", WhileRunning::Wait).await,
        Ok(Begin::Replay(_))
    ));

    table.clock.advance(HOUR);
    let run = table.run("{\"another\":1}").await;
    assert_eq!(run.claim(amount(5)), Claim::Bill);
}

#[tokio::test(start_paused = true)]
async fn another_body_is_422_in_every_state_but_after_a_failure() {
    let table = Table::new();

    let run = table.run("1").await;
    assert!(matches!(
        table.begin("2", WhileRunning::Wait).await,
        Err(ServiceError::KeyReused)
    ));
    drop(run);
    let run = table.run("2").await;
    run.store(answer(1), spec::STORED_BYTES_MAX);
    assert!(matches!(
        table.begin("1", WhileRunning::Wait).await,
        Err(ServiceError::KeyReused)
    ));

    table.clock.advance(24 * HOUR);
    table.run("1").await.bind();
    assert!(matches!(
        table.begin("2", WhileRunning::RunAlongside).await,
        Err(ServiceError::KeyReused)
    ));
}

#[tokio::test(start_paused = true)]
async fn keys_of_two_organizations_are_two_keys() {
    let table = Table::new();
    table
        .run("1")
        .await
        .store(answer(1), spec::STORED_BYTES_MAX);

    let other = table
        .keys
        .begin(id("org-2", "k"), print("2"), WhileRunning::Wait)
        .await;

    assert!(matches!(other, Ok(Begin::Run(_))));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_duplicate_gets_the_stored_answer() {
    let table = Table::new();
    let run = table.run("{}").await;

    let (waited, ()) = tokio::join!(table.begin("{}", WhileRunning::Wait), async {
        run.store(answer(7), spec::STORED_BYTES_MAX)
    });

    match waited {
        Ok(Begin::Replay(stored)) => assert_eq!(stored.body.len(), 7),
        other => panic!("expected a replay, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_first_fails_one_waiting_duplicate_runs_and_the_others_wait_for_it() {
    let table = Table::new();
    let first = table.run("{}").await;
    let waiting = async || table.begin("{}", WhileRunning::Wait).await.unwrap();

    let (a, b, ()) = tokio::join!(
        async {
            let begin = waiting().await;
            if let Begin::Run(run) = begin {
                run.store(answer(1), spec::STORED_BYTES_MAX);
                true
            } else {
                false
            }
        },
        async {
            let begin = waiting().await;
            if let Begin::Run(run) = begin {
                run.store(answer(1), spec::STORED_BYTES_MAX);
                true
            } else {
                false
            }
        },
        async { drop(first) },
    );

    assert_eq!(u8::from(a) + u8::from(b), 1);
}

#[tokio::test(start_paused = true)]
async fn after_9_minutes_a_waiting_duplicate_is_409_and_the_first_runs_on() {
    let table = Table::new();
    let run = table.run("{}").await;
    let before = table.clock.elapsed();

    let waited = table.begin("{}", WhileRunning::Wait).await;

    assert!(matches!(waited, Err(ServiceError::StillRunning { .. })));
    assert_eq!((table.clock.elapsed() - before).as_secs(), 540);
    run.store(answer(1), spec::STORED_BYTES_MAX);
    assert!(matches!(
        table.begin("{}", WhileRunning::Wait).await,
        Ok(Begin::Replay(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn streams_and_agent_turns_run_alongside_and_one_is_billed() {
    let table = Table::new();

    let first = table.alongside("{}").await;
    let second = table.alongside("{}").await;
    assert_eq!(second.claim(amount(9)), Claim::Bill);
    assert_eq!(first.claim(amount(8)), Claim::Billed(amount(9)));
    first.bind();
    second.bind();

    let third = table.alongside("{}").await;
    assert_eq!(third.claim(amount(7)), Claim::Billed(amount(9)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_1_mb_is_not_stored_and_its_repeat_is_not_billed() {
    let table = Table::new();
    let first = table.run("{}").await;
    assert_eq!(first.claim(amount(5)), Claim::Bill);
    first.store(answer(spec::STORED_BYTES_MAX + 1), spec::STORED_BYTES_MAX);

    let repeat = table.run("{}").await;

    assert_eq!(repeat.claim(amount(5)), Claim::Billed(amount(5)));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_fails_leaves_the_key_bound_and_billed() {
    let table = Table::new();
    let first = table.alongside("{}").await;
    assert_eq!(first.claim(amount(5)), Claim::Bill);
    first.bind();

    drop(table.alongside("{}").await);

    assert!(matches!(
        table.begin("1", WhileRunning::Wait).await,
        Err(ServiceError::KeyReused)
    ));
    assert_eq!(
        table.alongside("{}").await.claim(amount(5)),
        Claim::Billed(amount(5))
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_breaks_after_its_debit_leaves_the_key_bound_and_one_that_made_none_frees_it() {
    let table = Table::new();
    let broken = table.run("{}").await;
    assert_eq!(broken.claim(amount(5)), Claim::Bill);
    broken.unclaim();
    drop(broken);

    let broken = table.run("1").await;
    assert_eq!(broken.claim(amount(5)), Claim::Bill);
    drop(broken);

    let other = table.begin("2", WhileRunning::Wait).await;
    assert!(matches!(other, Err(ServiceError::KeyReused)));
    let repeat = table.run("1").await;
    assert_eq!(repeat.claim(amount(5)), Claim::Billed(amount(5)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_given_back_is_there_for_a_repeat_that_runs_alongside() {
    let table = Table::new();
    let (first, second) = (table.alongside("{}").await, table.alongside("{}").await);

    assert_eq!(first.claim(amount(5)), Claim::Bill);
    first.unclaim();

    assert!(!second.is_free());
    assert_eq!(second.claim(amount(6)), Claim::Bill);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_before_a_reset_touches_nothing_of_the_key_after_it() {
    let table = Table::new();
    let old = table.run("1").await;
    table.keys.forget_all();
    let new = table.run("2").await;

    assert_eq!(old.claim(amount(5)), Claim::Bill);
    old.store(answer(1), spec::STORED_BYTES_MAX);

    assert!(!new.is_free());
    assert_eq!(new.claim(amount(6)), Claim::Bill);
    new.store(answer(2), spec::STORED_BYTES_MAX);
    match table.begin("2", WhileRunning::Wait).await {
        Ok(Begin::Replay(stored)) => assert_eq!(stored.body.len(), 2),
        other => panic!("expected the new answer, got {other:?}"),
    }
}

#[test]
fn a_long_key_is_hashed_and_a_key_that_is_not_printable_is_refused() {
    let long = "k".repeat(257);
    let hashed = id("org-1", &long).unwrap();

    assert_eq!(hashed.key().len(), "sha256:".len() + 64);
    assert_eq!(id("org-1", &"k".repeat(256)).unwrap().key().len(), 256);
    assert_ne!(hashed, id("org-1", &"l".repeat(257)).unwrap());
    assert!(KeyId::read("org-1", Some(&HeaderValue::from_bytes(b"\xff").unwrap())).is_err());
    assert_eq!(id("org-1", ""), None);
    let tab = HeaderValue::from_bytes(b"a\tb").unwrap();
    assert!(KeyId::read("org-1", Some(&tab)).is_err());
    for short in ["sha256:", "sha256"] {
        let looks_hashed = format!("{short}{}", hex(&sha256(long.as_bytes())));
        assert_ne!(id("org-1", &looks_hashed), Some(hashed.clone()));
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let mut headers = HeaderMap::new();
    headers.append("idempotency-key", HeaderValue::from_static("k"));
    assert_eq!(KeyId::of("org-1", &headers).unwrap(), id("org-1", "k"));

    headers.append("idempotency-key", HeaderValue::from_static("k"));

    assert!(matches!(
        KeyId::of("org-1", &headers),
        Err(ServiceError::BadRequest(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn while_large_answers_fill_their_room_a_new_one_waits_until_they_are_a_day_old() {
    let table = Table::new();
    // One body shared by all, so that the test itself stays small.
    let large = answer(16 * 1024 * 1024);
    let begin = async |key: &str| {
        let begun = table
            .keys
            .begin(id("org-1", key), print("{}"), WhileRunning::Wait);
        match begun.await {
            Ok(Begin::Run(run)) => run,
            other => panic!("expected a run, got {other:?}"),
        }
    };
    for key in 0..33 {
        let run = begin(&key.to_string()).await;
        assert!(run.check_room().is_ok(), "{key}");
        run.store(large.clone(), spec::IMAGE_STORED_BYTES_MAX);
    }

    let run = begin("33").await;
    assert!(matches!(
        run.check_room(),
        Err(ServiceError::KeyCheckUnavailable)
    ));
    drop(run);
    table.clock.advance(24 * HOUR);
    assert!(begin("33").await.check_room().is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_image_answer_of_16_mb_is_stored_and_a_byte_more_is_not() {
    for (bytes, stored) in [(16 * 1024 * 1024, true), (16 * 1024 * 1024 + 1, false)] {
        let table = Table::new();
        table
            .run("{}")
            .await
            .store(answer(bytes), spec::IMAGE_STORED_BYTES_MAX);

        let again = table.begin("{}", WhileRunning::Wait).await.unwrap();
        assert_eq!(matches!(again, Begin::Replay(_)), stored, "{bytes}");
    }
}

// Interface, Errors 503: the Idempotency-Key check is briefly unavailable.
#[tokio::test(start_paused = true)]
async fn a_full_table_of_keys_is_503_until_some_have_expired() {
    let table = Table::new();
    for n in 0..BINDINGS_MAX {
        let id = id("org-1", &n.to_string());
        match table.keys.begin(id, print("{}"), WhileRunning::Wait).await {
            Ok(Begin::Run(run)) => run.bind(),
            other => panic!("expected a run, got {other:?}"),
        }
    }
    let one_more = || table.begin("{}", WhileRunning::Wait);

    let error = one_more().await.unwrap_err();
    assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
    table.clock.advance(24 * HOUR);
    assert!(matches!(one_more().await, Ok(Begin::Run(_))));
}
