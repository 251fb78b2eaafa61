//! "No automatic repeat once the key is 23 h old or its age is in doubt" (rule I6).

use std::sync::Arc;

use bursar::clock::ManualClock;
use bursar::ledger::entry::{InDoubt, State};

use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

const START_MS: u64 = 1_790_000_000_000;
const HOUR_MS: u64 = 3_600_000;

#[tokio::test]
async fn an_attempt_is_not_repeated_when_the_keys_age_is_in_doubt() {
    let rows: [(&str, u64, usize); 4] = [
        ("at once", START_MS, 2),
        ("slept for 60 h", START_MS + 60 * HOUR_MS, 1),
        ("set ahead", START_MS + 301_000, 1),
        ("set back", START_MS - 2_000, 1),
    ];
    for (name, wall_ms, attempts) in rows {
        let clock = ManualClock::at(START_MS);
        let lost = Step::PiecesAndClose(vec![Vec::new()]);
        let origin = Origin::start([lost, Step::Answer(billed(7))]).await;
        let bursar = Bursar::with_clock(&origin.url(), "", Arc::new(clock.clone())).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", "/v1/chat/completions", &[], &chat("x")))
            .await;
        eventually("the service to receive", || async {
            (origin.received().len() == 1).then_some(())
        })
        .await;
        clock.set_wall_ms(wall_ms);
        origin.go();
        let answer = wire.answer().await;
        assert_eq!(origin.received().len(), attempts, "{name}");
        if attempts == 1 {
            assert_eq!(answer.code(), Some("outcome_unknown"), "{name}");
            let doubt = State::InDoubt {
                reason: InDoubt::NoResponse,
            };
            assert_eq!(bursar.settled(1).await[0].state, doubt, "{name}");
        } else {
            assert_eq!(answer.status, 200, "{name}");
        }
    }
}
