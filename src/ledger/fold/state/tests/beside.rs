//! What stands under the key beside the entry and is not its own: another request's, or what another key of
//! the service bought.

use super::*;

/// A key under which another request was billed.
const ANOTHERS: Option<KeyView> = Some(KeyView {
    amount: None,
    is_unreported: false,
    stands_on_another_request: true,
    stands_under_another_organization: false,
    others_may_have_run: true,
});

/// A key that was billed when bursar had another key of the service.
const ELSEWHERE: Option<KeyView> = Some(KeyView {
    amount: None,
    is_unreported: false,
    stands_on_another_request: false,
    stands_under_another_organization: true,
    others_may_have_run: true,
});

#[test]
fn i3_another_request_under_a_key_is_a_purchase_of_its_own_unless_the_service_says_replay() {
    check(vec![
        row(
            "an amount is added",
            &[Answered],
            billed(9),
            ANOTHERS,
            settled(9),
        )
        .anomaly(SecondAmountForKey),
        row(
            "an amount of a stream that broke is added",
            &[Broken],
            billed(9),
            ANOTHERS,
            settled(9),
        )
        .anomaly(SecondAmountForKey),
        row(
            "a marked replay adds nothing, whatever the bytes",
            &[Answered],
            replayed(0),
            ANOTHERS,
            State::Replayed,
        ),
        row(
            "nor does one that tells an amount",
            &[Answered],
            replayed(9),
            ANOTHERS,
            State::Replayed,
        )
        .anomaly(AmountOnReplay),
        row(
            "a 0 adds nothing",
            &[Answered],
            billed(0),
            ANOTHERS,
            State::Replayed,
        ),
        row(
            "what tells nothing is not taken for the other's",
            &[Answered],
            empty_receipt(),
            ANOTHERS,
            State::Unreported,
        ),
        row(
            "nor is what is lost",
            &[NoHead],
            empty_receipt(),
            ANOTHERS,
            in_doubt(NoResponse),
        ),
    ]);
}

/// They may be one organization, and may be two.
#[test]
fn i3_what_stands_under_another_key_of_the_service_explains_a_replay_and_takes_no_amount_away() {
    check(vec![
        row(
            "an amount is added: another organization was billed",
            &[Answered],
            billed(9),
            ELSEWHERE,
            settled(9),
        ),
        row(
            "a marked replay is the same organization's",
            &[Answered],
            replayed(0),
            ELSEWHERE,
            State::Replayed,
        ),
        row(
            "a 0 may be either's",
            &[Answered],
            billed(0),
            ELSEWHERE,
            in_doubt(ReplayLostAmount),
        ),
        row(
            "a marked replay may be of its own attempt whose answer was lost",
            &[NoHead, Answered],
            replayed(0),
            ELSEWHERE,
            in_doubt(ReplayLostAmount),
        ),
        row(
            "or of one that broke",
            &[Broken, Answered],
            replayed(0),
            ELSEWHERE,
            in_doubt(ReplayLostAmount),
        ),
        row(
            "or of what another request of the key was running",
            &[],
            replayed(0),
            ELSEWHERE,
            in_doubt(ReplayLostAmount),
        )
        .attempts(vec![refused(409), attempt(Answered)]),
        row(
            "not of one that bought nothing",
            &[NotSent, Refused, Answered],
            replayed(0),
            ELSEWHERE,
            State::Replayed,
        ),
        row(
            "what tells nothing is not taken for the other's",
            &[Answered],
            empty_receipt(),
            ELSEWHERE,
            State::Unreported,
        ),
    ]);
}
