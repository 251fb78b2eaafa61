//! Daemons below a cap that they share: it stops all of them, and what one of them holds outlasts its database.

use std::time::Duration;

use bursar::fleet::schema;
use tokio::time::Instant;

use super::fleet;
use super::holder::{Holder, cap, capped, granted};
use super::serving::{Member, is_shipped};
use super::{DATABASE, price, pricing, pricing_always, summed};
use crate::support::daemon::command;
use crate::support::postgres::Postgres;
use crate::support::{Answer, Sandbox, eventually, within};

pub(super) const SHARED: &str = "shared_caps = [\"team\"]\n";

/// Over all leases.
pub(super) fn sum(postgres: &Postgres, of: &str) -> u64 {
    let sql = format!("SELECT coalesce(sum({of}), 0) FROM bursar_fleet.leases");
    postgres.sql(DATABASE, &sql).parse().expect("a sum")
}

/// The same, where nothing is reserved for a request without a price.
pub(super) const WITHOUT_FLOOR: &str =
    "shared_caps = [\"team\"]\n\n[caps]\nrequest_floor_micro_usd = 0\n";

/// Whether a request was served, or why it was not.
async fn outcome(member: &Member, prompt: &str) -> Result<(), String> {
    let answer: Answer = member.ask(prompt).await;
    let code = answer.code().map(str::to_owned);
    match (answer.status, code) {
        (200, None) => Ok(()),
        (402 | 429, Some(code)) => Err(code),
        _ => panic!("{}: {}", answer.status, answer.text()),
    }
}

/// Buys until a request is refused for this reason, and answers how many were served.
async fn buy_until(member: &Member, wanted: &str) -> u64 {
    let mut served = 0;
    for number in 0..200 {
        match outcome(member, &format!("until it ends, {number}")).await {
            Ok(()) => served += 1,
            Err(code) if code == wanted => return served,
            Err(code) => assert_eq!(code, "cap_busy", "after {served}"),
        }
    }
    panic!("{served} were served");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_shared_cap_stops_every_machine_and_is_exceeded_by_one_request_of_each_at_most() {
    let limit = 3_000;
    let postgres = capped(limit);
    let sandbox = Sandbox::start().await;
    let mut members = Vec::new();
    for number in 1..4 {
        members.push(Member::with(&sandbox.url(), &postgres, number, WITHOUT_FLOOR).await);
    }
    let round = std::sync::atomic::AtomicU64::new(0);
    within(
        Duration::from_secs(90),
        "every machine to be stopped",
        || async {
            let number = round.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut stopped = 0;
            for (at, member) in members.iter().enumerate() {
                match outcome(member, &format!("machine {at}, {number}")).await {
                    Err(code) if code == "cap_reached" => stopped += 1,
                    Ok(()) => {}
                    // Another one holds what is left, or was asked at the same moment.
                    Err(code) => assert_eq!(code, "cap_busy"),
                }
            }
            (stopped == members.len()).then_some(())
        },
    )
    .await;
    let debits = sandbox.debits().await;
    let amounts = debits
        .iter()
        .filter_map(|debit| debit["amount_micro_usd"].as_u64());
    let dearest = amounts.max().expect("purchases");
    let spent = sandbox.debited().await;
    let bound = limit + 3 * dearest;
    assert!(
        (limit..=bound).contains(&spent),
        "{spent} of {limit}, at most {bound}"
    );
    assert_eq!(sum(&postgres, "granted - given_back"), limit);

    // Each line is counted on its lease, and a higher limit lets them go on.
    for member in &mut members {
        member.stop().await;
    }
    assert_eq!(sum(&postgres, "billed"), spent);
    let spenders = "SELECT count(*) FROM bursar_fleet.leases WHERE billed > 0";
    assert_eq!(postgres.sql(DATABASE, spenders), "3");
    cap(&postgres, 1_000_000);
    let mut again = members.remove(0);
    again.begin().await;
    again.buy("below a higher limit").await;
    again.stop().await;
    assert_eq!(sum(&postgres, "open"), 0, "a stop gives back what is open");
}

/// The month's window began before that of the hour, which has not ended.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_cap_that_gets_a_longer_period_is_spent_on() {
    let postgres = fleet();
    let by_hour = "SELECT bursar_fleet.order_cap('team', 'hour', 'Europe/Berlin', 1000000)";
    assert_eq!(postgres.sql(DATABASE, by_hour), "made");
    let sandbox = Sandbox::start().await;
    let member = Member::with(&sandbox.url(), &postgres, 1, WITHOUT_FLOOR).await;
    member.buy("by hour").await;
    let longer = "SELECT bursar_fleet.order_cap('team', 'month', 'Europe/Berlin', 1000000)";
    assert_eq!(postgres.sql(DATABASE, longer), "changed");
    // The first is 16 of the dearest.
    for number in 0..40 {
        member.buy(&format!("by month, {number}")).await;
    }
    let by_month = "SELECT count(*) FROM bursar_fleet.leases \
                    WHERE billed > 0 AND until - since > interval '2 days'";
    within(Duration::from_secs(60), "spent of the month", || async {
        (postgres.sql(DATABASE, by_month) == "1").then_some(())
    })
    .await;
}

