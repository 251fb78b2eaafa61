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
        ("{40}", "120", "120"),
        ("{40,40}", "120", "80"),
        ("{120,120}", "120", "60"),
        ("{10,120}", "120", "110"),
        ("{10,20,120,120}", "120", "45"),
        ("{120,120,120,5,120,1}", "120", "28"),
        ("{8,8,8}", "8", "2"),
        // More machines than requests.
        ("{1,1,1,1,1}", "3", "1"),
        ("{0,0}", "8", "8"),
        ("{}", "8", "1"),
        ("{8}", "NULL", ""),
    ];
    for (wanted, limit, share) in rows {
        let asked = format!("SELECT bursar_fleet.level('{wanted}', {limit})");
        assert_eq!(postgres.sql(DATABASE, &asked), share, "{wanted} of {limit}");
    }
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

async fn is_held_below(members: &[&Member], limit: u64) {
    within(Duration::from_secs(90), "the limit", || async {
        for member in members {
            if per_minute(member).await != Some(limit) {
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
    is_held_below(&[&members[0], &members[1]], 40).await;
    // Each by itself sends what the service takes from both together.
    for number in 0..20 {
        for member in &members {
            member.buy(&format!("request {number}")).await;
        }
    }
    is_held_below(&[&members[0], &members[1]], 20).await;

    members[1].dies().await;
    is_held_below(&[&members[0]], 40).await;
    members[0].buy("at last").await;
}
