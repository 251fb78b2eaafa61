//! The fleet's sums are the ledger's: per app, lane, operation, state and hour, also when evidence comes late.

use std::collections::BTreeMap;

use bursar::ledger::entry::State;
use serde_json::Value;

use super::commands::Person;
use super::{DATABASE, connect, fleet, joined, ship};
use crate::support::origin::{billed, json};
use crate::support::postgres::Postgres;
use crate::support::{Bursar, Origin, Step, chat};

/// App, lane, operation, state and the hour of the start; requests and micro-dollars.
type Sums = BTreeMap<[String; 5], (i64, u64)>;

const ONCE: &str = "[retry]\nattempts = 1\n";
const START: &str = r#"{"eval_set_id":"e1","candidate_model_ids":["auto"]}"#;
const HOUR_MS: u64 = 60 * 60 * 1_000;

fn of_ledger(bursar: &Bursar) -> Sums {
    let mut sums = Sums::new();
    for entry in bursar.entries() {
        let hour = entry.at_ms - entry.at_ms % HOUR_MS;
        let cell = [
            entry.app.to_string(),
            entry.lane.as_str().to_owned(),
            entry.operation.as_str().to_owned(),
            entry.state.word().to_string(),
            hour.to_string(),
        ];
        let (requests, micro_usd) = sums.entry(cell).or_default();
        *requests += 1;
        *micro_usd += entry.state.billed().map_or(0, |billed| billed.get());
    }
    sums
}

fn of_fleet(postgres: &Postgres) -> Sums {
    let rows = postgres.sql(
        DATABASE,
        "SELECT app, lane, operation, state, (extract(epoch FROM date_trunc('hour', started)) * 1000)::bigint, \
             sum(requests), sum(billed_micro_usd) \
         FROM bursar_fleet.changes GROUP BY 1, 2, 3, 4, 5 HAVING sum(requests) <> 0 OR sum(billed_micro_usd) <> 0",
    );
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let [app, lane, operation, state, hour, requests, micro_usd] = cells[..] else {
            panic!("{line}");
        };
        let cell = [app, lane, operation, state, hour].map(str::to_owned);
        let figures = (
            requests.parse().expect("a count"),
            micro_usd.parse().expect("a sum"),
        );
        (cell, figures)
    };
    rows.lines().map(row).collect()
}

fn is_in(state: State, sums: &Sums) -> bool {
    sums.keys().any(|cell| cell[3] == state.word().to_string())
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn evidence_that_comes_behind_a_batch_moves_an_entry_in_the_fleet_as_in_the_ledger() {
    let postgres = fleet();
    let run = r#"{"run":{"id":"r1","status":"completed","cost_micro_usd":1234},"results":[]}"#;
    let origin = Origin::start([
        Step::Answer(billed(7)),
        Step::Answer(json(200, &[], r#"{"run_id":"r1","status":"queued"}"#)),
        Step::Close,
        Step::Answer(json(422, &[], r#"{"detail":"no"}"#)),
    ])
    .await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    let chat_of = |prompt| ("/v1/chat/completions", chat(prompt));
    let asked = [
        chat_of("settled"),
        ("/v1/eval-runs", START.to_owned()),
        chat_of("in doubt"),
        chat_of("refused"),
    ];
    for (path, body) in &asked {
        bursar.post(path, body).await;
    }
    bursar.settled(4).await;
    ship(&database, &mut shipping).await;
    let early = of_ledger(&bursar);
    assert!(
        is_in(State::Unreported, &early),
        "the test would show nothing: {early:?}"
    );
    assert_eq!(of_fleet(&postgres), early);

    // The run reports its price, and the repeat of what is in doubt its key's.
    origin.push(Step::Answer(json(200, &[], run)));
    let polled = bursar.connect().await.get("/v1/eval-runs/r1").await;
    assert_eq!(polled.status, 200);
    origin.push(Step::Answer(billed(9)));
    bursar.post("/v1/chat/completions", &chat("in doubt")).await;
    bursar.settled(5).await;
    ship(&database, &mut shipping).await;

    let late = of_ledger(&bursar);
    let reconciled = bursar.entries();
    let reconciled = reconciled
        .iter()
        .filter(|entry| matches!(entry.state, State::Reconciled { .. }));
    let amounts: Vec<u64> = reconciled
        .filter_map(|entry| Some(entry.state.billed()?.get()))
        .collect();
    assert_eq!(amounts, [1234, 0], "the test would show nothing");
    assert!(!is_in(State::Unreported, &late));
    assert_eq!(of_fleet(&postgres), late);
    assert_eq!(bursar.billed(), 7 + 1234 + 9);
}

/// The clocks of Berlin go back by an hour, those of Lord Howe by half of one, those of Troll by two.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_hour_that_the_clocks_go_through_twice_has_two_rows_as_of_one_ledger() {
    let postgres = fleet();
    let lines = "SET ROLE bursar_fleet_owner;
        SELECT bursar_fleet.month_partition('2025-11-01');
        INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar)
            VALUES (md5('a')::uuid, sha256('a'), 'a', '0');
        INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, state, started, requests)
            SELECT md5('a')::uuid, number, number, '2025-11-05', '', 'outcome', 'settled', started, 1
            FROM unnest(ARRAY['2025-10-26 00:30Z', '2025-10-26 01:30Z', '2025-10-26 02:30Z', '2025-04-05 14:45Z',
                '2025-04-05 15:15Z', '2025-10-26 00:45Z']::timestamptz[]) WITH ORDINALITY AS began (started, number)";
    postgres.sql(DATABASE, lines);
    let reader = Person::new(&postgres, "reader");
    let by_hour = async |zone| {
        let words = ["spend", "--fleet", "--by", "hour", "--since", "2025-01-01"];
        reader
            .gives(&[&words[..], &["--json", "--tz", zone]].concat())
            .await
    };
    let april = [("2025-04-05 16:00", 1), ("2025-04-05 17:00", 1)];
    let autumn = [
        ("2025-10-26 02:00", 2),
        ("2025-10-26 02:00+01", 1),
        ("2025-10-26 03:00", 1),
    ];
    let berlin = [&april[..], &autumn[..]].concat();
    let lord_howe = [
        ("2025-04-06 01:00", 1),
        ("2025-04-06 01:00+10:30", 1),
        ("2025-10-26 11:00", 2),
        ("2025-10-26 12:00", 1),
        ("2025-10-26 13:00", 1),
    ];
    let troll = [
        ("2025-04-05 16:00", 1),
        ("2025-04-05 17:00", 1),
        ("2025-10-26 01:00+00", 1),
        ("2025-10-26 02:00", 2),
        ("2025-10-26 02:00+00", 1),
    ];
    for (zone, wanted) in [
        ("Antarctica/Troll", &troll[..]),
        ("Europe/Berlin", &berlin[..]),
        ("Australia/Lord_Howe", &lord_howe[..]),
    ] {
        let seen = by_hour(zone).await;
        let seen: Value = serde_json::from_str(&seen.out).expect("a document");
        let rows = seen["rows"].as_array().expect("rows");
        let rows: Vec<_> = rows
            .iter()
            .filter_map(|row| Some((row["hour"].as_str()?, row["requests"].as_i64()?)))
            .collect();
        assert_eq!(rows, wanted, "{zone}");
    }
    // Half the year it would be an hour off.
    let refused = by_hour("CET").await;
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("Europe/Paris"), "{}", refused.err);
}
