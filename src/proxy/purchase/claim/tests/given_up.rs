//! Tries that their app gave up before they were read, beside its retry.

use super::*;
use crate::proxy::purchase::client::Presence;

/// A connection that was free to carry a request from here on.
const SINCE: Duration = Duration::from_secs(50);

impl Bench {
    fn at(seconds: u64) -> Self {
        let bench = Self::new();
        bench.clock.advance(Duration::from_secs(seconds));
        bench
    }

    /// A request that its app has given up, as it stands in the table.
    fn given_up(&mut self, policy: AdoptPolicy) -> bool {
        let try_of_it = self.lead(1);
        try_of_it.app_left();
        let is_anothers = self.table.is_anothers(&try_of_it, policy, SINCE);
        self.table.finish(&try_of_it, Fate::Closed);
        is_anothers
    }

    /// An equal request of which the app has the answer.
    fn answered(&mut self) {
        let purchase = self.lead(1);
        assert!(purchase.take());
        purchase.delivered();
        self.table.finish(&purchase, Fate::Closed);
    }
}

#[test]
fn an_equal_request_whose_app_is_there_is_the_purchase() {
    let mut bench = Bench::at(60);
    assert!(!bench.given_up(POLICY), "alone it is sent");
    let mut bench = Bench::at(60);
    let retry = bench.lead(1);
    assert!(bench.given_up(POLICY));
    // Its answer flows to an app that asked before this one did.
    assert!(retry.take());
    retry.delivered();
    assert!(bench.given_up(POLICY), "the answer began after this came");
    let mut bench = Bench::at(40);
    let earlier = bench.lead(1);
    assert!(earlier.take());
    earlier.delivered();
    bench.clock.advance(Duration::from_secs(20));
    assert!(!bench.given_up(POLICY), "the answer had begun before");
}

#[test]
fn an_equal_request_that_was_just_answered_is_the_purchase() {
    // When it was answered, when this one is looked at, and whether it is that purchase.
    let rows = [
        (40, 60, false),
        (50, 60, false),
        (51, 60, true),
        (51, 62, false),
    ];
    for (answered_s, looked_s, wanted) in rows {
        let mut bench = Bench::at(answered_s);
        bench.answered();
        bench
            .clock
            .advance(Duration::from_secs(looked_s - answered_s));
        assert_eq!(bench.given_up(POLICY), wanted, "{answered_s} {looked_s}");
    }
}

#[test]
fn of_two_that_were_given_up_the_first_goes() {
    let mut bench = Bench::at(60);
    let first = bench.lead(1);
    let second = bench.lead(1);
    first.app_left();
    second.app_left();
    assert!(bench.table.goes(&first, POLICY, SINCE, Presence::Suspect));
    assert!(!bench.table.goes(&second, POLICY, SINCE, Presence::Suspect));
}

/// The first may never go: its connection is reset while it waits.
#[test]
fn no_request_gives_way_to_one_that_was_given_up_and_does_not_go() {
    let mut bench = Bench::at(60);
    let first = bench.lead(1);
    let second = bench.lead(1);
    first.app_left();
    second.app_left();
    assert!(!bench.table.is_anothers(&second, POLICY, SINCE));
    assert!(first.gives_up());
    bench.table.finish(&first, Fate::Closed);
    assert!(bench.table.goes(&second, POLICY, SINCE, Presence::Suspect));
}

#[test]
fn a_retry_is_recognised_as_the_config_says() {
    let rows = [
        (Adopt::Always, false, false, true),
        (Adopt::Marked, false, false, false),
        (Adopt::Marked, true, false, true),
        (Adopt::Marked, false, true, true),
        (Adopt::Never, true, true, false),
    ];
    for (adopt, marks_try, marks_retry, wanted) in rows {
        for is_answered in [false, true] {
            let policy = AdoptPolicy { adopt, ..POLICY };
            let mut bench = Bench::at(60);
            let mut lead = |marked_retry| {
                let claimant = Claimant {
                    marked_retry,
                    ..bench.claimant(1)
                };
                lead(bench.table.claim(&claimant, policy, false))
            };
            let retry = lead(marks_retry);
            if is_answered {
                assert!(retry.take());
                retry.delivered();
                bench.table.finish(&retry, Fate::Closed);
            }
            let claimant = Claimant {
                marked_retry: marks_try,
                ..bench.claimant(1)
            };
            let given_up = super::lead(bench.table.claim(&claimant, policy, false));
            given_up.app_left();
            let is_one = bench.table.is_anothers(&given_up, policy, SINCE);
            assert_eq!(
                is_one, wanted,
                "{adopt:?} {marks_try} {marks_retry} {is_answered}"
            );
        }
    }
}

/// The app's own key says which purchase is meant, and the service bills it once.
#[test]
fn a_key_of_the_apps_own_goes_by_itself() {
    let mut bench = Bench::at(60);
    let _other = bench.lead(1);
    let claimant = Claimant {
        own_key: Some("own".to_owned()),
        ..bench.claimant(1)
    };
    let own = lead(bench.table.claim(&claimant, POLICY, false));
    own.app_left();
    assert!(!bench.table.is_anothers(&own, POLICY, SINCE));
    assert!(bench.given_up(POLICY), "the other has none");
}

#[test]
fn answers_that_are_remembered_are_bounded() {
    let mut bench = Bench::at(60);
    bench.answered();
    for prompt in 0..4096_u32 {
        let mut claimant = bench.claimant(2);
        claimant.request_key.fingerprint.0[..4].copy_from_slice(&prompt.to_be_bytes());
        let purchase = lead(bench.table.claim(&claimant, POLICY, false));
        assert!(purchase.take());
        purchase.delivered();
        bench.table.finish(&purchase, Fate::Closed);
    }
    assert!(!bench.given_up(POLICY), "the oldest went");
}
