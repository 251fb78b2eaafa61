//! The books of a fleet in a real PostgreSQL: a line counts once, whatever is sent again, copied or restored, and a
//! bursar without its database serves as before.

mod ceilings;
mod clocks;
mod commands;
mod compacted;
mod copies;
mod demo;
mod encrypted;
mod files;
mod giving_back;
mod hints;
mod holder;
mod lacking;
mod leases;
mod leaving;
mod likeness;
mod load;
mod locks;
mod months;
mod outages;
mod paused;
mod people;
mod pooled;
mod restored;
mod rights;
mod secret;
mod seeded;
mod serving;
mod shared_caps;
mod sharing;
mod shipping_rules;
mod sums;
mod system;
mod upgrade;
mod windows;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bursar::clock::SystemClock;
use bursar::fleet::{Address, Fleet, Shipped, Shipping, Trouble};
use tempfile::TempDir;

use crate::support::origin;
use crate::support::postgres::Postgres;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, chat, eventually};

const DATABASE: &str = "fleet";
const CODE: &str = "a-code-for-one-ledger-";

/// A database with codes `a-code-for-one-ledger-1` to `-9`.
fn fleet() -> Postgres {
    let postgres = Postgres::start();
    postgres.fleet(DATABASE);
    for number in 1..10 {
        postgres.sql(
            DATABASE,
            &format!("SELECT bursar_fleet.invite('{CODE}{number}', NULL)"),
        );
    }
    postgres
}

async fn connect(postgres: &Postgres) -> Fleet {
    connect_to(&postgres.url("node", DATABASE)).await
}

async fn connect_to(url: &str) -> Fleet {
    let address = Address::parse(url, false, None).expect("an address");
    Fleet::connect(&address).await.expect("the database")
}

/// What the fleet sums, over all ledgers: requests and micro-dollars.
fn summed(postgres: &Postgres) -> (i64, u64) {
    let sums = postgres.sql(
        DATABASE,
        "SELECT coalesce(sum(requests), 0), coalesce(sum(billed_micro_usd), 0) FROM bursar_fleet.changes",
    );
    let (requests, billed) = sums.split_once('|').expect("two figures");
    (
        requests.parse().expect("a count"),
        billed.parse().expect("a sum"),
    )
}

/// Each row of each table of the fleet's database, as text.
fn everything(postgres: &Postgres) -> String {
    let tables = "SELECT format('SELECT %L, t FROM %s AS t', c.oid::regclass, c.oid::regclass) FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)' \\gexec\n";
    postgres.sql(DATABASE, tables)
}

/// A service that answers each request with this price.
async fn pricing(billed: u64) -> Origin {
    let origin = Origin::start([]).await;
    price(&origin, billed, 40);
    origin
}

/// The same without an end.
async fn pricing_always(billed: u64) -> Origin {
    let headers = [("X-Service-Billed", &*billed.to_string())];
    Origin::always(Step::Answer(origin::json(
        200,
        &headers,
        r#"{"choices":[]}"#,
    )))
    .await
}

fn price(origin: &Origin, billed: u64, times: usize) {
    for _ in 0..times {
        let headers = [("X-Service-Billed", &*billed.to_string())];
        origin.push(Step::Answer(origin::json(
            200,
            &headers,
            r#"{"choices":[]}"#,
        )));
    }
}

/// Waits until nobody asks the fleet's database anything. Those who only listen stay.
async fn left_alone(postgres: &Postgres) {
    let others = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{DATABASE}' AND application_name <> 'bursar listening'"
    );
    eventually("the connections to end", || async {
        (postgres.sql("postgres", &others) == "0").then_some(())
    })
    .await;
}

async fn buy(bursar: &Bursar, prompt: &str) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", "/v1/chat/completions", &[], &chat(prompt)))
        .await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Opens what ships a ledger, and lets it in with a code where it is new.
async fn joined(fleet: &Fleet, state_dir: &Path, code: u8) -> Shipping {
    let (state_dir, label) = (state_dir.to_owned(), "host-1".to_owned());
    match Shipping::open(state_dir.clone(), label.clone(), false).expect("it opens") {
        Some(known) => known,
        None => {
            let mut new = Shipping::create(state_dir, label, false).expect("a name");
            new.enrol(fleet, &format!("{CODE}{code}"))
                .await
                .expect("it is let in");
            new
        }
    }
}

