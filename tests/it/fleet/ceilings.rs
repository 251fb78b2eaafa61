//! The service's ceilings over several machines: advice by the database, and nothing that a request waits for.

use std::time::Duration;

use super::serving::Member;
use super::{DATABASE, fleet, pricing_always};
use crate::support::within;

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn all_of_a_ceiling_is_shared_and_none_gets_less_than_it_wants_while_another_has_more() {
    let postgres = fleet();
    let rows = [
        ("{40}", "120", "{120}"),
        ("{40,40}", "120", "{80,80}"),
        ("{120,120}", "120", "{60,60}"),
        ("{10,120}", "120", "{110,110}"),
        ("{10,20,120,120}", "120", "{45,45,45,45}"),
        // What is left over by rounding goes to the first that want more.
        ("{120,120,120,5,120,1}", "120", "{29,29,28,28,28,28}"),
        ("{8,8,8}", "8", "{3,3,2}"),
        ("{8,0,8,8,8,8}", "8", "{2,1,2,2,1,1}"),
        // More machines than requests.
        ("{1,1,1,1,1}", "3", "{1,1,1,1,1}"),
        ("{0,0}", "8", "{8,8}"),
        ("{8}", "NULL", "{NULL}"),
    ];
    for (wanted, limit, parts) in rows {
        let asked = format!(
            "SELECT array_agg(bursar_fleet.part('{wanted}', {limit}, n) ORDER BY n)
             FROM generate_series(1, cardinality('{wanted}'::integer[])) AS n"
        );
        assert_eq!(postgres.sql(DATABASE, &asked), parts, "{wanted} of {limit}");
    }
}

/// A machine says what it would use; the answer is for it.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_statement_counts_for_forty_seconds_and_for_the_minute_as_long_as_the_service_counts() {
    let postgres = fleet();
    let ledgers = "INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar)
        SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, sha256('s'), 'h', 'b'
        FROM generate_series(1, 1200) AS n";
    postgres.sql(DATABASE, ledgers);
    let pace = |number: u32, wanted: &str| {
        let asked = format!(
            "SELECT in_flight, per_minute, again_s
             FROM bursar_fleet.pace('00000000-0000-4000-8000-{number:012}', 's', {wanted}, 8, 120)"
        );
        let answered = postgres.try_sql("node", DATABASE, &asked);
        let why = String::from_utf8_lossy(&answered.stderr);
        assert!(answered.status.success(), "{why}");
        String::from_utf8_lossy(&answered.stdout).trim().to_owned()
    };
    let age = |interval: &str| {
        let aged = format!(
            "UPDATE bursar_fleet.paces SET stated = stated - interval '{interval}'
             WHERE ledger <> '00000000-0000-4000-8000-000000000001'"
        );
        postgres.sql(DATABASE, &aged)
    };
    assert_eq!(pace(1, "8, 120"), "8|120|5");
    assert_eq!(pace(2, "8, 120"), "4|60|5");
    assert_eq!(pace(1, "8, 120"), "4|60|5");
    age("41 s");
    assert_eq!(pace(1, "8, 120"), "8|60|5", "what it sent is counted");
    age("21 s");
    assert_eq!(pace(1, "8, 120"), "8|120|5", "it is gone");
    // The server's clock was set back.
    age("-1 hour");
    assert_eq!(pace(1, "8, 120"), "8|120|5");
    assert_eq!(pace(2, "8, 120"), "4|60|5");
    pace(2, "0, 30");
    assert_eq!(pace(1, "8, 120"), "8|90|5", "it stops, having sent 30");
    pace(2, "0, 0");
    assert_eq!(
        pace(1, "8, 120"),
        "8|120|5",
        "it says that it needs nothing"
    );
    let many = "INSERT INTO bursar_fleet.paces
        SELECT id, clock_timestamp(), 8, 120 FROM bursar_fleet.ledgers ON CONFLICT DO NOTHING";
    postgres.sql(DATABASE, many);
    assert_eq!(pace(1, "8, 120"), "1|1|30");
}

/// What may go in a minute, as the queue has it now.
async fn per_minute(member: &Member) -> Option<u64> {
    let page = member.daemon().admin_page("/metrics").await.text();
    let shown = |line: &str| {
        line.strip_prefix("bursar_rate_limit_per_minute ")?
            .parse()
            .ok()
    };
    page.lines().find_map(shown)
}

async fn are_held(members: &[&Member], is_it: impl Fn(u64) -> bool) {
    within(Duration::from_secs(90), "the limits", || async {
        for member in members {
            if !per_minute(member).await.is_some_and(&is_it) {
                return None;
            }
        }
        Some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn machines_that_are_busy_share_the_minute_and_one_that_is_alone_again_has_all_of_it() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let lines = "[shaping]\nper_minute = 40\nin_flight = 8\n";
    let mut members = Vec::new();
    for number in 1..3 {
        members.push(Member::with(&origin.url(), &postgres, number, lines).await);
    }
    are_held(&[&members[0], &members[1]], |limit| limit == 40).await;
    // Each by itself sends half of what the service takes.
    for number in 0..20 {
        for member in &members {
            member.buy(&format!("request {number}")).await;
        }
    }
    are_held(&[&members[0], &members[1]], |limit| limit < 40).await;

    members[1].dies().await;
    are_held(&[&members[0]], |limit| limit == 40).await;
    members[0].buy("at last").await;
}
