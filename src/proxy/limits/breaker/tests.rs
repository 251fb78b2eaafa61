use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::*;
use crate::clock::ManualClock;

const REFUSED: StatusCode = StatusCode::PAYMENT_REQUIRED;

fn breaker() -> (Arc<Breaker>, ManualClock, Arc<Metrics>) {
    let clock = ManualClock::at(1_700_000_000_000);
    let metrics = Arc::new(Metrics::new().unwrap());
    let shared: SharedClock = Arc::new(clock.clone());
    (Breaker::new(shared, Arc::clone(&metrics)), clock, metrics)
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn refusal(breaker: &Arc<Breaker>, asks: Asks) -> (Code, Option<u64>) {
    let refusal = breaker.pass(asks).err().expect("a refusal");
    (refusal.code, refusal.retry_after_s)
}

#[test]
fn a_refused_account_holds_new_paid_requests_and_nothing_else() {
    let rows = [
        (StatusCode::UNAUTHORIZED, Code::UpstreamRefusedKey, "key"),
        (REFUSED, Code::BalanceEmpty, "balance"),
    ];
    for (status, code, cause) in rows {
        let (breaker, clock, metrics) = breaker();
        let mut pass = breaker.pass(Asks::Anew).unwrap();
        pass.answered(status);
        clock.advance(Duration::from_millis(500));
        assert!(breaker.is_refusing());
        assert_eq!(refusal(&breaker, Asks::Anew), (code, Some(5)), "{status}");
        assert_eq!(code.status(), status, "the service's own status");
        let look = breaker.look(Asks::Anew).unwrap_err();
        assert!(
            look.detail.contains("2023-11-14T22:13:20"),
            "{}",
            look.detail
        );
        assert!(
            breaker.pass(Asks::Again).is_ok(),
            "a stored answer costs nothing"
        );
        assert!(breaker.pass(Asks::Free).is_ok());
        assert_eq!(metrics.traffic.now().breaking, [cause]);
    }
}

#[test]
fn one_asks_after_the_pause_and_its_answer_holds_for_all() {
    let (breaker, clock, metrics) = breaker();
    breaker.pass(Asks::Anew).unwrap().answered(REFUSED);
    clock.advance(s(5));
    let mut probe = breaker.pass(Asks::Anew).unwrap();
    assert_eq!(refusal(&breaker, Asks::Anew).0, Code::BalanceEmpty);
    probe.answered(REFUSED);
    clock.advance(Duration::from_millis(4_999));
    assert_eq!(refusal(&breaker, Asks::Anew), (Code::BalanceEmpty, Some(1)));
    clock.advance(Duration::from_millis(1));
    let mut probe = breaker.pass(Asks::Anew).unwrap();
    probe.answered(StatusCode::OK);
    assert!(breaker.pass(Asks::Anew).is_ok());
    assert!(breaker.pass(Asks::Anew).is_ok());
    assert_eq!(metrics.traffic.now().breaking, Vec::<&str>::new());
}

#[test]
fn a_probe_that_learns_nothing_makes_room_for_the_next_and_silence_is_good_news() {
    let (breaker, clock, _) = breaker();
    breaker.pass(Asks::Anew).unwrap().answered(REFUSED);
    clock.advance(s(5));
    let mut probe = breaker.pass(Asks::Anew).unwrap();
    probe.answered(StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        breaker.pass(Asks::Anew).is_err(),
        "it may still be repeated"
    );
    drop(probe);
    let probe = breaker.pass(Asks::Anew).unwrap();
    assert!(breaker.pass(Asks::Anew).is_err());
    // An account is looked at before the work: a request that was not refused for so long is served.
    clock.advance(s(5));
    assert!(breaker.pass(Asks::Anew).is_ok());
    drop(probe);
    assert!(
        breaker.pass(Asks::Anew).is_ok(),
        "its end says nothing any more"
    );
}

#[test]
fn late_answers_of_older_requests_prolong_nothing_and_open_nothing() {
    let (breaker, clock, _) = breaker();
    let mut older: Vec<Pass> = (0..3).map(|_| breaker.pass(Asks::Anew).unwrap()).collect();
    older[0].answered(REFUSED);
    clock.advance(s(4));
    older[1].answered(REFUSED);
    older[2].answered(StatusCode::OK);
    assert_eq!(refusal(&breaker, Asks::Anew), (Code::BalanceEmpty, Some(1)));
    let mut replay = breaker.pass(Asks::Again).unwrap();
    replay.answered(StatusCode::OK);
    assert!(
        breaker.pass(Asks::Anew).is_err(),
        "a replay says nothing of the balance"
    );
    clock.advance(s(1));
    assert!(breaker.pass(Asks::Anew).is_ok());
}

#[test]
fn a_reload_asks_at_once_and_older_requests_speak_of_the_older_key() {
    let (breaker, _, _) = breaker();
    let mut older = breaker.pass(Asks::Anew).unwrap();
    breaker
        .pass(Asks::Anew)
        .unwrap()
        .answered(StatusCode::UNAUTHORIZED);
    assert!(breaker.pass(Asks::Anew).is_err());
    breaker.reset();
    assert!(breaker.pass(Asks::Anew).is_ok());
    older.answered(StatusCode::UNAUTHORIZED);
    for _ in 0..9 {
        older.unreached(Code::UpstreamName);
    }
    assert!(breaker.pass(Asks::Anew).is_ok());
}

#[test]
fn a_service_out_of_reach_fails_at_once_for_a_growing_time() {
    let (breaker, clock, metrics) = breaker();
    for n in 1..=FAILURES_MAX {
        for asks in [Asks::Anew, Asks::Free] {
            assert!(breaker.pass(asks).is_ok(), "failure {n}");
        }
        breaker
            .pass(Asks::Anew)
            .unwrap()
            .unreached(Code::UpstreamName);
    }
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let (code, pause) = refusal(&breaker, Asks::Free);
        assert_eq!(code, Code::UpstreamName, "the code of what failed");
        assert!(breaker.look(Asks::Again).is_err());
        assert_eq!(metrics.traffic.now().breaking, ["upstream"]);
        let pause = pause.unwrap();
        pauses.push(pause);
        clock.advance(s(pause) - Duration::from_millis(1));
        assert!(breaker.pass(Asks::Anew).is_err(), "not before its time");
        clock.advance(Duration::from_millis(1));
        let mut probe = breaker.pass(Asks::Free).unwrap();
        assert!(breaker.pass(Asks::Anew).is_err(), "one at a time");
        probe.unreached(Code::UpstreamName);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 15, 15]);
    clock.advance(s(15));
    breaker.pass(Asks::Anew).unwrap().reached();
    assert!(breaker.pass(Asks::Anew).is_ok());
    assert_eq!(metrics.traffic.now().breaking, Vec::<&str>::new());
    breaker
        .pass(Asks::Anew)
        .unwrap()
        .unreached(Code::UpstreamName);
    assert!(
        breaker.pass(Asks::Anew).is_ok(),
        "counted from the beginning"
    );
}