/// Machine and start are the same, so nothing but the database can show that they are two.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_and_its_copy_spend_what_it_held_once_each_and_the_fleet_shows_by_how_much_that_is_over()
 {
    let postgres = capped(1_000_000);
    let origin = pricing_always(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    is_shipped(&postgres, 2).await;
    let held = sum(&postgres, "granted - given_back");
    member.dies().await;
    postgres.end();
    let mut twin = member.twin();
    let mut served = 2;
    for machine in [&mut member, &mut twin] {
        machine.begin().await;
        let more = buy_until(machine, "fleet_cap_unreachable").await;
        assert_eq!(more, held.div_ceil(50) - 2, "what was open, and no more");
        served += more;
        machine.dies().await;
    }

    postgres.begin();
    for machine in [&mut member, &mut twin] {
        machine.begin().await;
    }
    is_shipped(&postgres, i64::try_from(served).expect("few")).await;

    for machine in [&mut member, &mut twin] {
        machine.stop().await;
    }
    assert_eq!(summed(&postgres).1, served * 50);
    let over = "SELECT over_micro_usd FROM bursar_fleet.over";
    let over: u64 = postgres.sql(DATABASE, over).parse().expect("one lease");
    assert_eq!(over, served * 50 - held);
    assert_eq!(sum(&postgres, "open"), 0);
    let copies = "SELECT count(*) FROM bursar_fleet.fleet WHERE copy_of IS NOT NULL";
    assert_eq!(postgres.sql(DATABASE, copies), "1");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_without_its_database_spends_what_it_holds_also_after_a_kill_and_then_nothing() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    price(&origin, 50, 60);
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    let held = sum(&postgres, "granted - given_back");
    assert!((150..1_200).contains(&held), "a slice: {held}");
    postgres.end();
    member.buy("nobody waits for the database").await;
    member.dies().await;
    member.begin().await;
    let served = 3 + buy_until(&member, "fleet_cap_unreachable").await;
    assert_eq!(
        served,
        held.div_ceil(50),
        "what was leased, and one request that began below it"
    );
    let bursar = member.state_dir();
    let caps = command(&["caps", "--state-dir", bursar.to_str().expect("UTF-8")])
        .output()
        .await
        .expect("it runs");
    let shown = String::from_utf8_lossy(&caps.stdout).into_owned();
    assert!(shown.contains("team") && shown.contains("away"), "{shown}");
    let page = member.daemon().admin_page("/metrics").await.text();
    for line in [
        format!("bursar_fleet_lease_usd{{cap=\"team\"}} 0.{held:06}"),
        "bursar_fleet_lease_open_usd{cap=\"team\"} 0.000000".to_owned(),
    ] {
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }

    postgres.begin();
    eventually("more to be leased", || async {
        outcome(&member, "the database is back").await.ok()
    })
    .await;
    member.stop().await;
    assert_eq!(sum(&postgres, "open"), 0, "what is not needed is others'");
}

/// A request that finds nothing left waits a while for the database and is then refused. No other waits for it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn beside_a_database_that_hangs_a_machine_spends_what_it_holds_and_then_refuses() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    price(&origin, 50, 60);
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    let held = sum(&postgres, "granted - given_back");
    postgres.hang();
    member.buy("of what is leased").await;
    let mut served = 3;
    let (refusal, waited) = loop {
        let began = Instant::now();
        match outcome(&member, &format!("until it ends, {served}")).await {
            Ok(()) => served += 1,
            Err(code) => break (code, began.elapsed()),
        }
    };
    assert_eq!(refusal, "cap_busy");
    // A call to the database may take 5 s.
    let stated = Duration::from_millis(1_900)..Duration::from_millis(4_500);
    assert!(stated.contains(&waited), "2 s at most: {waited:?}");
    assert_eq!(served, held.div_ceil(50));
    let served_then = buy_until(&member, "fleet_cap_unreachable").await;
    assert_eq!(served_then, 0, "the call was given up");

    postgres.go_on();
    eventually("more to be leased", || async {
        outcome(&member, "the database goes on").await.ok()
    })
    .await;
    // At most once of lines and once of leases, however many requests were refused.
    let logged = member.logged("did not answer within");
    assert!(logged <= 2, "{logged} lines");
    member.stop().await;
    assert_eq!(sum(&postgres, "open"), 0);
    assert_eq!(
        summed(&postgres).0,
        i64::try_from(served + 1).expect("a count")
    );
}

