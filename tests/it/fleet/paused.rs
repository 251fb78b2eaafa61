//! The pause of a restored database: what shows that it was restored, and which machines are waited for.

use bursar::caps::leases::LeaseAnswer;

use super::holder::{Holder, capped, granted, usd};
use super::restored::{epoch, pause};
use super::{DATABASE, buy, connect, joined, pricing, ship, summed};
use crate::support::Bursar;

/// Its first lease is younger than the backup, so the database does not know that it ever had one.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_hello_alone_ends_no_pause_for_a_lease_may_come_behind_it() {
    let postgres = capped(1_000);
    let mut one = Holder::new(&postgres, 1).await;
    let mut two = Holder::new(&postgres, 2).await;
    let never_held = "UPDATE bursar_fleet.ledgers SET held_in = NULL, machine = NULL";
    postgres.sql(DATABASE, never_held);
    let backup = postgres.backup(DATABASE);
    one.hold(&[]).await;
    two.hold(&[]).await;
    let of_one = granted(one.wants(500).await).lease.lease;
    let of_two = granted(two.wants(400).await).lease.lease;
    postgres.restore(DATABASE, &backup);
    one.fleet = connect(&postgres).await;
    two.fleet = connect(&postgres).await;

    one.hello().await;
    assert!(one.hold(&[of_one]).await.is_paused);
    two.hello().await;
    assert_eq!(pause(&postgres), "host-1|1");
    assert_eq!(one.wants(10).await, LeaseAnswer::Paused);
    assert!(!two.hold(&[of_two]).await.is_paused);
    assert_eq!(epoch(&postgres), "1");
}

/// One that is away is waited for, though the server is started again before it comes and another machine shows it then.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn shown_a_second_time_it_waits_for_those_of_the_first_too() {
    let postgres = capped(1_000);
    let mut one = Holder::new(&postgres, 1).await;
    let mut away = Holder::new(&postgres, 2).await;
    let aged = "UPDATE bursar_fleet.ledgers SET heard = heard - interval '3 days'";
    postgres.sql(DATABASE, aged);
    let backup = postgres.backup(DATABASE);
    let of_one = granted(one.wants(300).await).lease.lease;
    let of_away = granted(away.wants(200).await).lease.lease;
    postgres.restore(DATABASE, &backup);
    one.fleet = connect(&postgres).await;
    // It is let in before anybody was heard, and makes the backup no younger.
    let new = Holder::new(&postgres, 3).await;
    one.hello().await;
    assert!(one.hold(std::slice::from_ref(&of_one)).await.is_paused);

    let started_again = "UPDATE bursar_fleet.about SET run = 'before', raised_in = 'before';
        UPDATE bursar_fleet.ledgers SET heard_in = 'before'";
    postgres.sql(DATABASE, started_again);
    new.hello().await;
    let late = new.fleet.acknowledged(&new.identity, 50).await;
    late.expect("it is stated");
    assert_eq!(epoch(&postgres), "2");
    new.hold(&[]).await;
    assert!(one.hold(&[of_one]).await.is_paused);
    away.fleet = connect(&postgres).await;
    away.hello().await;
    assert!(!away.hold(&[of_away]).await.is_paused);
}

/// A machine that is gone for long is not waited for, however late the others come.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn waited_for_are_those_before_the_backup_also_where_all_others_were_heard_behind_it() {
    let postgres = capped(1_000);
    let mut one = Holder::new(&postgres, 1).await;
    let gone = Holder::new(&postgres, 2).await;
    let long_ago = format!(
        "UPDATE bursar_fleet.ledgers SET heard = heard - interval '20 days' WHERE id = '{}'",
        gone.identity.ledger
    );
    postgres.sql(DATABASE, &long_ago);
    let backup = postgres.backup(DATABASE);
    let lease = granted(one.wants(300).await).lease.lease;
    postgres.restore(DATABASE, &backup);
    one.fleet = connect(&postgres).await;
    one.hello().await;
    assert!(!one.hold(&[lease]).await.is_paused);
    assert_eq!(epoch(&postgres), "1");
}

/// They obey no shared cap, and have no lease to present.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn machines_that_only_ship_show_a_restored_database_too_and_all_of_them_once() {
    let postgres = capped(1_000);
    let origin = pricing(1).await;
    let database = connect(&postgres).await;
    let bursars = [
        Bursar::before(&origin.url()).await,
        Bursar::before(&origin.url()).await,
    ];
    let mut shippings = Vec::new();
    for (code, bursar) in (1..).zip(&bursars) {
        buy(bursar, "before").await;
        let mut shipping = joined(&database, &bursar.state_dir(), code).await;
        ship(&database, &mut shipping).await;
        shippings.push(shipping);
    }
    let mut holder = Holder::new(&postgres, 3).await;
    let backup = postgres.backup(DATABASE);
    for (bursar, shipping) in bursars.iter().zip(&mut shippings) {
        buy(bursar, "behind it").await;
        ship(&database, shipping).await;
    }
    postgres.restore(DATABASE, &backup);
    let database = connect(&postgres).await;
    holder.fleet = connect(&postgres).await;
    let [one, two] = &mut shippings[..] else {
        panic!("two machines");
    };

    ship(&database, one).await;
    assert_eq!(pause(&postgres), "host-1|3");
    ship(&database, two).await;
    holder.hello().await;
    assert!(holder.hold(&[]).await.is_paused);
    assert_eq!(holder.wants(10).await, LeaseAnswer::Paused);
    for shipping in [one, two] {
        // As a machine does that hears that it is waited for.
        let hearing = shipping.hearing();
        assert!(hearing.hello(&database, 0).await.expect("heard").is_awaited);
        let nothing = hearing.hold_nothing(&database, "a machine");
        nothing.await.expect("it is presented");
        ship(&database, shipping).await;
    }
    assert_eq!(pause(&postgres), "");
    assert_eq!(granted(holder.wants(10).await).amount, usd(10));
    assert_eq!(epoch(&postgres), "1");
    assert_eq!(summed(&postgres), (4, 4));
}
