//! What the fleet lacks of a machine, and why: as the machine and the database show it. And what a stop makes of it.

use std::time::Duration;

use super::commands::Person;
use super::serving::{Member, is_shipped, lines_behind, metric};
use super::{DATABASE, fleet, pricing_always, summed};
use crate::support::within;

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
    assert_eq!(member.logged("refused lines for what is in them"), 1);
    assert_eq!(summed(&postgres).0, 1);

    let no_rule = "ALTER TABLE bursar_fleet.lines DROP CONSTRAINT no_more";
    postgres.sql(DATABASE, no_rule);
    is_shipped(&postgres, 2).await;
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
