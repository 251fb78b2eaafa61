//! Two hundred bursars at one database: every sum holds, and what they cost it is printed (`make bench-fleet`).
//!
//! First they only say hello, then they also spend: from the two follows what a visit and what a line costs.

use std::sync::Arc;
use std::time::Duration;

use bursar::clock::SystemClock;
use bursar::config::FleetTable;
use bursar::fleet::Worker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{DATABASE, pricing_always, private_file, summed};
use crate::support::pgbouncer::PgBouncer;
use crate::support::postgres::Postgres;
use crate::support::{Bursar, chat, within};

const BURSARS: usize = 200;
const PRICE: u64 = 21;

/// Each one's pause between visits; 200 of these are as many visits as 1,200 bursars make, every 30 s.
const INTERVAL: Duration = Duration::from_secs(5);

/// Each one's pause between requests: two cores have to serve all of them, in a build for tests.
const REQUESTS_EVERY: Duration = Duration::from_secs(20);

/// By itself it turns clients away beyond 100.
const POOLER: &str = "default_pool_size = 8\nmax_client_conn = 1000";

/// Without `BURSAR_FLEET_MINUTES`.
const SHORT: Duration = Duration::from_secs(40);

/// A bursar of this process, with what visits the fleet for it.
struct Part {
    bursar: Bursar,
    client: reqwest::Client,
    worker: Arc<Worker>,
    stop: watch::Sender<bool>,
    visiting: JoinSet<()>,
    _url: TempDir,
}

/// What was used up to now.
#[derive(Clone, Copy)]
struct Used {
    at: Instant,
    server_s: f64,
    pooler_s: f64,
    visits: u64,
    lines: u64,
}

impl Part {
    async fn start(upstream: &str, url: &str, number: usize) -> Self {
        let bursar = Bursar::before(upstream).await;
        let folder = tempfile::tempdir().expect("a directory");
        let url_file = folder.path().join("url");
        private_file(&url_file, &format!("{url}\n{}\n", code(number)));
        let table = FleetTable {
            url_file: Some(url_file),
            host_label: Some(format!("host-{number}")),
            interval: INTERVAL,
            stop_flush: Duration::from_secs(60),
            ..FleetTable::default()
        };
        let clock = SystemClock::shared();
        let worker = Worker::new(&table, &bursar.state_dir(), &clock, &bursar.metrics);
        let worker = worker.expect("it is in a fleet");
        let (stop, stopped) = watch::channel(false);
        let mut visiting = JoinSet::new();
        let (caps, queue) = (Arc::clone(bursar.gateway.caps()), bursar.gateway.ceilings());
        visiting.spawn(Arc::clone(&worker).run(caps, queue, stopped));
        Self {
            bursar,
            client: reqwest::Client::new(),
            worker,
            stop,
            visiting,
            _url: folder,
        }
    }

    /// Visits that came to their end, and failed ones.
    fn visits(&self) -> (u64, u64) {
        let figures = self.bursar.metrics.fleet.now().expect("it is in a fleet");
        (figures.visits, figures.failed_visits)
    }

    /// Requests until then.
    async fn spend(&self, until: Instant, number: usize) {
        let mut next = Instant::now() + REQUESTS_EVERY.mul_f64(share(number));
        let mut round = 0;
        while next < until {
            sleep_until(next).await;
            self.buy(&format!("{number}: {round}")).await;
            next += REQUESTS_EVERY;
            round += 1;
        }
    }

    /// Two hundred at once take their time on a machine that does other things, too.
    async fn buy(&self, prompt: &str) {
        let url = format!("http://{}/v1/chat/completions", self.bursar.address);
        let asking = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .body(chat(prompt))
            .send();
        let answer = asking.await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
    }

    async fn end(mut self) -> u64 {
        self.stop.send_replace(true);
        self.visiting.join_next().await;
        self.bursar.ledger.close().await;
        self.worker.flush(self.bursar.gateway.caps(), false).await;
        self.bursar.billed()
    }
}

impl Used {
    fn now(postgres: &Postgres, pooler: Option<&PgBouncer>, parts: &[Arc<Part>]) -> Self {
        let lines = postgres.sql(DATABASE, "SELECT count(*) FROM bursar_fleet.lines");
        Self {
            at: Instant::now(),
            server_s: postgres.processor_s(),
            pooler_s: pooler.map_or(0.0, PgBouncer::processor_s),
            visits: parts.iter().map(|part| part.visits().0).sum(),
            lines: lines.parse().expect("a count"),
        }
    }
}

/// So that they do not all begin at once.
fn share(number: usize) -> f64 {
    u32::try_from(number).map_or(0.0, f64::from) / 200.0
}

fn code(number: usize) -> String {
    format!("a-code-for-ledger-number-{number}")
}

/// Each one has some twenty files and sockets open.
fn make_room() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("the limit");
}

