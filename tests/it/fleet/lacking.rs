//! What the fleet lacks of a machine, and why: as the machine and the database show it. And what a stop makes of it.

use std::time::Duration;

use bursar::fleet::Trouble;

use super::commands::Person;
use super::compacted::bought;
use super::holder::Holder;
use super::serving::{Member, is_shipped, lines_behind, metric};
use super::{DATABASE, buy, connect, fleet, joined, lose_lines, pricing_always, ship, summed};
use crate::support::{Bursar, within};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_status_shows_how_far_a_ledger_is_for_how_long_it_lacks_lines_and_its_version() {
    let postgres = fleet();
    let reader = Person::new(&postgres, "reader");
    let origin = pricing_always(1).await;
    let member = Member::start(&origin.url(), &postgres, 1).await;
    member.buy("shipped").await;
    is_shipped(&postgres, 1).await;
    let ship = "ON FUNCTION bursar_fleet.ship";
    postgres.sql(DATABASE, &format!("REVOKE EXECUTE {ship} FROM bursar_node"));
    member.buy("not shipped").await;

    let seen = within(PATIENCE, "lines that are missing for a while", || async {
        let seen = reader.document(&["fleet", "status"]).await;
        let ledger = &seen["ledgers"][0];
        let is_late = ledger["lag_s"].as_u64() >= Some(2) && ledger["lines_behind"] == 2;
        is_late.then_some(seen)
    })
    .await;
    let ledger = &seen["ledgers"][0];
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        (
            &ledger["mark_seq"],
            &ledger["lines_behind"],
            &ledger["bursar"]
        ),
        (&2.into(), &2.into(), &version.into()),
        "{seen}"
    );

    postgres.sql(DATABASE, &format!("GRANT EXECUTE {ship} TO bursar_node"));
    is_shipped(&postgres, 2).await;
    let seen = reader.document(&["fleet", "status"]).await;
    let ledger = &seen["ledgers"][0];
    assert_eq!(
        (
            &ledger["mark_seq"],
            &ledger["lines_behind"],
            &ledger["lag_s"]
        ),
        (&4.into(), &0.into(), &0.into()),
        "{seen}"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_the_database_refuses_for_what_is_in_them_are_counted_and_named_once() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let member = Member::start(&origin.url(), &postgres, 1).await;
    member.buy("taken").await;
    is_shipped(&postgres, 1).await;
    let refused = || metric(&member, "bursar_fleet_lines_refused_total ");
    assert_eq!(refused().await, Some(0));
    let rule = "ALTER TABLE bursar_fleet.lines ADD CONSTRAINT no_more CHECK (seq <= 2)";
    postgres.sql(DATABASE, rule);

    member.buy("refused").await;
    // The two lines of a request, each time that they are sent.
    within(PATIENCE, "three visits to be refused", || async {
        (refused().await? >= 6).then_some(())
    })
    .await;
    assert_eq!(lines_behind(&member).await, Some(2));
    let taken = metric(&member, "bursar_fleet_lines_shipped_total ");
    assert_eq!(taken.await, Some(2));
    assert_eq!(member.logged("refused lines for what is in them"), 1);
    assert_eq!(summed(&postgres).0, 1);

    let no_rule = "ALTER TABLE bursar_fleet.lines DROP CONSTRAINT no_more";
    postgres.sql(DATABASE, no_rule);
    is_shipped(&postgres, 2).await;
}

/// An order brings a hello between two visits that ship, and the database answers it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn refused_lines_are_the_trouble_until_they_are_taken_whatever_hellos_come_between() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let url = postgres.url("node", DATABASE);
    let member = Member::at(&origin.url(), &url, 1, "ship_interval_s = 5\n").await;
    member.buy("taken").await;
    is_shipped(&postgres, 1).await;
    let rule = "ALTER TABLE bursar_fleet.lines ADD CONSTRAINT no_more CHECK (seq <= 2)";
    postgres.sql(DATABASE, rule);
    member.buy("refused").await;

    let refused = || metric(&member, "bursar_fleet_lines_refused_total ");
    let heard = || metric(&member, "bursar_fleet_visits_total{result=\"ok\"} ");
    let order = "SELECT bursar_fleet.order_freeze(''); SELECT bursar_fleet.order_thaw('')";
    for lines in [2, 4, 6] {
        within(PATIENCE, "lines to be refused", || async {
            (refused().await? >= lines).then_some(())
        })
        .await;
        let before = heard().await.expect("a metric");
        within(PATIENCE, "a hello", || async {
            postgres.sql(DATABASE, order);
            (heard().await? > before).then_some(())
        })
        .await;
        let status = member.daemon().admin_page("/api/status").await.json();
        let trouble = status["fleet"]["trouble"].as_str().unwrap_or_default();
        let wanted = "refused lines for what is in them";
        assert!(trouble.contains(wanted), "{status}");
    }
    assert_eq!(member.logged("refused lines for what is in them"), 1);
    assert_eq!(member.logged("the fleet is reached again"), 0);

    let no_rule = "ALTER TABLE bursar_fleet.lines DROP CONSTRAINT no_more";
    postgres.sql(DATABASE, no_rule);
    is_shipped(&postgres, 2).await;
    within(PATIENCE, "its end to be logged", || async {
        (member.logged("the fleet is reached again") == 1).then_some(())
    })
    .await;
}