/// The tail of its journal is on no other disk.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_ephemeral_machine_ships_all_and_returns_its_leases_when_it_stops() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let lines = format!("ship_interval_s = 3600\nephemeral = true\n{WITHOUT_FLOOR}");
    let url = postgres.url("node", DATABASE);
    let mut member = Member::at(&origin.url(), &url, 1, &lines).await;
    // The first visit ships what there is by then; what comes later waits for its hour.
    let mut served = 0_u32;
    while served < 5 || summed(&postgres).0 >= i64::from(served) {
        match outcome(&member, &format!("request {served}")).await {
            Ok(()) => served += 1,
            Err(code) => assert_eq!(code, "cap_busy"),
        }
        assert!(served < 40, "everything is shipped at once");
    }
    member.stop().await;
    let billed = u64::from(served) * 50;
    assert_eq!(summed(&postgres), (i64::from(served), billed));
    assert_eq!(sum(&postgres, "open"), 0);
    assert_eq!(sum(&postgres, "granted - given_back"), billed);
    let left = "SELECT gone IS NOT NULL FROM bursar_fleet.fleet";
    assert_eq!(postgres.sql(DATABASE, left), "t", "nobody waits for it");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_cap_that_the_fleet_does_not_have_lets_nothing_through() {
    let postgres = fleet();
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, SHARED).await;
    assert_eq!(buy_until(&member, "fleet_cap_unreachable").await, 0);
    let refused = member.ask("once more").await;
    assert!(refused.text().contains("no cap team"), "{}", refused.text());
    cap(&postgres, 10_000);
    eventually("the cap to be heard", || async {
        outcome(&member, "there is one now").await.ok()
    })
    .await;
    member.stop().await;
    assert!(origin.received().len() < 5);
}

/// As docs/runbook.md advises where a database is away for longer.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_that_obeys_shared_caps_no_longer_keeps_nobody_waiting_after_a_restore() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, SHARED).await;
    member.buy("below the cap").await;
    member.stop().await;
    let config = std::fs::read_to_string(member.config()).expect("it is there");
    std::fs::write(member.config(), config.replace(SHARED, "")).expect("it is written");
    member.begin().await;

    let other = Holder::new(&postgres, 2).await;
    let lease = granted(other.wants(100).await).lease.lease;
    postgres.sql(DATABASE, "DELETE FROM bursar_fleet.leases");
    assert!(other.hold(&[lease]).await.is_paused);
    let pause = "SELECT awaited FROM bursar_fleet.pause";
    eventually("the machine to say that it holds nothing", || async {
        postgres.sql(DATABASE, pause).is_empty().then_some(())
    })
    .await;
    granted(other.wants(100).await);
    member.stop().await;
}

/// Buys once, as soon as there is a lease to spend.
async fn buys(member: &Member, prompt: &str) {
    eventually("a lease to spend", || async {
        match outcome(member, prompt).await {
            Ok(()) => Some(()),
            Err(code) => {
                assert!(
                    ["cap_busy", "fleet_cap_unreachable"].contains(&&*code),
                    "{code}"
                );
                None
            }
        }
    })
    .await;
}

