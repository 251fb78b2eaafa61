//! What others hold open in the database: nobody that ships, leases or freezes waits for it long.

use tokio_postgres::{Client, NoTls};

use super::commands::Person;
use super::{DATABASE, buy, connect, fleet, joined, pricing, ship, summed};
use crate::support::postgres::Postgres;
use crate::support::{Bursar, eventually};

/// A person's transaction that has done this and stays open, until it is dropped.
async fn open(postgres: &Postgres, statements: &str) -> Client {
    let client = administrator(postgres).await;
    client.batch_execute("BEGIN").await.expect("it begins");
    client.batch_execute(statements).await.expect("it is done");
    client
}

async fn administrator(postgres: &Postgres) -> Client {
    let url = postgres.url("admin", DATABASE);
    let connected = tokio_postgres::connect(&url, NoTls).await;
    let (client, connection) = connected.expect("the database");
    tokio::spawn(connection);
    client
}

/// Such as a dump over midnight.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_first_line_of_a_month_does_not_wait_for_whoever_reads() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    buy(&bursar, "the month's first").await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    let months =
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'bursar_fleet.lines'::regclass";
    assert_eq!(postgres.sql(DATABASE, months), "0");
    let reader = open(&postgres, "SELECT * FROM bursar_fleet.changes").await;

    assert_eq!(ship(&database, &mut shipping).await.lines, 2);

    assert_eq!(postgres.sql(DATABASE, months), "1");
    assert_eq!(summed(&postgres), (1, 5), "and others read on");
    drop(reader);
}

/// Its caller gave up long ago; a process of the server that went on waiting would keep what it has locked.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_call_that_is_kept_waiting_ends_by_itself() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let folder = tempfile::tempdir().expect("a directory");
    let mut shipping = joined(&database, &super::state_in(&folder), 1).await;
    let other = open(&postgres, "SELECT FROM bursar_fleet.ledgers FOR UPDATE").await;
    let trouble = shipping.visit(&database, 0).await.expect_err("it waited");
    assert!(trouble.to_string().contains("lock timeout"), "{trouble}");
    drop(other);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_month_is_not_detached_while_somebody_reads_and_nobody_waits_for_that() {
    let postgres = fleet();
    postgres.sql(
        DATABASE,
        "SELECT bursar_fleet.month_partition('2025-01-01')",
    );
    let reader = open(&postgres, "SELECT * FROM bursar_fleet.changes").await;
    let detach = "SELECT bursar_fleet.detach_month('2025-01-01')";
    let tried = postgres.try_sql("operator", DATABASE, detach);
    let why = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(why.contains("lock timeout"), "{why}");
    reader.batch_execute("COMMIT").await.expect("it ends");
    assert_eq!(postgres.sql(DATABASE, detach), "0");
}

/// It asks whether an app of this name ever spent, which takes as long as there are lines; the money stops before.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_freeze_of_an_app_waits_for_no_line() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let other = open(&postgres, "LOCK TABLE bursar_fleet.lines").await;
    let order = operator.document(&["fleet", "freeze", "an-app"]).await;
    assert_eq!(order["changed"], true, "{order}");
    let orders = "SELECT app FROM bursar_fleet.orders";
    assert_eq!(postgres.sql(DATABASE, orders), "an-app");
    drop(other);
    let done = operator.gives(&["fleet", "freeze", "an-app"]).await;
    assert!(done.err.contains("no machine has spent"), "{}", done.err);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_schema_is_set_up_again_while_bursars_call() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let folder = tempfile::tempdir().expect("a directory");
    joined(&database, &super::state_in(&folder), 1).await;
    // As a hello begins.
    let caller = open(&postgres, "SELECT FROM bursar_fleet.ledgers FOR UPDATE").await;
    let administrator = administrator(&postgres).await;
    let upgrade = tokio::spawn(async move {
        let schema = bursar::fleet::schema::SQL;
        administrator.batch_execute(schema).await
    });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    eventually("it to wait for the call", || async {
        (postgres.sql(DATABASE, waiting) == "1").then_some(())
    })
    .await;
    // And as it goes on.
    let rest = "SELECT version FROM bursar_fleet.about; COMMIT";
    caller.batch_execute(rest).await.expect("it is answered");
    upgrade.await.expect("it ends").expect("it is set up");
}