async fn measured(pooled: bool, time: Duration) {
    make_room();
    let postgres = Postgres::start();
    postgres.fleet(DATABASE);
    for number in 0..BURSARS {
        let invite = format!("SELECT bursar_fleet.invite('{}', NULL)", code(number));
        postgres.sql(DATABASE, &invite);
    }
    let pooler = match pooled {
        true => match PgBouncer::before(&postgres, POOLER).await {
            Some(pooler) => Some(pooler),
            None => return,
        },
        false => None,
    };
    let url = match &pooler {
        Some(pooler) => pooler.url("node", DATABASE),
        None => postgres.url("node", DATABASE),
    };
    let origin = pricing_always(PRICE).await;
    let mut parts = Vec::new();
    for number in 0..BURSARS {
        parts.push(Arc::new(Part::start(&origin.url(), &url, number).await));
    }
    let joined = "SELECT count(*) FROM bursar_fleet.ledgers";
    within(Duration::from_secs(120), "all to be let in", || async {
        (postgres.sql(DATABASE, joined) == BURSARS.to_string()).then_some(())
    })
    .await;

    let begun = Used::now(&postgres, pooler.as_ref(), &parts);
    sleep_until(begun.at + time / 4).await;
    let quiet = Used::now(&postgres, pooler.as_ref(), &parts);
    let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')";
    let wal_before: f64 = postgres.sql(DATABASE, wal).parse().expect("a number");
    let mut spending = JoinSet::new();
    for (number, part) in parts.iter().enumerate() {
        let (part, until) = (Arc::clone(part), quiet.at + time * 3 / 4);
        spending.spawn(async move { part.spend(until, number).await });
    }
    while let Some(ended) = spending.join_next().await {
        ended.expect("it spends");
    }
    let received = u64::try_from(origin.received().len()).expect("a count");
    all_shipped(&postgres, received).await;
    let spent = Used::now(&postgres, pooler.as_ref(), &parts);
    let wal_after: f64 = postgres.sql(DATABASE, wal).parse().expect("a number");
    postgres.sql(DATABASE, "VACUUM ANALYZE");
    let size = "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits \
                WHERE inhparent = 'bursar_fleet.lines'::regclass";
    let size: f64 = postgres.sql(DATABASE, size).parse().expect("a number");
    let failed: u64 = parts.iter().map(|part| part.visits().1).sum();
    let listening =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bursar listening'";
    let listening = postgres.sql(DATABASE, listening);

    let mut ending = JoinSet::new();
    for part in parts {
        let part = Arc::into_inner(part).expect("nobody else has it");
        ending.spawn(part.end());
    }
    let mut journals = 0;
    while let Some(billed) = ending.join_next().await {
        journals += billed.expect("it ends");
    }
    let requests = i64::try_from(received).expect("a count");
    assert_eq!(summed(&postgres), (requests, journals));
    assert_eq!(journals, received * PRICE, "the service's own books");
    print(&begun, &quiet, &spent, pooled);
    let lines = count(spent.lines);
    println!(
        "  {:.0} bytes of table and index a line, {:.0} bytes of log; {listening} listen; {failed} visits failed",
        size / lines,
        (wal_after - wal_before) / (lines - count(quiet.lines)),
    );
}

async fn all_shipped(postgres: &Postgres, requests: u64) {
    let behind = "SELECT coalesce(sum(lines_behind), 0) FROM bursar_fleet.fleet";
    within(Duration::from_secs(120), "all to be shipped", || async {
        let there = u64::try_from(summed(postgres).0).unwrap_or(0);
        (there == requests && postgres.sql(DATABASE, behind) == "0").then_some(())
    })
    .await;
}

fn print(begun: &Used, quiet: &Used, spent: &Used, pooled: bool) {
    let way = match pooled {
        true => "by pgbouncer",
        false => "directly",
    };
    let seconds = |from: &Used, to: &Used| (to.at - from.at).as_secs_f64();
    let visit_s = (quiet.server_s - begun.server_s) / count(quiet.visits - begun.visits);
    let visits = count(spent.visits - quiet.visits);
    let lines = count(spent.lines - quiet.lines);
    let line_s = (spent.server_s - quiet.server_s - visits * visit_s) / lines;
    println!(
        "{BURSARS} bursars {way}, {:.0} s of hellos and {:.0} s of spending",
        seconds(begun, quiet),
        seconds(quiet, spent)
    );
    println!(
        "  {:.1} visits a second, then {:.1} with {:.1} lines a second",
        count(quiet.visits - begun.visits) / seconds(begun, quiet),
        visits / seconds(quiet, spent),
        lines / seconds(quiet, spent),
    );
    println!(
        "  the server's processor: {:.1} % and {:.1} % of a core; {:.2} ms a visit, {:.3} ms a line; the pooler's: {:.1} %",
        100.0 * (quiet.server_s - begun.server_s) / seconds(begun, quiet),
        100.0 * (spent.server_s - quiet.server_s) / seconds(quiet, spent),
        1e3 * visit_s,
        1e3 * line_s,
        100.0 * (spent.pooler_s - begun.pooler_s) / seconds(begun, spent),
    );
    // 10,000 at a request a minute: two lines each, and a visit every 30 s.
    let (visits, lines) = (10_000.0 / 30.0, 10_000.0 * 2.0 / 60.0);
    println!(
        "  so 10,000, each with a request a minute: {:.2} cores for {visits:.0} visits and {lines:.0} lines a second",
        visits * visit_s + lines * line_s
    );
}

fn count(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[expect(
    clippy::disallowed_methods,
    reason = "`make bench-fleet` asks for more time this way"
)]
fn time() -> Duration {
    let minutes = std::env::var("BURSAR_FLEET_MINUTES").ok();
    minutes.map_or(SHORT, |minutes| {
        Duration::from_secs_f64(60.0 * minutes.parse::<f64>().expect("minutes"))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: make test-all; ten minutes of it: make bench-fleet"]
async fn two_hundred_bursars_at_one_database_sum_to_the_services_books() {
    measured(false, time()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all; ten minutes of it: make bench-fleet"]
async fn two_hundred_bursars_behind_one_pooler_sum_to_the_services_books() {
    measured(true, time()).await;
}
