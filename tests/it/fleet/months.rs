//! Old months: their lines leave the table, and no sum changes.

use super::commands::Person;
use super::{
    DATABASE, Fleet, Shipping, buy, connect, copied, fleet, joined, lose_lines, price, pricing,
    pricing_always, ship, state_in,
};
use uuid::Uuid;

use crate::support::Bursar;
use crate::support::postgres::Postgres;

/// All that a reader sees, in hours.
const SEEN: [&str; 5] = [
    "SELECT host, ledger, date_trunc('hour', started), app, lane, operation, served_by, state, sum(requests), \
     sum(billed_micro_usd) FROM bursar_fleet.changes GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 \
     HAVING sum(requests) <> 0 OR sum(billed_micro_usd) <> 0 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8",
    "SELECT * FROM bursar_fleet.anomalies ORDER BY key_value, started",
    "SELECT ledger, mark_seq, losses, lines_behind FROM bursar_fleet.fleet ORDER BY ledger",
    "SELECT ledger, started FROM bursar_fleet.under_way ORDER BY started, ledger",
    "SELECT * FROM bursar_fleet.cap_windows ORDER BY cap, since, ledger",
];

/// Lines of January to March 2025: number, ledger, kind, entry, the hour of the year in which it began, and when it came.
fn say(postgres: &Postgres, lines: &str) {
    let months = "SET ROLE bursar_fleet_owner;
        SELECT bursar_fleet.month_partition('2025-01-01'), bursar_fleet.month_partition('2025-02-01'),
            bursar_fleet.month_partition('2025-03-01');";
    let sql = format!(
        "{months} INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, entry, started)
            SELECT md5(ledger)::uuid, seq, seq, came::timestamptz, '', kind, md5(entry)::uuid,
                timestamptz '2025-01-01 00:00Z' + began * interval '1 hour'
            FROM (VALUES {lines}) AS said (seq, ledger, kind, entry, began, came)"
    );
    postgres.sql(DATABASE, &sql);
}

/// The requests that are under way: their ledgers (`a` and `b`), and the hours in which they began.
fn under_way(postgres: &Postgres) -> String {
    let sql = "SELECT CASE ledger WHEN md5('a')::uuid THEN 'a' WHEN md5('b')::uuid THEN 'b' END,
            to_char(started AT TIME ZONE 'UTC', 'HH24')
        FROM bursar_fleet.under_way ORDER BY started";
    postgres.sql(DATABASE, sql).replace('\n', " ")
}

fn kept_under_way(postgres: &Postgres) -> String {
    let sql = "SELECT count(*), count(*) FILTER (WHERE has_ended) FROM bursar_fleet.kept_under_way";
    postgres.sql(DATABASE, sql)
}

fn seen(postgres: &Postgres) -> Vec<String> {
    let asked = SEEN.iter().map(|sql| postgres.sql(DATABASE, sql));
    asked.collect()
}

/// All lines are of January 2025 from now on, batch by batch.
fn age(postgres: &Postgres) {
    postgres.sql(
        DATABASE,
        "SELECT bursar_fleet.month_partition('2025-01-01');
         UPDATE bursar_fleet.lines SET received = timestamptz '2025-01-15 12:00Z' + (received - now())",
    );
}

