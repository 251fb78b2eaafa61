//! What is held: every route that can begin to cost, in whichever dialect, also one that is billed for nothing itself.

use super::freeze::{freeze, is_frozen, thaw};
use super::repeats::run_of;
use super::{ask, is_reached, received};
use crate::dialects::errors::error_of;
use crate::retries::request_of;
use crate::retries::routes::{Row, rows};
use crate::support::origin::{billed, json};
use crate::support::{Answer, Bursar, Origin, Step, chat};

const START: &str = "/v1/endpoints/{}/start";

/// What makes an entry, and the start of an endpoint that was stopped; reading, stopping and deleting
/// are not.
fn can_begin_to_cost(row: &Row) -> bool {
    row.kind.is_metered() || (row.method, row.pattern) == ("POST", START)
}

async fn send(bursar: &Bursar, row: &Row, headers: &str) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request_of(row, headers)).await;
    wire.answer().await
}

/// In the envelope that the route's clients read, under bursar's own code.
fn is_in_the_routes_form(row: &Row, answer: &Answer) {
    let document = answer.json();
    let (message, code) = error_of(row.path, &document);
    assert!(!message.is_empty(), "{document}");
    assert_eq!(Some(&*code), answer.code(), "{document}");
    let kind = match (row.path.ends_with("/messages"), answer.status) {
        (false, _) => "bursar_error",
        (true, 402) => "billing_error",
        (true, _) => "permission_error",
    };
    assert_eq!(document["error"]["type"], kind, "{document}");
}

/// Every route is requested, and none is billed; `held` checks the refusals.
async fn check(origin: &Origin, bursar: &Bursar, headers: &str, held: fn(&Answer)) {
    let billed = bursar.billed();
    for row in rows() {
        let before = origin.received().len();
        let answer = send(bursar, row, headers).await;
        let sent = origin.received().len() - before;
        let name = format!("{} {}: {}", row.method, row.pattern, answer.text());
        if can_begin_to_cost(row) {
            assert_eq!(sent, 0, "{name}");
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{name}");
            held(&answer);
            is_in_the_routes_form(row, &answer);
        } else {
            assert_eq!((sent, answer.status), (1, 200), "{name}");
        }
    }
    assert_eq!(bursar.billed(), billed);
}

#[tokio::test]
async fn a_freeze_holds_every_route_that_can_begin_to_cost_and_no_other() {
    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    for app in [None, Some("default")] {
        freeze(&bursar, app);
        check(&origin, &bursar, "", is_frozen).await;
        thaw(&bursar, app);
    }
    for row in rows().filter(|row| row.pattern == START) {
        assert_eq!(send(&bursar, row, "").await.status, 200, "thawed");
    }
}

#[tokio::test]
async fn a_cap_of_nothing_and_a_reached_one_hold_every_route_that_can_begin_to_cost_and_no_other() {
    let of_app = "[[app]]\nname = \"default\"\ncap_month_micro_usd = ";
    for (cap, spent) in [
        ("[caps]\nday_micro_usd = 0\n".to_owned(), None),
        ("[caps]\nday_micro_usd = 5\n".to_owned(), Some(5)),
        (format!("{of_app}0\n"), None),
        (format!("{of_app}5\n"), Some(5)),
    ] {
        let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
        let bursar = Bursar::with(&origin.url(), &cap).await;
        if let Some(spent) = spent {
            origin.push(Step::Answer(billed(spent)));
            assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200, "{cap}");
            bursar.settled(1).await;
        }
        check(&origin, &bursar, "", is_reached).await;
        let refusals = rows().filter(|row| can_begin_to_cost(row)).count();
        let families = [
            "bursar_cap_refusals_total",
            "bursar_total_cap_refusals_total",
        ];
        let counted = families.map(|family| bursar.metric(family, ""));
        let wanted = match cap.contains("[[app]]") {
            true => [refusals as f64, 0.0],
            false => [0.0, refusals as f64],
        };
        assert_eq!(counted, wanted, "{cap}");
    }
}

#[tokio::test]
async fn a_run_without_money_and_one_at_its_limit_hold_every_route_that_can_begin_to_cost() {
    for (limit, spent) in [(0, None), (5, Some(5))] {
        let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
        let bursar = Bursar::before(&origin.url()).await;
        let (_open, bearer) = run_of(&bursar, limit);
        if let Some(spent) = spent {
            origin.push(Step::Answer(billed(spent)));
            let bought = ask(&bursar, &chat("hi"), &[("Authorization", &*bearer)]).await;
            assert_eq!(bought.status, 200, "{}", bought.text());
            bursar.settled(1).await;
        }
        let headers = format!("Authorization: {bearer}\r\n");
        check(&origin, &bursar, &headers, is_reached).await;
    }
}

/// Its cost is unknown: it takes no room below a cap that is not reached.
#[tokio::test]
async fn an_endpoint_is_started_where_something_is_left() {
    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let bursar = Bursar::with(&origin.url(), "[caps]\nday_micro_usd = 1\n").await;
    for row in rows().filter(|row| row.pattern == START) {
        assert_eq!(send(&bursar, row, "").await.status, 200);
    }
    assert_eq!(bursar.entries().len(), 0);
}

#[tokio::test]
async fn a_start_that_is_tried_again_is_held_by_what_came_meanwhile() {
    let busy = || Step::Answer(json(503, &[("Retry-After", "1")], r#"{"detail":"busy"}"#));
    let start = rows().find(|row| row.pattern == START);
    let start = start.expect("the route");
    for is_freeze in [true, false] {
        let origin = Origin::start([busy(), Step::Answer(billed(9)), busy()]).await;
        let bursar = Bursar::with(&origin.url(), "[caps]\nday_micro_usd = 9\n").await;
        let mut wire = bursar.connect().await;
        wire.send(request_of(start, "")).await;
        received(&origin, 1).await;
        if is_freeze {
            freeze(&bursar, None);
            is_frozen(&wire.answer().await);
            assert_eq!(origin.received().len(), 1);
        } else {
            assert_eq!(ask(&bursar, &chat("hi"), &[]).await.status, 200);
            is_reached(&wire.answer().await);
            assert_eq!(origin.received().len(), 2);
        }
    }
}
