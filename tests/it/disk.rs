//! The disk fails under a real daemon: at the n-th call of each kind, full, read-only, at the start
//! and in the middle. Afterwards the ledger is compared with the sandbox's own books.
//!
//! `make test` takes a sample of the calls, `make torture` every one.

mod index;
mod outage;
mod serve;
mod start;
mod story;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::story::{Ran, run};
use crate::support::rig::{Call, EDQUOT, EIO, ENOSPC, EROFS, Fault};

/// Stories at once. They wait for the ledger's pauses most of the time.
const AT_ONCE: usize = 6;

/// The longest a story may take.
const STORY_MAX: Duration = Duration::from_secs(90);

/// A fault at the n-th call of a kind, once or from there on.
fn fault(call: Call, from: u64, turn: u64) -> Fault {
    let errnos: &[u64] = match call {
        Call::Write => &[ENOSPC, EIO, EDQUOT, EROFS],
        Call::Fdatasync | Call::Fsync => &[EIO, ENOSPC],
        Call::Ftruncate | Call::Unlink => &[EIO, EROFS],
        Call::Rename | Call::Create | Call::Fallocate => &[ENOSPC, EROFS, EIO],
    };
    let errno = errnos[usize::try_from(turn).expect("small") % errnos.len()];
    Fault {
        call,
        errno,
        from,
        times: if turn.is_multiple_of(2) { 1 } else { u64::MAX },
        short: call == Call::Write && turn % 4 >= 2,
        journal: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "`make torture` asks for every call this way"
)]
async fn whichever_call_to_the_disk_fails_nothing_is_lost_or_sent_unwritten() {
    let every = std::env::var("BURSAR_DISK").is_ok_and(|asked| asked == "all");
    let mut faults = Vec::new();
    for (turn, call) in Call::ALL.into_iter().enumerate() {
        let counted = Fault {
            from: 0,
            ..fault(call, 0, 0)
        };
        let Ran {
            seen,
            seen_stopping,
            ..
        } = run(counted).await;
        assert!(
            seen + seen_stopping > 0,
            "the story makes no {call:?}: the rig sees nothing"
        );
        // A call that only the stop makes is made there.
        let seen = seen.max(1);
        // Every call with every variant, or the first, the last and one between.
        let calls: Vec<u64> = if every {
            (1..=seen).collect()
        } else {
            let turn = turn as u64;
            let mut some = vec![1 + turn % seen, seen.div_ceil(2), seen];
            some.dedup();
            some
        };
        let variants = if every { 8 } else { 1 };
        for from in calls {
            for variant in 0..variants {
                let turn = if every { variant } else { faults.len() as u64 };
                faults.push(fault(call, from, turn));
            }
        }
    }
    faults.dedup();

    let count = faults.len();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut stories = JoinSet::new();
    for fault in faults {
        let places = Arc::clone(&places);
        stories.spawn(async move {
            let _place = places.acquire_owned().await.expect("a place");
            timeout(STORY_MAX, run(fault))
                .await
                .unwrap_or_else(|_| panic!("{fault:?}: the story hangs"))
        });
    }
    let mut failed = 0;
    let mut broken = Vec::new();
    while let Some(ran) = stories.join_next().await {
        match ran {
            Ok(ran) => failed += u64::from(ran.failed > 0),
            Err(error) => broken.push(error.to_string()),
        }
    }
    let some = broken.len();
    assert!(some == 0, "{some} of {count}:\n{}", broken.join("\n"));
    // The calls of one run differ a little from those of another; most faults must have struck.
    assert!(
        failed * 4 >= count as u64 * 3,
        "only {failed} of {count} faults struck"
    );
}