fn detached(postgres: &Postgres, month: &str) -> String {
    let sql = format!("SELECT bursar_fleet.detach_month('{month}')");
    let done = postgres.try_sql("operator", DATABASE, &sql);
    let said = match done.status.success() {
        true => done.stdout,
        false => done.stderr,
    };
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// A second ledger with the same lines, let in by a schema that did not compare the first ones.
async fn counted_twice(postgres: &Postgres, database: &Fleet, bursar: &Bursar) -> Uuid {
    let folder = tempfile::tempdir().expect("a directory");
    let other = state_in(&folder);
    let journal = "journal/00000001.jsonl";
    std::fs::copy(bursar.state_dir().join(journal), other.join(journal)).expect("it is copied");
    let mut second = joined(database, &other, 2).await;
    postgres.sql(
        DATABASE,
        "UPDATE bursar_fleet.ledgers SET first_chain = NULL",
    );
    ship(database, &mut second).await;
    second.identity().ledger
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_month_that_is_detached_leaves_every_sum_loss_and_anomaly_as_it_was() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    for prompt in ["a", "b", "c"] {
        buy(&bursar, prompt).await;
    }
    lose_lines(&bursar, 3..=4);
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    ship(&database, &mut shipping).await;
    // A second ledger with the same keys: what both have was billed once.
    let second = counted_twice(&postgres, &database, &bursar).await;
    let late = format!(
        "UPDATE bursar_fleet.lines SET kind = 'reconciled', was = 'in_doubt' WHERE ledger = '{}' AND seq = 6",
        second
    );
    postgres.sql(DATABASE, &late);
    let open = format!(
        "INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, entry, started)
            SELECT ledger, 7, 7, received, '', 'intent', gen_random_uuid(), started
            FROM bursar_fleet.lines WHERE ledger = '{second}' AND seq = 5"
    );
    postgres.sql(DATABASE, &open);
    postgres.sql(
        DATABASE,
        "INSERT INTO bursar_fleet.leases (ledger, cap, since, until, granted, given_back, billed)
            SELECT id, 'team', '2025-01-15', '2025-01-16', 100, 40, 70 FROM bursar_fleet.ledgers",
    );
    age(&postgres);
    let before = seen(&postgres);
    let shows_something = [1, 3, 4].iter().all(|at| !before[*at].is_empty());
    assert!(shows_something, "the test would show nothing");

    assert_eq!(detached(&postgres, "2025-01-20"), "11");

    assert_eq!(seen(&postgres), before);
    let left = "SELECT (SELECT count(*) FROM bursar_fleet.lines), (SELECT count(*) FROM bursar_fleet.lines_2025_01)";
    assert_eq!(postgres.sql(DATABASE, left), "0|11");
    assert_eq!(
        detached(&postgres, "2025-01-20"),
        "",
        "it is not there any more"
    );
    // The administrator drops it, and the schema is set up again.
    postgres.sql(DATABASE, "DROP TABLE bursar_fleet.lines_2025_01");
    postgres.sql(DATABASE, bursar::fleet::schema::SQL);
    assert_eq!(seen(&postgres), before);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_goes_on_behind_a_detached_month_and_a_copy_of_it_finds_what_they_share() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    for prompt in ["1", "2"] {
        buy(&bursar, prompt).await;
        ship(&database, &mut shipping).await;
    }
    let backup = copied(&bursar.state_dir());
    price(&origin, 5, 8);
    buy(&bursar, "3").await;
    ship(&database, &mut shipping).await;
    age(&postgres);
    assert_eq!(detached(&postgres, "2025-01-01"), "6");

    buy(&bursar, "4").await;
    let shipped = ship(&database, &mut shipping).await;
    assert_eq!((shipped.lines, shipped.forked), (2, false));
    let clone = Bursar::on(backup, &origin.url()).await;
    buy(&clone, "the copy's").await;
    let mut cloned: Shipping = joined(&database, &clone.state_dir(), 2).await;
    let shipped = ship(&database, &mut cloned).await;
    assert!(shipped.forked);
    assert_eq!(super::summed(&postgres), (5, 25), "4, and the copy's one");
}

/// Two copies with lines that the original never had. Of the month in which one of them shipped these, the ends of its batches
/// are left.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn copies_find_behind_a_detached_month_what_they_have_in_common_with_each_other() {
    let postgres = fleet();
    let origin = pricing_always(5).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    buy(&original, "before").await;
    ship(&database, &mut of_original).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&copy, "of the copies").await;
    let image = copied(&copy.state_dir());
    let mut of_copy = joined(&database, &image.path().join("state"), 2).await;
    buy(&original, "the original's").await;
    ship(&database, &mut of_original).await;
    assert!(ship(&database, &mut of_copy).await.forked);
    age(&postgres);
    assert_ne!(detached(&postgres, "2025-01-01"), "");

    buy(&copy, "the other copy's").await;
    let mut of_other = joined(&database, &copy.state_dir(), 3).await;
    assert!(ship(&database, &mut of_other).await.forked);
    assert_eq!(super::summed(&postgres), (4, 20));
}

