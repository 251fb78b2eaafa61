//! What goes back of a lease: nothing that is billed, and nothing that is held for a price that is not known.

use std::time::Duration;

use bursar::ledger::entry::{InDoubt, State};

use super::holder::{Holder, capped, granted, usd};
use super::serving::{Member, metric};
use super::sharing::sum;
use super::{DATABASE, pricing_always};
use crate::support::bursar::entries;
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Origin, Step, Wire, chat, eventually, within};

const PATIENCE: Duration = Duration::from_secs(60);

/// Of the cap.
const LIMIT: u64 = 1_000_000;

/// Of a request, and what is held for one whose price is not known.
const PRICE: u64 = 50;

/// Nothing is repeated, the floor is no price, and a stop waits for no request.
const LINES: &str = "shared_caps = [\"team\"]\n\n[caps]\nrequest_floor_micro_usd = 0\n\n\
                     [retry]\nattempts = 1\n\n[listen]\nshutdown_timeout_s = 0\n";

/// Two requests that are billed, one whose answer has no price, one that is in doubt, and one that is under way until the
/// origin goes on. None is larger than the first, so that none is held at more.
async fn spends_in_each_state(member: &Member, origin: &Origin) -> Wire {
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    origin.push(Step::Answer(json(200, &[], r#"{"choices":[]}"#)));
    member.buy("unreported").await;
    origin.push(Step::Close);
    let lost = member.ask("in doubt").await;
    assert_eq!(lost.code(), Some("outcome_unknown"), "{}", lost.text());
    origin.push(Step::Pieces(vec![billed(PRICE)]));
    let mut app = member.daemon().connect().await;
    let body = chat("under way");
    app.send(request("POST", "/v1/chat/completions", &[], &body))
        .await;
    eventually("it to arrive", || async {
        (origin.received().len() == 5).then_some(())
    })
    .await;
    app
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_stop_keeps_what_is_billed_and_held_of_a_lease_and_another_machine_gets_the_rest() {
    let postgres = capped(LIMIT);
    let origin = pricing_always(PRICE).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, LINES).await;
    let _under_way = spends_in_each_state(&member, &origin).await;

    member.stop().await;

    let entries = entries(&member.state_dir());
    let in_doubt = |reason| State::InDoubt { reason };
    for (state, count) in [
        (State::Settled { billed: usd(PRICE) }, 2),
        (State::Unreported, 1),
        (in_doubt(InDoubt::NoResponse), 1),
        (in_doubt(InDoubt::Shutdown), 1),
    ] {
        let found = entries.iter().filter(|entry| entry.state == state);
        assert_eq!(found.count(), count, "{state:?}");
    }
    assert_eq!(sum(&postgres, "billed"), 2 * PRICE);
    assert_eq!(
        sum(&postgres, "granted - given_back"),
        5 * PRICE,
        "three are held"
    );
    let other = Holder::new(&postgres, 2).await;
    let rest = granted(other.wants(LIMIT).await);
    assert_eq!(rest.amount.get() + rest.left.get(), LIMIT - 5 * PRICE);
}

/// Nothing new is spent of the day once there is money of the month: what is open of it would go back at once.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn nothing_goes_back_of_a_lease_on_which_a_request_is_under_way_and_then_all_that_is_not_held()
 {
    let postgres = capped(LIMIT);
    let origin = pricing_always(PRICE).await;
    let member = Member::with(&origin.url(), &postgres, 1, LINES).await;
    let mut under_way = spends_in_each_state(&member, &origin).await;
    let longer =
        format!("SELECT bursar_fleet.order_cap('team', 'month', 'Europe/Berlin', {LIMIT})");
    assert_eq!(postgres.sql(DATABASE, &longer), "changed");
    let leased = |what: &str, window: &str| {
        let sql = format!(
            "SELECT {what} FROM bursar_fleet.leases WHERE until - since {window} interval '2 days'"
        );
        postgres.sql(DATABASE, &sql)
    };
    let of_day = |what: &str| leased(what, "<");
    let mut bought = 0;
    while leased("count(*)", ">") == "0" {
        assert!(bought < 40, "the day's money ends");
        member.buy(&format!("{bought}")).await;
        bought += 1;
    }

    let visits = || metric(&member, "bursar_fleet_visits_total{result=\"ok\"} ");
    let enough = visits().await.expect("a metric") + 4;
    within(PATIENCE, "visits", || async {
        (visits().await? >= enough).then_some(())
    })
    .await;
    assert_eq!(of_day("given_back"), "0");

    origin.go();
    assert_eq!(under_way.answer().await.status, 200);
    within(PATIENCE, "the rest to go back", || async {
        (of_day("given_back") != "0").then_some(())
    })
    .await;
    let held = (2 * PRICE).to_string();
    assert_eq!(of_day("open"), held, "unreported, and in doubt");
}
