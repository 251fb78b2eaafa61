//! By way of a real pgbouncer in transaction mode, whose one connection to the server is another client's next: every
//! call of a bursar works, and none leaves anything behind.

use super::commands::{Person, is_frozen};
use super::serving::{Member, is_shipped};
use super::{
    CODE, DATABASE, Shipping, buy, connect, connect_to, copied, fleet, joined, pricing, ship,
    summed,
};
use crate::support::pgbouncer::PgBouncer;
use crate::support::{Bursar, Sandbox};

/// What is left on the pooler's connection for its next client.
const LEFT: &str = "SELECT (SELECT count(*) FROM pg_listening_channels()), \
    (SELECT count(*) FROM pg_prepared_statements), \
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')";

const OFTEN: &str = "ship_interval_s = 1\n";

#[tokio::test]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all"]
async fn a_ledger_is_let_in_ships_forks_and_leaves_by_way_of_a_pooler() {
    let postgres = fleet();
    let Some(pooler) = PgBouncer::before(&postgres, "").await else {
        return;
    };
    let origin = pricing(10).await;
    let bursar = Bursar::before(&origin.url()).await;
    let pooled = connect_to(&pooler.url("node", DATABASE)).await;
    // The same connection to the server serves another client in between.
    let other = connect_to(&pooler.url("node", DATABASE)).await;
    let greeting = pooled.greet().await.expect("it answers");
    assert!(greeting.is_node && !greeting.is_operator);
    let code = format!("{CODE}1");
    assert!(other.is_open(&code).await.expect("it answers"));
    let mut shipping = joined(&pooled, &bursar.state_dir(), 1).await;
    assert!(!other.is_open(&code).await.expect("it answers"));
    for round in 1..4_u32 {
        buy(&bursar, &format!("{round}")).await;
        let through = [&pooled, &other][round as usize % 2];
        let shipped = ship(through, &mut shipping).await;
        assert_eq!((shipped.lines, shipped.forked), (2, false));
        assert_eq!(summed(&postgres), (i64::from(round), u64::from(10 * round)));
    }
    // A copy finds the last common line by asking again and again.
    let clone = Bursar::on(copied(&bursar.state_dir()), &origin.url()).await;
    let path = clone.state_dir();
    buy(&bursar, "the original's").await;
    buy(&clone, "the clone's").await;
    let mut cloned = joined(&other, &path, 2).await;
    assert!(!ship(&pooled, &mut shipping).await.forked);
    assert!(ship(&other, &mut cloned).await.forked);
    assert_eq!(summed(&postgres), (5, 50));
    // Directly it is the same ledger.
    let direct = connect(&postgres).await;
    let mut again: Shipping = joined(&direct, &path, 2).await;
    assert_eq!(ship(&direct, &mut again).await.lines, 0);
    pooled.leave(again.identity()).await.expect("it leaves");
    assert_eq!(left(&postgres, &pooler), "0|0|0");
}

/// Its orders come with the hello, and its own connection asks for no notification there, whether the pooler refuses
/// the word at its start or swallows it.
#[tokio::test]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all"]
async fn a_daemon_behind_a_pooler_hears_orders_and_leaves_no_listening_behind() {
    for lines in ["", "ignore_startup_parameters = options"] {
        let postgres = fleet();
        let Some(pooler) = PgBouncer::before(&postgres, lines).await else {
            return;
        };
        let operator = Person::with(&pooler.url("operator", DATABASE));
        let sandbox = Sandbox::start().await;
        let mut member = Member::at(&sandbox.url(), &pooler.url("node", DATABASE), 1, OFTEN).await;
        member.buy("before").await;
        is_shipped(&postgres, 1).await;
        operator.document(&["fleet", "freeze"]).await;
        is_frozen(&member, true).await;
        let refused = member.ask("frozen").await;
        assert_eq!(refused.code(), Some("frozen"), "{}", refused.text());
        operator.document(&["fleet", "thaw"]).await;
        is_frozen(&member, false).await;
        let seen = operator.document(&["fleet", "status"]).await;
        assert_eq!(seen["ledgers"][0]["state"], "in", "{seen}");
        assert_eq!(left(&postgres, &pooler), "0|0|0", "{lines}");
        member.stop().await;
        assert_eq!(summed(&postgres), (1, sandbox.debited().await));
    }
}

/// Orders have a time of their own: half a minute where no notification hurries it.
#[tokio::test]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all"]
async fn an_order_is_heard_behind_a_pooler_within_a_minute_where_lines_are_shipped_once_an_hour() {
    let postgres = fleet();
    let Some(pooler) = PgBouncer::before(&postgres, "").await else {
        return;
    };
    let operator = Person::with(&pooler.url("operator", DATABASE));
    let sandbox = Sandbox::start().await;
    let seldom = "ship_interval_s = 3600\n";
    let mut member = Member::at(&sandbox.url(), &pooler.url("node", DATABASE), 1, seldom).await;
    member.buy("not shipped before the stop").await;

    operator.document(&["fleet", "freeze"]).await;
    is_frozen(&member, true).await;
    assert_eq!(member.ask("frozen").await.code(), Some("frozen"));
    member.stop().await;
    assert_eq!(summed(&postgres).1, sandbox.debited().await);
}

/// What the daemon is kept from: a LISTEN by way of the pooler stays on its connection, for the next client.
#[tokio::test]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all"]
async fn a_listening_by_way_of_a_pooler_would_stay_behind_and_the_database_does_not_begin_it() {
    let postgres = fleet();
    let Some(pooler) = PgBouncer::before(&postgres, "").await else {
        return;
    };
    let asks = "SELECT bursar_fleet.listen_here('guess'), bursar_fleet.listen_here(NULL)";
    let asked = pooler.try_sql(&postgres, "node", DATABASE, asks);
    let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    assert_eq!(said, "pooled|pooled");
    assert_eq!(left(&postgres, &pooler), "0|0|0");
    let plain = pooler.try_sql(&postgres, "node", DATABASE, "LISTEN bursar_fleet");
    assert!(plain.status.success());
    assert_eq!(left(&postgres, &pooler), "1|0|0");
}

fn left(postgres: &crate::support::postgres::Postgres, pooler: &PgBouncer) -> String {
    let answered = pooler.try_sql(postgres, "node", DATABASE, LEFT);
    assert!(answered.status.success());
    String::from_utf8_lossy(&answered.stdout).trim().to_owned()
}