/// Its batches were of another length, so each of the other ledger's has an end of one in its midst.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_that_a_code_lets_in_passes_over_what_a_detached_month_had_of_it() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    for number in 0..700 {
        buy(&original, &format!("number {number}")).await;
        if number % 35 == 34 {
            ship(&database, &mut of_original).await;
        }
    }
    age(&postgres);
    assert_eq!(detached(&postgres, "2025-01-01"), "1400");

    let copy = copied(&original.state_dir());
    std::fs::remove_file(copy.path().join("state/fleet.json")).expect("it was there");
    let copy = Bursar::on(copy, &origin.url()).await;
    buy(&copy, "the copy's").await;
    let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
    let shipped = ship(&database, &mut of_copy).await;
    assert_eq!(shipped.mark_seq, shipped.journal_seq);
    assert_eq!(super::summed(&postgres), (701, 701));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_month_whose_lines_may_still_be_asked_for_is_not_detached() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    buy(&bursar, "1").await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    ship(&database, &mut shipping).await;
    let month = postgres.sql(DATABASE, "SELECT now()::date");
    let refused = detached(&postgres, &month);
    assert!(refused.contains("did not end 35 days ago"), "{refused}");
    assert_eq!(detached(&postgres, "2020-05-05"), "", "there is none");
    assert_eq!(
        postgres.sql(DATABASE, "SELECT count(*) FROM bursar_fleet.lines"),
        "2"
    );
}

