//! A database that was restored from a backup: it has forgotten leases, takes them back as their holders state them, and
//! grants nothing until all were heard. What is stated falsely gets no ledger more than its share.

use std::collections::BTreeSet;

use bursar::caps::Window;
use bursar::caps::leases::{Lease, LeaseAnswer, LeaseTotals};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::holder::{Holder, capped, charged, granted, share, usd, wish};
use super::{DATABASE, connect};
use crate::support::postgres::Postgres;

const FORGET: &str = "DELETE FROM bursar_fleet.leases";

/// Host, and how many are waited for; empty: leases are granted.
pub fn pause(postgres: &Postgres) -> String {
    postgres.sql(DATABASE, "SELECT host, awaited FROM bursar_fleet.pause")
}

pub fn epoch(postgres: &Postgres) -> String {
    postgres.sql(DATABASE, "SELECT epoch FROM bursar_fleet.about")
}

/// Two machines that leased 200 before a backup, and 300 and 200 behind it, which was then restored.
async fn restored() -> (Postgres, [(Holder, Lease); 2]) {
    let postgres = capped(1_000);
    let mut one = Holder::new(&postgres, 1).await;
    let mut two = Holder::new(&postgres, 2).await;
    granted(one.wants(200).await);
    let backup = postgres.backup(DATABASE);
    let of_one = granted(one.wants(300).await).lease.lease;
    let of_two = granted(two.wants(200).await).lease.lease;
    postgres.restore(DATABASE, &backup);
    assert_eq!(charged(&postgres), 200, "it forgot 500");
    one.fleet = connect(&postgres).await;
    two.fleet = connect(&postgres).await;
    (postgres, [(one, of_one), (two, of_two)])
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn leases_are_put_back_and_nothing_is_granted_until_every_holder_was_heard() {
    let (postgres, [(one, of_one), (two, of_two)]) = restored().await;
    assert_eq!(
        one.wants(10).await,
        LeaseAnswer::Elsewhere,
        "not before it is heard"
    );

    one.hello().await;
    let held = one.hold(std::slice::from_ref(&of_one)).await;
    assert!(held.is_paused);
    assert_eq!(held.leases[0].lease, of_one);
    assert_eq!(pause(&postgres), "host-1|1");
    assert_eq!(one.wants(10).await, LeaseAnswer::Paused);
    // Said again, it is the same restored database.
    assert!(one.hold(&[of_one]).await.is_paused);
    assert_eq!(epoch(&postgres), "1");

    two.hello().await;
    let held = two.hold(std::slice::from_ref(&of_two)).await;
    assert!(!held.is_paused, "all have been heard");
    assert_eq!(held.leases[0].lease, of_two);
    assert_eq!(pause(&postgres), "");
    assert_eq!(charged(&postgres), 700);
    assert_eq!(granted(one.wants(900).await).amount, usd(150));
    assert_eq!(granted(two.wants(900).await).amount, usd(75));
}

/// Neither the database's name for itself nor the server's start says so. The backup is a week old, and nobody but those
/// that have come since was heard in the last day.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn contents_restored_into_the_same_database_wait_for_every_holder_too() {
    let postgres = capped(1_000);
    let mut one = Holder::new(&postgres, 1).await;
    let mut two = Holder::new(&postgres, 2).await;
    let aged = "UPDATE bursar_fleet.ledgers SET heard = heard - interval '7 days'";
    postgres.sql(DATABASE, aged);
    let backup = postgres.backup(DATABASE);
    let of_one = granted(one.wants(300).await).lease.lease;
    let of_two = granted(two.wants(200).await).lease.lease;
    postgres.restore_inside(DATABASE, &backup);
    one.fleet = connect(&postgres).await;
    two.fleet = connect(&postgres).await;

    one.hello().await;
    assert_eq!(one.wants(10).await, LeaseAnswer::Elsewhere);
    assert!(one.hold(&[of_one]).await.is_paused);
    assert_eq!(pause(&postgres), "host-1|1");
    two.hello().await;
    assert!(!two.hold(&[of_two]).await.is_paused);
    assert_eq!(charged(&postgres), 500);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn resume_ends_the_pause_and_who_comes_later_is_put_back_above_the_cap() {
    let (postgres, [(one, of_one), (two, of_two)]) = restored().await;
    one.hello().await;
    assert!(one.hold(&[of_one]).await.is_paused);
    let resume = "SELECT bursar_fleet.resume()";
    let resumed = postgres.try_sql("operator", DATABASE, resume);
    assert_eq!(String::from_utf8_lossy(&resumed.stdout).trim(), "t");
    assert_eq!(postgres.sql(DATABASE, resume), "f");
    assert_eq!(
        granted(one.wants(900).await).amount,
        usd(500),
        "as if two had none"
    );

    two.hello().await;
    let held = two.hold(std::slice::from_ref(&of_two)).await;
    assert!(!held.is_paused, "it belongs to the backup that is known");
    assert_eq!(held.leases[0].lease, of_two);
    let now =
        "SELECT charged_micro_usd, over_micro_usd, put_back_micro_usd FROM bursar_fleet.caps_now";
    assert_eq!(postgres.sql(DATABASE, now), "1200|200|500");
    let limit = usd(1_000);
    let may_return = true;
    assert_eq!(
        one.wants(10).await,
        LeaseAnswer::Empty { may_return, limit }
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn waited_for_is_who_was_heard_in_the_day_before_the_backup_and_is_still_in() {
    let postgres = capped(1_000);
    let mut holders = Vec::new();
    for number in 1..6 {
        holders.push(Holder::new(&postgres, number).await);
    }
    let [one, two, three, four, five] = &holders[..] else {
        panic!("five holders");
    };
    let lease = granted(one.wants(100).await).lease.lease;
    let revoke = format!(
        "SELECT bursar_fleet.revoke_ledger('{}')",
        two.identity.ledger
    );
    postgres.sql(DATABASE, &revoke);
    three.fleet.leave(&three.identity).await.expect("it leaves");
    // The backup is a week old, and the fourth was last heard more than a day before it.
    let aged = format!(
        "UPDATE bursar_fleet.about SET run = 'another'; UPDATE bursar_fleet.ledgers SET heard_in = 'another', held_in = 'another', heard = heard - interval '7 days'
             - CASE id WHEN '{}' THEN interval '25 hours' ELSE interval '0' END; {FORGET}",
        four.identity.ledger
    );
    postgres.sql(DATABASE, &aged);

    one.hello().await;
    assert!(one.hold(&[lease]).await.is_paused);
    let awaited = "SELECT host FROM bursar_fleet.fleet WHERE is_awaited";
    assert_eq!(postgres.sql(DATABASE, awaited), "host-5");
    // Nor one that comes into the fleet meanwhile.
    let new = Holder::new(&postgres, 6).await;
    assert_eq!(new.wants(10).await, LeaseAnswer::Paused);
    assert_eq!(pause(&postgres), "host-1|1");
    five.hello().await;
    assert!(!five.hold(&[]).await.is_paused);
    assert_eq!(granted(new.wants(10).await).amount, usd(10));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_were_acknowledged_and_are_not_there_pause_it_once() {
    let postgres = capped(1_000);
    let one = Holder::new(&postgres, 1).await;
    let two = Holder::new(&postgres, 2).await;
    assert!(one.hold_from(50, &[]).await.is_paused);
    assert!(!two.hold(&[]).await.is_paused);
    assert!(
        !one.hold_from(50, &[]).await.is_paused,
        "they are on their way"
    );
    assert!(one.hold_from(51, &[]).await.is_paused, "another backup");
    // Whoever does not come: a day is enough.
    assert_eq!(two.wants(10).await, LeaseAnswer::Paused);
    let later = "UPDATE bursar_fleet.about SET paused_since = now() - interval '25 hours'";
    postgres.sql(DATABASE, later);
    assert_eq!(pause(&postgres), "");
    assert_eq!(granted(two.wants(10).await).amount, usd(10));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_grant_or_a_part_given_back_that_was_forgotten_is_put_back() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let mut lease = granted(holder.wants(300).await).lease.lease;
    let forget =
        |what: &str| postgres.sql(DATABASE, &format!("UPDATE bursar_fleet.leases SET {what}"));
    forget("granted = 200");
    let held = holder.hold(std::slice::from_ref(&lease)).await;
    assert_eq!(held.leases[0].lease, lease);
    // It had given 120 back.
    lease.totals = LeaseTotals {
        given_back: usd(120),
        give_back_number: 1,
        ..lease.totals
    };
    let held = holder.hold(std::slice::from_ref(&lease)).await;
    assert_eq!(held.leases[0].lease, lease);
    assert_eq!(charged(&postgres), 180);
    // What the database knows and the holder does not stands.
    let mut stale = lease.clone();
    stale.totals = LeaseTotals::default();
    let held = holder.hold(&[stale]).await;
    assert_eq!(held.leases[0].lease, lease);
    assert_eq!(epoch(&postgres), "2");
}

/// Contents that were set back under a running server: a lease may be granted before the forgotten one is heard.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_lease_that_was_made_before_the_forgotten_one_was_heard_stays_counted() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let first = granted(holder.wants(300).await).lease.lease;
    postgres.sql(DATABASE, FORGET);
    let second = granted(holder.wants(100).await).lease.lease;
    assert_ne!(second.lease, first.lease);
    let held = holder.hold(std::slice::from_ref(&first)).await;
    let leases: Vec<Lease> = held.leases.into_iter().map(|live| live.lease).collect();
    assert_eq!(leases, std::slice::from_ref(&first), "one of a window");
    assert_eq!(charged(&postgres), 400);
    holder.bills(second.lease, &[150]).await;
    assert_eq!(charged(&postgres), 450, "what was spent of it, too");
    assert_eq!(
        granted(holder.wants(100).await).lease.lease.lease,
        first.lease
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL: make test-all"]
async fn many_that_show_it_at_once_show_one_restored_database() {
    let postgres = capped(10_000);
    let mut holders = Vec::new();
    for number in 1..9 {
        let holder = Holder::new(&postgres, number).await;
        let lease = granted(holder.wants(100).await).lease.lease;
        holders.push((holder, lease));
    }
    postgres.sql(DATABASE, FORGET);
    let mut holding = JoinSet::new();
    for (holder, lease) in holders {
        holding.spawn(async move {
            let held = holder.hold(std::slice::from_ref(&lease)).await;
            assert_eq!(held.leases[0].lease, lease);
            holder
        });
    }
    let mut last = None;
    while let Some(holder) = holding.join_next().await {
        last = Some(holder.expect("it was heard"));
    }
    let last = last.expect("eight");
    assert!(!last.hold(&[]).await.is_paused);
    assert_eq!(epoch(&postgres), "1");
    assert_eq!(charged(&postgres), 800);
}

/// A lease of this cap and window, which nobody ever got.
fn forged(like: &Lease, number: u128, granted: u64) -> Lease {
    Lease {
        lease: Uuid::from_u128(number),
        totals: LeaseTotals {
            granted: usd(granted),
            ..LeaseTotals::default()
        },
        ..like.clone()
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn leases_that_are_made_up_get_a_ledger_no_more_than_its_share() {
    let postgres = capped(1_000);
    let hostile = Holder::new(&postgres, 1).await;
    let other = Holder::new(&postgres, 2).await;
    share(&postgres, &hostile, "300", 0, 0);
    let real = granted(hostile.wants(50).await).lease.lease;
    let others = granted(other.wants(100).await).lease.lease;

    // Another's is not its own, and shows nothing.
    let held = hostile.hold(std::slice::from_ref(&others)).await;
    assert!(!held.is_paused);
    assert_eq!(held.leases.len(), 1);
    assert_eq!(other.leases().await, [others]);
    // Of no cap, of a window that is none, and of the past.
    let day_ms = real.window.until_ms - real.window.since_ms;
    let window = |since_ms, until_ms| Lease {
        window: Window { since_ms, until_ms },
        ..forged(&real, 7, 500)
    };
    let (since_ms, until_ms) = (real.window.since_ms, real.window.until_ms);
    let cases = [
        Lease {
            cap: "another".to_owned(),
            ..forged(&real, 7, 500)
        },
        window(since_ms, until_ms + 1),
        window(since_ms, until_ms + day_ms),
        window(since_ms + 30 * day_ms, until_ms + 30 * day_ms),
        window(since_ms - day_ms, since_ms),
    ];
    for lease in cases {
        let held = hostile.hold(std::slice::from_ref(&lease)).await;
        let leases: Vec<Uuid> = held.leases.iter().map(|live| live.lease.lease).collect();
        assert_eq!(leases, [real.lease], "{lease:?}");
    }
    // As much as it likes, as often as it likes.
    for number in 10..20 {
        let lease = forged(&real, number, 1 << 60);
        hostile.hold(&[lease]).await;
        let more = Lease {
            lease: real.lease,
            ..forged(&real, 0, 1 << (40 + number))
        };
        hostile.hold(&[more]).await;
    }
    let own = format!(
        "SELECT sum(charged) FROM bursar_fleet.leases WHERE ledger = '{}'",
        hostile.identity.ledger
    );
    assert_eq!(postgres.sql(DATABASE, &own), "300");
    assert_eq!(charged(&postgres), 400);
    // It can keep others waiting for each other; the one that does it is named, and shut out.
    assert_eq!(pause(&postgres), "host-1|1");
    let revoke = format!(
        "SELECT bursar_fleet.revoke_ledger('{}')",
        hostile.identity.ledger
    );
    postgres.sql(DATABASE, &revoke);
    assert!(!other.hold(&[]).await.is_paused);
    assert_eq!(granted(other.wants(900).await).amount, usd(600));
}

/// A window of the cap that begins later, as its holder states it.
fn later(postgres: &Postgres, windows: u32) -> Window {
    let sql = format!(
        "SELECT bursar_fleet.unix_ms(since), bursar_fleet.unix_ms(until)
            FROM bursar_fleet.window_of('day', 'Europe/Berlin', now(), {windows})"
    );
    let answer = postgres.sql(DATABASE, &sql);
    let (since, until) = answer.split_once('|').expect("two columns");
    Window {
        since_ms: since.parse().expect("a time"),
        until_ms: until.parse().expect("a time"),
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn leases_ahead_that_are_made_up_get_a_ledger_no_more_than_it_may_lease_ahead() {
    let postgres = capped(1_000);
    let without = Holder::new(&postgres, 1).await;
    let with = Holder::new(&postgres, 2).await;
    share(&postgres, &with, "300", 2, 120);
    let like = granted(without.wants(10).await).lease.lease;
    let known = granted(with.ask(&wish(50, 10, 2)).await).lease.lease;
    let made_up: Vec<Lease> = (1..=7)
        .map(|windows| Lease {
            window: later(&postgres, windows),
            ..forged(&like, u128::from(windows), 500)
        })
        .collect();
    without.hold(&made_up).await;
    let mut stated = made_up;
    stated.push(Lease {
        lease: known.lease,
        window: known.window,
        ..forged(&like, 0, 500)
    });
    with.hold(&stated).await;
    let ahead = "SELECT ledger, sum(charged) FROM bursar_fleet.leases WHERE since > now() GROUP BY ledger, since";
    let ledger = with.identity.ledger;
    assert_eq!(
        postgres.sql(DATABASE, ahead),
        format!("{ledger}|120\n{ledger}|120")
    );
}

/// A name that the database knows would get, by another cap's share or by a window in which the ledger has nothing yet,
/// what it may not have.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_lease_that_is_stated_with_another_cap_or_window_changes_nothing() {
    let postgres = capped(1_000);
    let order = "SELECT bursar_fleet.order_cap('org', 'day', 'Europe/Berlin', 10000)";
    postgres.sql(DATABASE, order);
    let hostile = Holder::new(&postgres, 1).await;
    share(&postgres, &hostile, "300", 0, 0);
    let real = granted(hostile.wants(50).await).lease.lease;
    let Window { since_ms, until_ms } = real.window;
    let more = |cap: &str, later_ms: u64| Lease {
        lease: real.lease,
        cap: cap.to_owned(),
        window: Window {
            since_ms: since_ms + later_ms,
            until_ms: until_ms + later_ms,
        },
        ..forged(&real, 0, 9_000)
    };
    let unknown = |lease: Lease| Lease {
        lease: Uuid::from_u128(7),
        ..lease
    };
    let month_ms = 30 * (until_ms - since_ms);
    let cases = [
        vec![more("org", 0)],
        vec![more("team", month_ms)],
        // Made up and stated otherwise in one breath.
        vec![
            unknown(Lease {
                cap: "org".to_owned(),
                ..forged(&real, 0, 1)
            }),
            unknown(more("team", 0)),
        ],
    ];
    for leases in cases {
        let held = hostile
            .fleet
            .hold(&hostile.identity, &hostile.machine, 0, &leases);
        let refused = held.await.expect_err("such a lease is none").to_string();
        assert!(refused.contains("BF009"), "{refused}");
    }
    let all = "SELECT cap, granted FROM bursar_fleet.leases";
    assert_eq!(postgres.sql(DATABASE, all), "team|50");
    assert_eq!(epoch(&postgres), "0");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_states_no_lease_is_refused_whole() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let lease = granted(holder.wants(50).await).lease.lease;
    let secret = holder.secret();
    let Window { since_ms, until_ms } = lease.window;
    let stated = |granted: &str, given_back: &str, number: &str| {
        format!(
            r#"[{{"lease":"00000000-0000-4000-8000-000000000009","cap":"team","since_ms":{since_ms},"until_ms":{until_ms},
            "granted_micro_usd":{granted},"given_back_micro_usd":{given_back},"give_back_number":{number}}}]"#
        )
    };
    let many = format!("[{}0]", "0,".repeat(1_000));
    let cases = [
        String::new(),
        "{}".to_owned(),
        "null".to_owned(),
        "[1]".to_owned(),
        "[null]".to_owned(),
        "[{}]".to_owned(),
        many,
        stated("-1", "0", "0"),
        stated("10", "11", "0"),
        stated("10", "-1", "0"),
        stated("10", "0", "-1"),
        stated("null", "0", "0"),
        stated("1e30", "0", "0"),
        stated("9223372036854775807", "0", "0"),
        stated("10", "0", "0").replace(&until_ms.to_string(), "9999999999999999"),
        stated("10", "0", "0").replace(&until_ms.to_string(), "1"),
        stated("10", "0", "0").replace("-4000-", "-nonsense-"),
    ];
    for text in cases {
        let call = format!(
            "SELECT bursar_fleet.hold('{}', '\\x{secret}', '{}', 0, '{text}')",
            holder.identity.ledger, holder.machine
        );
        let tried = postgres.try_sql("node", DATABASE, &call);
        let answer = String::from_utf8_lossy(&tried.stdout).into_owned();
        assert!(!tried.status.success(), "{text}: {answer}");
    }
    assert_eq!(holder.leases().await, [lease]);
    assert_eq!(epoch(&postgres), "0");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_that_forgot_a_lease_gives_its_name_to_no_other() {
    let postgres = capped(100_000);
    let mut ids = BTreeSet::new();
    for number in 1..4 {
        let holder = Holder::new(&postgres, number).await;
        ids.insert(granted(holder.wants(10).await).lease.lease.lease);
        // As a restored database that has forgotten it would.
        postgres.sql(DATABASE, FORGET);
        ids.insert(granted(holder.wants(10).await).lease.lease.lease);
    }
    assert_eq!(ids.len(), 6);
}

/// A machine that shows a false mark and keeps its transaction open has the row of the pause.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn leases_are_presented_while_another_transaction_has_the_row_of_the_pause() {
    let (postgres, [(one, of_one), (two, of_two)]) = restored().await;
    assert!(one.hold(&[of_one]).await.is_paused);
    let url = postgres.url("admin", DATABASE);
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .expect("the database");
    let connection = tokio::spawn(connection);
    let lock = "BEGIN; SELECT FROM bursar_fleet.about FOR UPDATE";
    other.batch_execute(lock).await.expect("it is locked");
    // The pause lasts until one comes that has the row.
    let lease = of_two.lease;
    let held = two.hold(&[of_two]).await;
    assert!(held.is_paused && held.leases.iter().any(|live| live.lease.lease == lease));
    other.batch_execute("ROLLBACK").await.expect("it is free");
    drop(other);
    connection.await.expect("it ends").expect("in order");
    assert!(!two.hold(&[]).await.is_paused);
}
