//! Daemons that leave their fleet: what they lease and have not spent goes back, whatever ended them.

use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::time::Instant;

use super::holder::capped;
use super::serving::{Member, is_shipped, leave};
use super::sharing::{LOCKED, SHARED, WITHOUT_FLOOR, sum};
use super::{DATABASE, pricing, summed};
use crate::support::daemon::command;
use crate::support::{Sandbox, eventually, within};

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_that_leaves_keeps_neither_its_allowance_nor_what_it_leased_ahead() {
    let postgres = capped(1_000_000);
    let sandbox = Sandbox::start().await;
    let mut member = Member::with(&sandbox.url(), &postgres, 1, SHARED).await;
    member.buy("the first").await;
    let ledger = postgres.sql(DATABASE, "SELECT ledger FROM bursar_fleet.fleet");
    let share = format!("SELECT bursar_fleet.order_share('{ledger}', 'team', NULL, 2, 5000)");
    assert_eq!(postgres.sql(DATABASE, &share), "set");
    let ahead = "SELECT count(*) FROM bursar_fleet.leases WHERE since > now()";
    within(Duration::from_secs(60), "leases ahead", || async {
        (postgres.sql(DATABASE, ahead) == "2").then_some(())
    })
    .await;
    member.stop().await;
    let open = sum(&postgres, "open");
    assert!(open >= 2 * 5_000, "it comes again: {open}");

    member.begin().await;
    member.buy("the last").await;
    leave(&member);
    member.stop().await;

    assert_eq!(sum(&postgres, "open"), 0);
    assert_eq!(sum(&postgres, "charged"), sandbox.debited().await);
    let kept = std::fs::read_to_string(member.state_dir().join("fleet-leases")).expect("a file");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("a line");
    let kept = kept["leases"].as_array().map(Vec::len);
    assert_eq!(kept, Some(1), "what came back is not spent after a return");
}

/// Until its window ends, nobody else could have spent it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_that_died_gives_back_what_it_has_not_spent_when_it_leaves() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    let ledger = postgres.sql(DATABASE, "SELECT ledger FROM bursar_fleet.fleet");
    let share = format!("SELECT bursar_fleet.order_share('{ledger}', 'team', NULL, 2, 5000)");
    assert_eq!(postgres.sql(DATABASE, &share), "set");
    let ahead = "SELECT count(*) FROM bursar_fleet.leases WHERE since > now()";
    within(Duration::from_secs(60), "leases ahead", || async {
        (postgres.sql(DATABASE, ahead) == "2").then_some(())
    })
    .await;
    member.dies().await;
    let open = sum(&postgres, "open");
    assert!(open >= 2 * 5_000 + 50, "what it held stays charged: {open}");

    let left = leaves(&member, &[]).await;

    assert!(left.status.success(), "{left:?}");
    assert_eq!(summed(&postgres), (2, 100));
    assert_eq!(sum(&postgres, "charged"), 100);
    assert_eq!(sum(&postgres, "open"), 0);
    let kept = String::from_utf8_lossy(&left.stderr).into_owned();
    assert!(!kept.contains("stays charged"), "{kept}");
}

/// By the command, while it does not run.
async fn leaves(member: &Member, more: &[&str]) -> std::process::Output {
    let (config, state) = (member.config(), member.state_dir());
    let [config, state] = [&config, &state].map(|path| path.to_str().expect("UTF-8"));
    let words = ["fleet", "leave", "--config", config, "--state-dir", state];
    let words = [&words[..], more].concat();
    command(&words).output().await.expect("it runs")
}

/// One that starts meanwhile would spend what goes back.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_that_leaves_has_its_ledger_locked_until_it_has_left() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    member.buy("one").await;
    member.dies().await;
    // The command waits 5 s for it.
    postgres.hang();
    let state_dir = member.state_dir();
    std::fs::write(state_dir.join("lock"), "").expect("the lock is empty");
    let ended = async {
        let left = leaves(&member, &[]).await;
        (left, Instant::now())
    };
    let freed = async {
        eventually("the ledger to be locked", || async {
            let holder = std::fs::read_to_string(state_dir.join("lock")).unwrap_or_default();
            (!holder.is_empty()).then_some(())
        })
        .await;
        let file = std::fs::File::open(state_dir.join("lock")).expect("it is there");
        within(Duration::from_secs(60), "the lock to be free", || async {
            flock(&file, FlockOperation::NonBlockingLockExclusive).ok()
        })
        .await;
        Instant::now()
    };

    let ((left, ended), freed) = tokio::join!(ended, freed);

    postgres.go_on();
    assert_eq!(left.status.code(), Some(1), "{left:?}");
    let before = ended.saturating_duration_since(freed);
    assert!(
        before < Duration::from_secs(2),
        "free {before:?} before it left"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_whose_leases_cannot_be_given_back_ships_its_lines_and_leaves_only_when_it_is_to()
{
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    is_shipped(&postgres, 2).await;
    postgres.end();
    member.buy("of what is leased").await;
    member.dies().await;
    postgres.begin();
    postgres.sql(DATABASE, LOCKED);
    let gone = "SELECT gone IS NOT NULL FROM bursar_fleet.fleet";

    let stayed = leaves(&member, &[]).await;

    assert_eq!(stayed.status.code(), Some(1), "{stayed:?}");
    let why = String::from_utf8_lossy(&stayed.stderr).into_owned();
    assert!(why.contains("still in its fleet"), "{why}");
    assert_eq!(summed(&postgres), (3, 150), "the lines are there");
    assert_eq!(postgres.sql(DATABASE, gone), "f");
    let left = leaves(&member, &["--unshipped"]).await;
    assert!(left.status.success(), "{left:?}");
    let kept = String::from_utf8_lossy(&left.stderr).into_owned();
    assert!(kept.contains("stays charged"), "{kept}");
    assert_eq!(postgres.sql(DATABASE, gone), "t");
}