/// The service keeps a key for a day. What was counted twice or lost long ago explains nothing of today.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_difference_is_explained_by_what_was_counted_twice_or_lost_in_its_own_period() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "on two ledgers").await;
    ship(&database, &mut shipping).await;
    let second = counted_twice(&postgres, &database, &bursar).await;
    let lost = "INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, why, kind)
        SELECT ledger, 90, 99, max(received), '', 'lost', 'lost' FROM bursar_fleet.lines GROUP BY ledger";
    postgres.sql(DATABASE, lost);
    let reader = Person::new(&postgres, "reader");
    let against = async |billed: &str, period: &[&str]| {
        let figure = ["reconcile", "--fleet", "--json", "--billed-usd", billed];
        let done = reader.gives(&[&figure, period].concat()).await;
        let said: serde_json::Value = serde_json::from_str(&done.out).expect("a document");
        let parts = ["conclusion", "losses", "counted_twice_micro_usd"];
        parts.map(|part| said[part].to_string()).join(" ")
    };
    // Not as if they were there, and to be waited for.
    let away = "UPDATE bursar_fleet.ledgers SET heard = heard - interval '10 minutes'";
    postgres.sql(DATABASE, away);
    let day = ["--since", "24h"];
    assert_eq!(against("0.000011", &day).await, r#""explained" 2 11"#);
    assert_eq!(against("0.000030", &day).await, r#""explained" 2 11"#);
    let spend = ["spend", "--fleet", "--since", "24h"];
    let said = reader.document(&spend).await;
    assert_eq!(
        (&said["losses"], &said["counted_twice_micro_usd"]),
        (&2.into(), &11.into()),
        "{said}"
    );
    let said = reader.gives(&spend).await.out;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "2 ranges are lost: what that cost is not in the sum.",
        "$0.000011 of it are of keys with an amount on two machines",
    ] {
        assert!(said.contains(part), "{said}");
    }

    let moved = "SELECT bursar_fleet.month_partition(date_trunc('month', now() AT TIME ZONE 'UTC' - interval '60 days')::date);
        UPDATE bursar_fleet.lines SET received = received - interval '60 days', started = started - interval '60 days'";
    postgres.sql(DATABASE, moved);
    buy(&bursar, "today").await;
    ship(&database, &mut shipping).await;
    postgres.sql(DATABASE, away);
    // An hour that is over, with nothing near its ends, and every machine was heard since.
    let hour = ["--since", "27h", "--until", "26h"];
    assert_eq!(against("0.000006", &hour).await, r#""unexplained" 0 0"#);
    assert_eq!(against("0.000011", &day).await, r#""equal" 0 0"#);
    let said = reader.gives(&spend).await.out;
    let is_exact = !said.contains("lost") && !said.contains("billed once");
    assert!(is_exact, "{said}");

    let anomalies = "SELECT counted_twice_micro_usd FROM bursar_fleet.anomalies";
    assert_eq!(postgres.sql(DATABASE, anomalies), "11");
    let later =
        "UPDATE bursar_fleet.lines SET started = started + interval '25 hours' WHERE ledger = ";
    postgres.sql(DATABASE, &format!("{later}'{second}'"));
    assert_eq!(postgres.sql(DATABASE, anomalies), "");
    // A third one that is near to one of them is one with that, however far the other is.
    let third = "INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar, family)
            SELECT '00000000-0000-4000-8000-000000000003', secret_sha256, 'third', bursar, family
            FROM bursar_fleet.ledgers LIMIT 1;
        INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, started, billed_micro_usd, key_value)
            SELECT '00000000-0000-4000-8000-000000000003', seq, seq, received, chain, kind, started + interval '10 hours',
                billed_micro_usd, key_value
            FROM bursar_fleet.lines WHERE key_value IS NOT NULL AND billed_micro_usd > 0 AND ledger = ";
    postgres.sql(DATABASE, &format!("{third}'{second}'"));
    let ledgers = "SELECT max(ledgers) FROM bursar_fleet.anomalies";
    assert_eq!(postgres.sql(DATABASE, ledgers), "2");
}

/// With `ship_people` an app's own keys are here, too, and it may use one anew each day.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_key_that_is_used_anew_is_counted_twice_on_each_day_that_two_ledgers_use_it() {
    let postgres = fleet();
    // From the 15th on a second ledger uses it, too. A minted key is on three, one before the end of January.
    let uses = "SET ROLE bursar_fleet_owner;
        SELECT bursar_fleet.month_partition('2025-01-01'), bursar_fleet.month_partition('2025-02-01');
        INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, started, billed_micro_usd, key_value)
            SELECT md5(ledger)::uuid, row_number() OVER (), row_number() OVER (), at, '', 'outcome', at, billed, key
            FROM (SELECT 'a' AS ledger, at, 5 AS billed, 'own' AS key
                    FROM generate_series(timestamptz '2025-01-01 08:00Z', '2025-02-09 08:00Z', '24 hours') AS at
                UNION ALL
                SELECT 'b', at, 5, 'own'
                    FROM generate_series(timestamptz '2025-01-15 09:00Z', '2025-02-09 09:00Z', '24 hours') AS at
                UNION ALL
                VALUES ('a', timestamptz '2025-01-31 23:59Z', 7, 'minted'), ('b', '2025-02-01 00:01Z', 7, 'minted'),
                    ('c', '2025-02-01 00:02Z', 7, 'minted'), ('a', '2025-01-03 10:00Z', 1, 'of one')) AS used";
    postgres.sql(DATABASE, uses);
    let listed = || {
        let sql = "SELECT key_value, count(*), count(DISTINCT started), sum(counted_twice_micro_usd), max(ledgers),
                to_char(min(started) AT TIME ZONE 'UTC', 'MM-DD HH24:MI')
            FROM bursar_fleet.anomalies GROUP BY key_value ORDER BY key_value";
        postgres.sql(DATABASE, sql)
    };
    let minted = "minted|1|1|14|3|02-01 00:02";
    let wanted = format!("{minted}\nown|26|26|130|2|01-15 09:00");
    assert_eq!(listed(), wanted);
    // What is kept of a day and what is left of it are not added.
    for (month, lines) in [("2025-01-01", "50"), ("2025-02-01", "20")] {
        assert_eq!(detached(&postgres, month), lines);
        assert_eq!(listed(), wanted, "{month}");
    }
    // An older version of the schema kept one row of a key.
    let older = "DROP VIEW bursar_fleet.anomalies, bursar_fleet.key_days;
        DELETE FROM bursar_fleet.kept_anomalies WHERE key_value = 'own' AND started < '2025-02-09 00:00Z';
        ALTER TABLE bursar_fleet.kept_anomalies DROP COLUMN began, ADD PRIMARY KEY (key_value)";
    postgres.sql(DATABASE, older);
    for _ in 0..2 {
        postgres.sql(DATABASE, bursar::fleet::schema::SQL);
        let wanted = format!("{minted}\nown|1|1|5|2|02-09 09:00");
        assert_eq!(listed(), wanted);
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_request_is_under_way_until_any_ledger_has_its_end() {
    let postgres = fleet();
    let lines = "SET ROLE bursar_fleet_owner;
        SELECT bursar_fleet.month_partition('2025-01-01');
        INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind, entry, started)
            SELECT md5(ledger)::uuid, row_number() OVER (), row_number() OVER (), '2025-01-02', '', kind, md5(entry)::uuid,
                timestamptz '2025-01-01 00:00Z' + at * interval '1 hour'
            FROM (VALUES ('a', 'intent', 'ended', 1), ('a', 'outcome', 'ended', 1),
                ('a', 'intent', 'by its copy', 2), ('b', 'crashed', 'by its copy', 2),
                ('a', 'intent', 'withdrawn', 3), ('a', 'withdrawn', 'withdrawn', 3),
                ('b', 'intent', 'under way', 4), ('b', 'note', 'under way', 4),
                ('b', 'outcome', 'whose beginning is not here', 5)) AS said (ledger, kind, entry, at)";
    postgres.sql(DATABASE, lines);
    assert_eq!(under_way(&postgres), "b|04");
}