/// By the steps of docs/fleet.md: no machine reaches the database before all of it is there again.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn machines_that_run_bring_their_lines_and_leases_to_the_database_that_is_restored_below_them()
 {
    let postgres = capped(1_000_000);
    let sandbox = Sandbox::start().await;
    let mut members = Vec::new();
    for number in 1..4 {
        members.push(Member::with(&sandbox.url(), &postgres, number, WITHOUT_FLOOR).await);
    }
    for (at, member) in members.iter().enumerate() {
        buys(member, &format!("machine {at}, before the backup")).await;
    }
    is_shipped(&postgres, 3).await;
    let backup = postgres.backup(DATABASE);
    for (at, member) in members.iter().enumerate() {
        for round in 0..3 {
            buys(member, &format!("machine {at}, round {round}")).await;
        }
    }
    is_shipped(&postgres, 12).await;
    let epoch = "SELECT epoch FROM bursar_fleet.about";
    assert_eq!(postgres.sql(DATABASE, epoch), "0");

    // One of them is away when it happens.
    members[2].dies().await;
    postgres.sql("postgres", "ALTER ROLE node NOLOGIN");
    postgres.restore(DATABASE, &backup);
    postgres.sql(DATABASE, schema::SQL);
    assert_eq!(summed(&postgres).0, 3, "it forgot the rest");
    buys(&members[0], "while no machine reaches the database").await;
    postgres.sql("postgres", "ALTER ROLE node LOGIN");
    members[2].begin().await;

    is_shipped(&postgres, 13).await;
    let pause = "SELECT awaited FROM bursar_fleet.pause";
    eventually("grants to go on", || async {
        postgres.sql(DATABASE, pause).is_empty().then_some(())
    })
    .await;
    assert_ne!(postgres.sql(DATABASE, epoch), "0", "it was noticed");
    let put_back = "SELECT coalesce(sum(put_back_micro_usd), 0) > 0 FROM bursar_fleet.caps_now";
    assert_eq!(postgres.sql(DATABASE, put_back), "t");
    for (at, member) in members.iter().enumerate() {
        buys(member, &format!("machine {at}, behind the restore")).await;
    }
    for member in &mut members {
        member.stop().await;
    }
    let spent = sandbox.debited().await;
    let journals: u64 = members.iter().map(Member::billed).sum();
    assert_eq!(summed(&postgres), (16, spent));
    assert_eq!(journals, spent);
    assert_eq!(
        sum(&postgres, "billed"),
        spent,
        "each on the lease that it spent"
    );
    assert_eq!(sum(&postgres, "open"), 0);
    let over = "SELECT count(*) FROM bursar_fleet.over";
    assert_eq!(postgres.sql(DATABASE, over), "0");
}

/// Calls about leases fail as they do where another transaction keeps a row that they need.
pub(super) const LOCKED: &str = "CREATE OR REPLACE FUNCTION bursar_fleet.must_read_committed() RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = '55P03'; END $$";

async fn is_troubled(member: &Member, by: &str) {
    eventually(by, || async {
        let status = member.daemon().admin_page("/api/status").await;
        let status: serde_json::Value = serde_json::from_str(&status.text()).ok()?;
        let trouble = status["fleet"]["trouble"].as_str().unwrap_or_default();
        trouble.contains(by).then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_are_shipped_while_nothing_can_be_leased() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["the first, of no known price", "the second"] {
        member.buy(prompt).await;
    }
    is_shipped(&postgres, 2).await;
    postgres.sql(DATABASE, LOCKED);
    is_troubled(&member, "shared caps cannot be leased").await;
    member.buy("of what is leased").await;
    is_shipped(&postgres, 3).await;
    member.stop().await;
}

/// It is known as a copy, and its new name is refused: a thousand came before it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_that_knows_that_it_is_a_copy_spends_nothing_of_the_originals_leases() {
    let postgres = capped(1_000_000);
    let origin = pricing(50).await;
    let mut member = Member::with(&origin.url(), &postgres, 1, WITHOUT_FLOOR).await;
    for prompt in ["one", "two"] {
        member.buy(prompt).await;
    }
    is_shipped(&postgres, 2).await;
    assert!(sum(&postgres, "open") >= 50, "there is more to spend");
    let others = "INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar, copy_of, copied_up_to, family)
        SELECT gen_random_uuid(), sha256('x'), 'h', 'b', id, 0, family FROM bursar_fleet.ledgers, generate_series(1, 1000)";
    postgres.sql(DATABASE, others);
    let original =
        "UPDATE bursar_fleet.ledgers SET mark_chain = sha256('another line') WHERE copy_of IS NULL";
    postgres.sql(DATABASE, original);
    is_troubled(&member, "1000 copies").await;
    let refused = outcome(&member, "of the original's").await;
    assert_eq!(refused, Err("fleet_cap_unreachable".to_owned()));
    member.stop().await;
}