/// The first batch of two; on a link that breaks in each visit the count would stay 0.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_were_taken_count_also_in_a_visit_that_fails_behind_them() {
    let postgres = fleet();
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    bought(&state_dir, 300, Duration::from_secs(60 * 60)).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &state_dir, 1).await;
    let rule = "SET ROLE bursar_fleet_owner;
        SELECT bursar_fleet.month_partition(date_trunc('month', now() AT TIME ZONE 'UTC')::date);
        ALTER TABLE bursar_fleet.lines ADD CONSTRAINT no_more CHECK (seq <= 500)";
    postgres.sql(DATABASE, rule);

    let trouble = shipping.visit(&database, 0).await.expect_err("it is full");

    assert!(matches!(trouble, Trouble::Fleet(_)), "{trouble}");
    let mark_seq = postgres.sql(DATABASE, "SELECT mark_seq FROM bursar_fleet.ledgers");
    let mark_seq: u64 = mark_seq.parse().expect("a number");
    assert!(mark_seq > 0, "the test would show nothing: {trouble}");
    assert_eq!(shipping.take_shipped(), mark_seq);
    assert_eq!(shipping.take_stated(), Some(mark_seq));
    assert!(shipping.take_refused() > 0);
}

/// The 500th of the first batch is a range that is lost.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_batch_has_500_lines_and_losses_at_most() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let bursar = Bursar::before(&origin.url()).await;
    for number in 0..600 {
        buy(&bursar, &format!("{number}")).await;
    }
    lose_lines(&bursar, 500..=501);
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;

    let shipped = ship(&database, &mut shipping).await;

    assert_eq!((shipped.lines, shipped.mark_seq), (1_199, 1_200));
    // What comes at once is received at one moment.
    let batches = "SELECT string_agg(lines::text, ' ' ORDER BY received)
        FROM (SELECT received, count(*) AS lines FROM bursar_fleet.lines GROUP BY received) AS batches";
    assert_eq!(postgres.sql(DATABASE, batches), "500 500 199");
}

/// Its backup is older than what the machine knows to be acknowledged, and the visit fails before anything is compared.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_a_restored_database_forgot_are_behind_also_where_it_takes_none() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let member = Member::start(&origin.url(), &postgres, 1).await;
    for requests in 1..3 {
        member.buy(&format!("request {requests}")).await;
        is_shipped(&postgres, requests).await;
    }
    let lacks = |wanted: u64| {
        let member = &member;
        move || async move { (lines_behind(member).await == Some(wanted)).then_some(()) }
    };
    within(PATIENCE, "the fleet to lack nothing", lacks(0)).await;

    let restored = "UPDATE bursar_fleet.about SET version = 99;
        UPDATE bursar_fleet.ledgers SET mark_seq = 2,
            mark_chain = (SELECT chain FROM bursar_fleet.lines WHERE last_seq = 2);
        DELETE FROM bursar_fleet.lines WHERE seq > 2";
    postgres.sql(DATABASE, restored);

    within(PATIENCE, "what the fleet forgot", lacks(2)).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_hello_that_cannot_name_the_journals_end_leaves_what_the_fleet_was_told() {
    let postgres = fleet();
    let holder = Holder::new(&postgres, 1).await;
    for end_seq in [Some(4_u64), None] {
        let hello = holder.fleet.hello(&holder.identity, "host-1", end_seq, 0);
        hello.await.expect("an answer");
        let behind = "SELECT lines_behind FROM bursar_fleet.fleet";
        assert_eq!(postgres.sql(DATABASE, behind), "4");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_stop_waits_stop_flush_s_for_a_database_that_hangs_and_the_next_start_ships_the_rest() {
    let postgres = fleet();
    let origin = pricing_always(3).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, "stop_flush_s = 2\n").await;
    member.buy("before").await;
    is_shipped(&postgres, 1).await;
    postgres.hang();
    member.buy("while it hangs").await;

    // A call to the database may take 30 s, and without the key a stop 10 s.
    let stopped = tokio::time::timeout(Duration::from_secs(9), member.stop());
    stopped.await.expect("two seconds of it are waited for");
    assert_eq!(member.logged("stop_flush_s is over"), 1);
    assert!(member.logged("the fleet gets no lines") <= 1);
    postgres.go_on();
    member.begin().await;
    is_shipped(&postgres, 2).await;
    member.stop().await;
    assert_eq!(summed(&postgres), (2, member.billed()));
}
