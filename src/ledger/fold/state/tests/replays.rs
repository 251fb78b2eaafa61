//! Replays, and answers that a repeat was given (rule I4).

use super::*;

#[test]
fn i4_a_replay_adds_nothing_whatever_it_says() {
    let lost = in_doubt(ReplayLostAmount);
    check(vec![
        row(
            "with the amount known",
            &[Answered],
            replayed(0),
            KNOWN,
            State::Replayed,
        ),
        row(
            "with the amount never seen",
            &[Answered],
            replayed(0),
            FRESH,
            lost,
        ),
        row(
            "after the attempt that was lost",
            &[NoHead, Answered],
            replayed(0),
            FRESH,
            lost,
        ),
        row(
            "of an answer without an amount",
            &[Answered],
            replayed(0),
            UNREPORTED,
            State::Replayed,
        ),
        row(
            "an amount on a replay is not believed",
            &[Answered],
            replayed(50),
            FRESH,
            lost,
        )
        .anomaly(AmountOnReplay),
        row(
            "not even the right one",
            &[Answered],
            replayed(1234),
            KNOWN,
            State::Replayed,
        )
        .anomaly(AmountOnReplay),
        row(
            "a replay of a clarification is a clarification",
            &[Answered],
            Receipt {
                replayed: true,
                ..clarification()
            },
            SHARED,
            settled(0),
        ),
        row(
            "the head carried the amount before the body broke",
            &[Broken, Answered],
            replayed(0),
            FRESH,
            settled(77),
        )
        .with_broken_billed(77),
        row(
            "the same, and the key's amount is known",
            &[Broken, Answered],
            replayed(0),
            KNOWN,
            State::Replayed,
        )
        .with_broken_billed(1234),
        row(
            "the same, with another amount",
            &[Broken, Answered],
            replayed(0),
            KNOWN,
            State::Replayed,
        )
        .with_broken_billed(77)
        .anomaly(SecondAmountForKey),
        row(
            "a broken head's amount and a later different one",
            &[Broken, Answered],
            billed(78),
            FRESH,
            settled(77),
        )
        .with_broken_billed(77)
        .anomaly(SecondAmountForKey),
        row(
            "a broken head's amount and no answer after it",
            &[Broken, NoHead],
            empty_receipt(),
            FRESH,
            settled(77),
        )
        .with_broken_billed(77),
    ]);
}