async fn ship(fleet: &Fleet, shipping: &mut Shipping) -> Shipped {
    shipping.visit(fleet, 0).await.expect("a visit")
}

/// A file that its user alone may read.
fn private_file(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
}

/// A new state directory.
fn state_in(directory: &TempDir) -> PathBuf {
    let state_dir = directory.path().join("state");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&state_dir)
        .expect("a directory");
    std::fs::create_dir(state_dir.join("journal")).expect("a directory");
    state_dir
}

/// A copy of a state directory, as a disk image has it.
fn copied(state_dir: &Path) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    copy(state_dir, &directory.path().join("state"));
    directory
}

fn copy(from: &Path, to: &Path) {
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(to)
        .expect("a directory");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().expect("a kind").is_dir() {
            true => copy(&from, &to),
            // A file that is written anew takes its place by a rename meanwhile.
            false => drop(std::fs::copy(&from, &to)),
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_is_shipped_sums_to_the_ledger_and_is_shipped_once() {
    let postgres = fleet();
    let origin = pricing(50).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    for round in 1..4_u32 {
        buy(&bursar, &format!("{round}")).await;
        let shipped = ship(&database, &mut shipping).await;
        assert_eq!(shipped.lines, 2, "an intent and an outcome");
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
        assert_eq!(summed(&postgres), (i64::from(round), u64::from(50 * round)));
        assert_eq!(
            ship(&database, &mut shipping).await.lines,
            0,
            "nothing is new"
        );
    }
    // By another process with nothing but the files, and by one without its marks.
    for remove in ["", "fleet-marks"] {
        if !remove.is_empty() {
            std::fs::remove_file(bursar.state_dir().join(remove)).expect("it was there");
        }
        let mut again = joined(&database, &bursar.state_dir(), 1).await;
        let shipped = ship(&database, &mut again).await;
        assert_eq!(
            (shipped.lines, shipped.mark_seq, shipped.forked),
            (0, 6, false)
        );
    }
    assert_eq!(summed(&postgres), (3, 150));
    assert_eq!(bursar.billed(), 150);
}

/// The database took the batch, and its answer was lost.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_batch_whose_acknowledgement_was_lost_is_answered_as_the_first_time() {
    let postgres = fleet();
    let origin = pricing(7).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    ship(&database, &mut shipping).await;
    let before = std::fs::read(bursar.state_dir().join("fleet-marks")).unwrap_or_default();
    buy(&bursar, "one").await;
    ship(&database, &mut shipping).await;
    std::fs::write(bursar.state_dir().join("fleet-marks"), before).expect("as before the answer");
    let mut unaware = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "two").await;
    let shipped = ship(&database, &mut unaware).await;
    assert_eq!((shipped.lines, shipped.forked), (2, false));
    assert_eq!(summed(&postgres), (2, 14));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn users_tags_own_keys_and_the_services_words_stay_on_the_machine() {
    let postgres = fleet();
    let refused = origin::json(422, &[], r#"{"detail":"not with this private word"}"#);
    let headers = [("X-Service-Billed", "9")];
    let answered = origin::json(200, &headers, r#"{"choices":[]}"#);
    let origin = Origin::start([Step::Answer(refused), Step::Answer(answered)]).await;
    let lines = "[[app]]\nname = \"default\"\nuser_header = \"x-user\"\ntags = [\"customer\"]\n";
    let bursar = Bursar::with(&origin.url(), lines).await;
    for status in [422, 200] {
        let mut wire = bursar.connect().await;
        let own = [
            ("idempotency-key", "the-apps-own-key"),
            ("x-user", "a-person"),
            ("x-bursar-tags", "customer=a-customer"),
            ("x-service-session", "a-session-of-somebody"),
        ];
        wire.send(request(
            "POST",
            "/v1/chat/completions",
            &own,
            &chat("a secret prompt"),
        ))
        .await;
        assert_eq!(wire.answer().await.status, status);
    }
    let journal = std::fs::read_to_string(bursar.state_dir().join("journal/00000001.jsonl"))
        .expect("a journal");
    let private = [
        "the-apps-own-key",
        "a-person",
        "a-customer",
        "private word",
        "fingerprint",
        "session",
    ];
    for word in private {
        assert!(
            journal.contains(word),
            "the test would show nothing: {word}"
        );
    }
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    ship(&database, &mut shipping).await;
    let shipped = postgres.sql(DATABASE, "SELECT * FROM bursar_fleet.lines");
    for word in private {
        assert!(!shipped.contains(word), "{word}: {shipped}");
    }
    assert!(shipped.contains("adds_micro_usd"));
    assert_eq!(summed(&postgres), (2, 9));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_journal_that_lost_lines_ships_the_rest_and_names_the_loss() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    for prompt in ["a", "b", "c"] {
        buy(&bursar, prompt).await;
    }
    lose_lines(&bursar, 3..=4);
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    let shipped = ship(&database, &mut shipping).await;
    assert_eq!((shipped.lines, shipped.mark_seq), (5, 6));
    assert_eq!(summed(&postgres), (2, 22));
    let losses = "SELECT seq, last_seq, why FROM bursar_fleet.lines WHERE kind = 'lost'";
    assert_eq!(postgres.sql(DATABASE, losses), "3|4|lost");
    let reader = postgres.try_sql("reader", DATABASE, "SELECT losses FROM bursar_fleet.fleet");
    assert_eq!(String::from_utf8_lossy(&reader.stdout).trim(), "1");
}

/// The database's clock is this machine's; the time that the call takes is the bound.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_fleet_shows_by_how_much_a_machines_clock_is_ahead_or_behind() {
    let postgres = fleet();
    let holder = holder::Holder::new(&postgres, 1).await;
    let clock = SystemClock::shared();
    for skew_ms in [9_000_i64, -9_000] {
        let before_ms = clock.wall_ms();
        let wall_ms = before_ms.saturating_add_signed(skew_ms);
        let hello = holder
            .fleet
            .hello(&holder.identity, "host-1", Some(0), wall_ms);
        let standing = hello.await.expect("an answer");
        let took_ms = i64::try_from(clock.wall_ms() - before_ms).expect("a moment");

        let ahead = postgres.sql(DATABASE, "SELECT clock_ahead_ms FROM bursar_fleet.fleet");
        let ahead_ms: i64 = ahead.parse().expect("a number");
        assert_eq!(ahead_ms, standing.clock_ahead_ms);
        // The two clocks are rounded.
        let range = skew_ms - took_ms - 2..=skew_ms + 2;
        assert!(range.contains(&ahead_ms), "{ahead_ms} of {skew_ms}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_without_a_code_or_with_a_used_one_is_not_let_in() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let directories: Vec<TempDir> = (0..2)
        .map(|_| tempfile::tempdir().expect("a directory"))
        .collect();
    let new = |at: usize| {
        let directory: &TempDir = &directories[at];
        Shipping::create(state_in(directory), "host".to_owned(), false).expect("a name")
    };
    let (mut first, mut second) = (new(0), new(1));
    let code = format!("{CODE}1");
    first.enrol(&database, &code).await.expect("it is let in");
    first
        .enrol(&database, &code)
        .await
        .expect("repeated, it changes nothing");
    let used = second
        .enrol(&database, &code)
        .await
        .expect_err("it is used");
    assert!(used.to_string().contains("was used"), "{used}");
    let wrong = second.enrol(&database, "a-code-of-no-fleet-at-all").await;
    assert!(
        wrong
            .expect_err("it is none")
            .to_string()
            .contains("not known")
    );
    postgres.sql(
        DATABASE,
        "UPDATE bursar_fleet.invites SET expires = now() - interval '1 s'",
    );
    let late = second.enrol(&database, &format!("{CODE}2")).await;
    assert!(
        late.expect_err("it has expired")
            .to_string()
            .contains("expired")
    );
    let mut second = second;
    let unknown = second.visit(&database, 0).await.expect_err("it is not in");
    assert!(matches!(unknown, Trouble::Fleet(_)), "{unknown}");
    assert!(unknown.to_string().contains("docs/fleet.md"), "{unknown}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_schema_may_be_set_up_again_and_keeps_what_is_there() {
    let postgres = fleet();
    let origin = pricing(3).await;
    let bursar = Bursar::before(&origin.url()).await;
    buy(&bursar, "one").await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    ship(&database, &mut shipping).await;
    for _ in 0..2 {
        postgres.sql(DATABASE, bursar::fleet::schema::SQL);
    }
    buy(&bursar, "two").await;
    ship(&database, &mut shipping).await;
    assert_eq!(summed(&postgres), (2, 6));
    // Of a later version it is not set back.
    postgres.sql(DATABASE, "UPDATE bursar_fleet.about SET version = 99");
    let refused = postgres.try_sql("admin", DATABASE, bursar::fleet::schema::SQL);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && why.contains("version 99"),
        "{why}"
    );
    let trouble = shipping
        .visit(&database, 0)
        .await
        .expect_err("another version");
    assert!(
        trouble.to_string().contains("install a newer bursar"),
        "{trouble}"
    );
}

/// The lines with these numbers are gone from the journal.
fn lose_lines(bursar: &Bursar, lost: std::ops::RangeInclusive<u64>) {
    let path = bursar.state_dir().join("journal/00000001.jsonl");
    let journal = std::fs::read_to_string(&path).expect("a journal");
    let is_lost = |line: &&str| {
        let mut lost = lost.clone();
        lost.any(|seq| line.starts_with(&format!("{{\"seq\":{seq},")))
    };
    let kept = journal.split_inclusive('\n').filter(|line| !is_lost(line));
    let kept: String = kept.collect();
    assert_ne!(kept, journal, "the test would show nothing");
    std::fs::write(&path, kept).expect("it is written");
}

/// Else what follows them would be shipped a second time, under another name.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_are_lost_after_they_were_shipped_make_no_copy_of_the_ledger() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    for prompt in ["a", "b", "c"] {
        buy(&bursar, prompt).await;
    }
    assert_eq!(ship(&database, &mut shipping).await.mark_seq, 6);
    lose_lines(&bursar, 3..=4);
    std::fs::remove_file(bursar.state_dir().join("fleet-marks")).expect("it was there");

    let mut again = joined(&database, &bursar.state_dir(), 1).await;
    let shipped = ship(&database, &mut again).await;

    assert_eq!(
        (shipped.lines, shipped.mark_seq, shipped.forked),
        (0, 6, false)
    );
    assert_eq!(summed(&postgres), (3, 33));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_clone_that_lost_lines_ships_what_is_its_own_and_no_line_that_both_have() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    for prompt in ["a", "b", "c"] {
        buy(&bursar, prompt).await;
    }
    ship(&database, &mut shipping).await;
    let clone = Bursar::on(copied(&bursar.state_dir()), &origin.url()).await;
    buy(&bursar, "on the original").await;
    assert_eq!(ship(&database, &mut shipping).await.mark_seq, 8);
    for prompt in ["on the clone", "and once more"] {
        buy(&clone, prompt).await;
    }
    // Of what both have, and not the last of it.
    lose_lines(&clone, 3..=4);
    std::fs::remove_file(clone.state_dir().join("fleet-marks")).expect("it was there");

    let mut cloned = joined(&database, &clone.state_dir(), 1).await;
    let shipped = ship(&database, &mut cloned).await;

    assert!(shipped.forked, "{shipped:?}");
    assert_eq!(summed(&postgres), (6, 66));
    let lost = "SELECT count(*) FROM bursar_fleet.lines WHERE kind = 'lost'";
    assert_eq!(postgres.sql(DATABASE, lost), "0", "the fleet has them");
}

/// Nothing follows them in the fleet that would show whose they were: they are a loss, under another name.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn lines_that_are_lost_across_the_fleets_mark_are_a_loss_and_what_follows_counts_once() {
    let postgres = fleet();
    let origin = pricing(11).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    for prompt in ["a", "b"] {
        buy(&bursar, prompt).await;
    }
    assert_eq!(ship(&database, &mut shipping).await.mark_seq, 4);
    for prompt in ["c", "d"] {
        buy(&bursar, prompt).await;
    }
    lose_lines(&bursar, 4..=6);
    std::fs::remove_file(bursar.state_dir().join("fleet-marks")).expect("it was there");

    let mut again = joined(&database, &bursar.state_dir(), 1).await;
    let shipped = ship(&database, &mut again).await;

    assert_eq!((shipped.lines, shipped.mark_seq), (3, 8));
    assert_eq!(summed(&postgres), (3, 33), "a, b and d");
    let losses = "SELECT seq, last_seq FROM bursar_fleet.lines WHERE kind = 'lost'";
    assert_eq!(postgres.sql(DATABASE, losses), "4|6");
}