#[test]
fn failures_in_a_row_are_those_without_a_connection_between() {
    let (breaker, _, _) = breaker();
    let mut pass = breaker.pass(Asks::Anew).unwrap();
    for _ in 0..3 {
        for _ in 1..FAILURES_MAX {
            pass.unreached(Code::UpstreamUnreachable);
        }
        pass.reached();
    }
    assert!(breaker.pass(Asks::Anew).is_ok());
}

#[test]
fn a_probe_that_is_not_sent_leaves_the_question_to_the_next() {
    let (breaker, clock, _) = breaker();
    for _ in 0..FAILURES_MAX {
        breaker
            .pass(Asks::Anew)
            .unwrap()
            .unreached(Code::UpstreamUnreachable);
    }
    clock.advance(s(1));
    drop(breaker.pass(Asks::Anew).unwrap());
    let probe = breaker.pass(Asks::Anew);
    assert!(probe.is_ok());
    assert!(breaker.pass(Asks::Anew).is_err());
}

#[test]
fn a_request_that_one_gate_refuses_is_no_probe_of_the_other() {
    let (breaker, clock, _) = breaker();
    breaker.pass(Asks::Anew).unwrap().answered(REFUSED);
    for _ in 0..FAILURES_MAX {
        breaker
            .pass(Asks::Free)
            .unwrap()
            .unreached(Code::UpstreamUnreachable);
    }
    clock.advance(s(1));
    assert_eq!(refusal(&breaker, Asks::Anew).0, Code::BalanceEmpty);
    assert!(
        breaker.pass(Asks::Free).is_ok(),
        "the probe is still to be had"
    );
}
