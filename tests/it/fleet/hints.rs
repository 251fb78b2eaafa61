//! Notifications: on a direct connection an order is heard at once, and a forged one changes nothing.

use std::time::Duration;

use super::commands::{Person, is_frozen_within};
use super::serving::Member;
use super::{DATABASE, fleet};
use crate::support::postgres::Postgres;
use crate::support::{Sandbox, within};

/// With hellos half a minute apart.
const SELDOM: &str = "ship_interval_s = 60\n";

/// Far below the pause between hellos.
const AT_ONCE: Duration = Duration::from_secs(10);

async fn is_listened(postgres: &Postgres, listeners: usize) {
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bursar listening' \
                     AND state = 'idle' AND query LIKE '%listen_here%'";
    within(Duration::from_secs(20), "them to listen", || async {
        (postgres.sql(DATABASE, listening) == listeners.to_string()).then_some(())
    })
    .await;
}

/// How often the database was visited.
async fn visits(member: &Member) -> u64 {
    let page = member.daemon().admin_page("/metrics").await.text();
    let counts = page.lines().filter_map(|line| {
        let count = line.strip_prefix("bursar_fleet_visits_total{")?;
        count.rsplit(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_order_is_heard_at_once_on_direct_connections() {
    let postgres = fleet();
    let operator = Person::with(&postgres.url("operator", DATABASE));
    let sandbox = Sandbox::start().await;
    let url = postgres.url("node", DATABASE);
    let one = Member::at(&sandbox.url(), &url, 1, SELDOM).await;
    let two = Member::at(&sandbox.url(), &url, 2, SELDOM).await;
    is_listened(&postgres, 2).await;
    for (order, is_on) in [("freeze", true), ("thaw", false)] {
        operator.document(&["fleet", order]).await;
        for member in [&one, &two] {
            is_frozen_within(AT_ONCE, member, is_on).await;
        }
    }
    one.buy("after").await;
}

/// Every role may send one.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn forged_notifications_change_nothing_however_many_come() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let url = postgres.url("node", DATABASE);
    let member = Member::at(&sandbox.url(), &url, 1, SELDOM).await;
    is_listened(&postgres, 1).await;
    let before = visits(&member).await;
    let forged = "DO $$ BEGIN
        FOR i IN 1 .. 2000 LOOP
            PERFORM pg_notify('bursar_fleet', format('{\"app\": \"\", \"by\": \"nobody\"} freeze %s', i));
        END LOOP;
    END $$";
    let began = tokio::time::Instant::now();
    for _ in 0..5 {
        assert!(postgres.try_sql("node", DATABASE, forged).status.success());
        member.buy("meanwhile").await;
    }
    within(AT_ONCE, "a hello that came early", || async {
        (visits(&member).await > before).then_some(())
    })
    .await;
    // 10,000 of them, and a hello a second at most.
    let hellos = visits(&member).await - before;
    let bound = began.elapsed().as_secs() + 2;
    assert!(hellos <= bound, "{hellos} hellos, and {bound} may be");
    is_frozen_within(AT_ONCE, &member, false).await;
    member.buy("after").await;
    let page = member.daemon().admin_page("/metrics").await;
    let failed = "bursar_fleet_visits_total{result=\"failed\"} 0\n";
    assert!(page.text().contains(failed), "{}", page.text());
}

/// Half of the places are for bursars that ship.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn no_more_than_half_of_the_servers_places_are_taken_by_those_who_listen() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    postgres.sql("postgres", "ALTER SYSTEM SET max_connections = 12");
    postgres.end();
    postgres.begin();
    let url = postgres.url("node", DATABASE);
    let mut members = Vec::new();
    for number in 1..9 {
        members.push(Member::at(&sandbox.url(), &url, number, "ship_interval_s = 1\n").await);
    }
    let joined = "SELECT count(*) FROM bursar_fleet.ledgers WHERE heard > joined";
    within(Duration::from_secs(60), "all to be heard", || async {
        (postgres.sql(DATABASE, joined) == members.len().to_string()).then_some(())
    })
    .await;
    let listening =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bursar listening'";
    let count: usize = within(Duration::from_secs(20), "the others to go", || async {
        let count = postgres.sql(DATABASE, listening).parse().expect("a count");
        (count <= 6).then_some(count)
    })
    .await;
    assert!(count > 0, "some listen");
}

/// Every role may fill the server's queue of notifications, which is 8 GB: a stand-in says that it is nearly full.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_order_does_not_fail_where_the_queue_of_notifications_is_full() {
    let postgres = fleet();
    let operator = Person::with(&postgres.url("operator", DATABASE));
    let sandbox = Sandbox::start().await;
    let url = postgres.url("node", DATABASE);
    let member = Member::at(&sandbox.url(), &url, 1, "ship_interval_s = 1\n").await;
    let used = |used: f64| {
        let stand_in = format!(
            "CREATE SCHEMA IF NOT EXISTS stand_in;
            CREATE OR REPLACE FUNCTION stand_in.pg_notification_queue_usage() RETURNS float8
                LANGUAGE sql AS 'SELECT {used}::float8';
            CREATE OR REPLACE FUNCTION stand_in.pg_notify(text, text) RETURNS void
                LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'too many notifications in the NOTIFY queue'; END $$;
            ALTER FUNCTION bursar_fleet.call_listeners()
                SET search_path = stand_in, pg_catalog, bursar_fleet, pg_temp;
            GRANT USAGE ON SCHEMA stand_in TO PUBLIC"
        );
        postgres.sql(DATABASE, &stand_in);
    };
    used(0.9);
    for (order, is_on) in [("freeze", true), ("thaw", false)] {
        operator.document(&["fleet", order]).await;
        is_frozen_within(AT_ONCE, &member, is_on).await;
    }
    // The stand-in is what an order asks: with room in the queue it notifies.
    used(0.1);
    let refused = operator.gives(&["fleet", "freeze"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
}

/// Without `[fleet]` there is nothing to hear.
#[test]
fn a_daemon_in_no_fleet_has_nothing_that_listens() {
    let clock = bursar::clock::SystemClock::shared();
    let metrics = bursar::telemetry::metrics::Metrics::new().expect("metrics register");
    let directory = tempfile::tempdir().expect("a directory");
    let table = bursar::config::FleetTable::default();
    let metrics = std::sync::Arc::new(metrics);
    assert!(bursar::fleet::Worker::new(&table, directory.path(), &clock, &metrics).is_none());
}
