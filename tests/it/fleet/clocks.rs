//! A machine whose clock is not the database's: whoever joins it or asks its doctor is told.

use std::time::Duration;

use serde_json::Value;

use super::commands::{joins, machine};
use super::serving::Member;
use super::{CODE, DATABASE, fleet, pricing_always};
use crate::support::daemon::command;
use crate::support::postgres::Postgres;
use crate::support::within;

/// Sets the clock by which the database compares a machine's, so many seconds off its own.
fn set_clock(postgres: &Postgres, by_s: i64) {
    // Its functions, as they were.
    postgres.sql(DATABASE, bursar::fleet::schema::SQL);
    for function in ["greet", "hello"] {
        let changed = format!(
            "SELECT replace(pg_get_functiondef('bursar_fleet.{function}'::regproc), 'clock_timestamp()',
                '(clock_timestamp() + interval ''{by_s} s'')') \\gexec\n"
        );
        postgres.sql(DATABASE, &changed);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_join_says_that_the_machines_clock_is_off_and_to_which_side() {
    let postgres = fleet();
    let typed = format!("{}\n{CODE}1\n", postgres.url("node", DATABASE));
    for (by_s, said) in [
        (-10, "s ahead of the database's"),
        (10, "s behind the database's"),
        (0, ""),
    ] {
        set_clock(&postgres, by_s);
        let (_folder, config) = machine();

        let joined = joins(&config, &["--json"], &typed).await;

        assert_eq!(joined.code, Some(0), "{by_s}: {}", joined.err);
        let document: Value = serde_json::from_str(&joined.out).expect("a document");
        let ahead_ms = document["clock_ahead_ms"].as_i64().expect("a time");
        assert!(
            (ahead_ms + by_s * 1_000).abs() < 4_000,
            "{by_s}: {document}"
        );
        let is_said = joined.err.contains("this machine's clock is");
        assert_eq!(is_said, by_s != 0, "{by_s}: {}", joined.err);
        assert!(joined.err.contains(said), "{by_s}: {}", joined.err);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_doctor_says_that_the_clock_is_off_the_fleets_as_long_as_it_is() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let member = Member::start(&origin.url(), &postgres, 1).await;
    let state = member.state_dir();
    let state = state.to_str().expect("UTF-8");
    for (by_s, said) in [
        (-10, "s ahead of that of the fleet's database"),
        (10, "s behind that of the fleet's database"),
        (0, ""),
    ] {
        set_clock(&postgres, by_s);
        within(Duration::from_secs(60), "a hello", || async {
            let status = member.daemon().admin_page("/api/status").await.json();
            let ahead_ms = status["fleet"]["clock_ahead_ms"].as_i64()?;
            ((ahead_ms + by_s * 1_000).abs() < 4_000).then_some(())
        })
        .await;

        let asked = ["doctor", "--json", "--state-dir", state];
        let output = command(&asked).output().await.expect("it runs");

        let found: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let mut checks = found["checks"].as_array().expect("checks").iter();
        let clock = checks.find(|check| check["check"] == "clock");
        let clock = clock.expect("a check of the clock");
        assert_eq!(clock["verdict"] == "fail", by_s != 0, "{by_s}: {clock}");
        let words = clock["found"].as_str().expect("words");
        assert!(words.contains(said), "{by_s}: {clock}");
    }
}