/// The end may come in a later month, also after the beginning's month was detached.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_request_of_a_detached_month_stays_under_way_until_its_end_comes() {
    let postgres = fleet();
    say(
        &postgres,
        "(1, 'a', 'intent', 'without an end', 1, '2025-01-05 12:00Z'),
        (2, 'a', 'intent', 'ended in its month', 2, '2025-01-05 12:00Z'),
        (3, 'a', 'outcome', 'ended in its month', 2, '2025-01-05 12:00Z'),
        (4, 'a', 'intent', 'ended in the next month', 3, '2025-01-31 12:00Z'),
        (5, 'a', 'outcome', 'ended in the next month', 3, '2025-02-01 12:00Z'),
        (6, 'a', 'intent', 'ends later', 4, '2025-01-31 12:00Z'),
        (1, 'b', 'intent', 'of February', 5, '2025-02-05 12:00Z')",
    );
    assert_eq!(under_way(&postgres), "a|01 a|04 b|05");
    let before = seen(&postgres);
    assert_eq!(detached(&postgres, "2025-01-01"), "5");
    assert_eq!(seen(&postgres), before);
    assert_eq!(kept_under_way(&postgres), "3|0");

    // One of them by a copy.
    say(
        &postgres,
        "(2, 'b', 'crashed', 'ends later', 4, '2025-03-05 12:00Z'),
        (3, 'b', 'outcome', 'of February', 5, '2025-03-05 12:00Z')",
    );
    assert_eq!(under_way(&postgres), "a|01");
    for (month, lines, kept) in [("2025-02-01", "2", "3|0"), ("2025-03-01", "2", "1|0")] {
        assert_eq!(detached(&postgres, month), lines);
        assert_eq!(under_way(&postgres), "a|01", "{month}");
        assert_eq!(kept_under_way(&postgres), kept, "{month}");
    }
    // The schema is set up again.
    postgres.sql(DATABASE, bursar::fleet::schema::SQL);
    assert_eq!(under_way(&postgres), "a|01");
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_request_that_has_ended_is_not_under_way_whichever_month_is_detached_first() {
    for months in [["01", "02", "03"], ["03", "02", "01"], ["02", "03", "01"]] {
        let postgres = fleet();
        say(
            &postgres,
            "(1, 'a', 'intent', 'without an end', 1, '2025-01-05 12:00Z'),
            (2, 'a', 'intent', 'ended in February', 2, '2025-01-05 12:00Z'),
            (3, 'a', 'intent', 'ended in March', 3, '2025-01-05 12:00Z'),
            (4, 'a', 'withdrawn', 'ended in February', 2, '2025-02-05 12:00Z'),
            (5, 'a', 'intent', 'of February', 4, '2025-02-05 12:00Z'),
            (6, 'a', 'outcome', 'of February', 4, '2025-03-05 12:00Z'),
            (7, 'a', 'outcome', 'ended in March', 3, '2025-03-05 12:00Z')",
        );
        for month in months {
            let lines = if month == "01" { "3" } else { "2" };
            assert_eq!(detached(&postgres, &format!("2025-{month}-01")), lines);
            assert_eq!(under_way(&postgres), "a|01", "{months:?}: {month}");
        }
        assert_eq!(kept_under_way(&postgres), "1|0", "{months:?}");
    }
}
