use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::ManualClock;

const START: u64 = 1_700_000_000_000;

/// The answers, one a second, and when: answered, accepted, refused, balance empty (seconds since the start).
type Row = (
    &'static [(u16, bool)],
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
);

#[test]
fn each_answer_shows_of_key_and_balance_what_it_can_show_and_no_more() {
    let rows: [Row; 9] = [
        (&[], None, None, None, None),
        (&[(200, true)], Some(0), Some(0), None, None),
        (&[(200, false), (500, true)], Some(1), Some(0), None, None),
        (
            &[(503, true), (404, false), (429, true)],
            Some(2),
            None,
            None,
            None,
        ),
        (&[(200, true), (401, true)], Some(1), Some(0), Some(1), None),
        (&[(401, true), (200, false)], Some(1), Some(1), None, None),
        (&[(401, true), (500, true)], Some(1), None, Some(0), None),
        // A free answer shows that the key is taken, and nothing of the balance.
        (
            &[(402, true), (200, false)],
            Some(1),
            Some(1),
            None,
            Some(0),
        ),
        (
            &[(402, true), (402, true), (200, true)],
            Some(2),
            Some(2),
            None,
            None,
        ),
    ];
    for (answers, answered, accepted, refused, balance) in rows {
        let clock = ManualClock::at(START);
        let record = KeyRecord::new(Arc::new(clock.clone()));
        for (status, is_metered) in answers {
            record.heard(StatusCode::from_u16(*status).unwrap(), *is_metered);
            clock.advance(Duration::from_secs(1));
        }
        let at = |seconds: Option<u64>| seconds.map(|seconds| START + seconds * 1000);
        let wanted = KeyEvidence {
            answered_ms: at(answered),
            accepted_ms: at(accepted),
            refused_ms: at(refused),
            balance_empty_ms: at(balance),
        };
        assert_eq!(record.evidence(), wanted, "{answers:?}");
    }
}
