//! A daemon in a fleet: it serves whatever its database does, and catches up.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::commands::is_frozen;
use super::upgrade::VERSION_1;
use super::{CODE, DATABASE, copied, fleet, pricing_always, private_file, summed};
use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::postgres::Postgres;
use crate::support::wire::request;
use crate::support::{Answer, Sandbox, chat, within};

/// A machine of the fleet.
pub(super) struct Member {
    directory: TempDir,
    daemon: Option<Daemon>,
    upstream: String,
}

impl Member {
    pub(super) async fn start(upstream: &str, postgres: &Postgres, number: u8) -> Self {
        Self::with(upstream, postgres, number, "").await
    }

    /// With more lines in `[fleet]`.
    pub(super) async fn with(upstream: &str, postgres: &Postgres, number: u8, lines: &str) -> Self {
        let lines = format!("ship_interval_s = 1\n{lines}");
        Self::at(upstream, &postgres.url("node", DATABASE), number, &lines).await
    }

    /// By an address of the database's, with the lines of `[fleet]` that may be otherwise.
    pub(super) async fn at(upstream: &str, url: &str, number: u8, lines: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let url = format!("{url}\n{CODE}{number}\n");
        let file = directory.path().join("url");
        private_file(&file, &url);
        let config = format!(
            "[fleet]\nurl_file = {:?}\nhost_label = \"host-{number}\"\n{lines}",
            file.to_str().expect("UTF-8")
        );
        std::fs::write(directory.path().join("config.toml"), config).expect("a file");
        let mut member = Self {
            directory,
            daemon: None,
            upstream: upstream.to_owned(),
        };
        member.begin().await;
        member
    }

    pub(super) async fn begin(&mut self) {
        let config = self.directory.path().join("config.toml");
        let config = config.to_str().expect("UTF-8");
        let state_dir = self.state_dir();
        let mut arguments = run_arguments(&self.upstream, state_dir.to_str().expect("UTF-8"));
        arguments.extend_from_slice(&["--config", config]);
        let mut started = command(&arguments);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log());
        started.stderr(log.expect("a file"));
        self.daemon = Some(Daemon::launched(started).await.expect("the daemon went on"));
    }

    /// What all its starts logged.
    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// How many lines of it have this text.
    pub(super) fn logged(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.log()).expect("a log");
        log.lines().filter(|line| line.contains(text)).count()
    }

    pub(super) fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(super) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    pub(super) async fn ask(&self, prompt: &str) -> Answer {
        let mut app = self.daemon().connect().await;
        app.send(request("POST", "/v1/chat/completions", &[], &chat(prompt)))
            .await;
        app.answer().await
    }

    pub(super) async fn buy(&self, prompt: &str) {
        let answer = self.ask(prompt).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Another one with the same disk, on this machine. It does not run yet.
    pub(super) fn twin(&self) -> Self {
        let directory = copied(&self.state_dir());
        let config = directory.path().join("config.toml");
        std::fs::copy(self.config(), config).expect("it is copied");
        Self {
            directory,
            daemon: None,
            upstream: self.upstream.clone(),
        }
    }

    pub(super) fn config(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    /// As a power cut ends it.
    pub(super) async fn dies(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.signal(Signal::KILL);
            daemon.ended().await;
        }
    }

    pub(super) async fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.signal(Signal::TERM);
            assert_eq!(daemon.ended().await.code(), Some(0));
        }
    }

    pub(super) fn billed(&self) -> u64 {
        billed(&self.state_dir())
    }
}

pub(super) fn billed(state_dir: &Path) -> u64 {
    let entries = crate::support::bursar::entries(state_dir);
    let amounts = entries.iter().filter_map(|entry| entry.state.billed());
    amounts.map(bursar::money::MicroUsd::get).sum()
}

pub(super) async fn is_shipped(postgres: &Postgres, requests: i64) {
    within(
        std::time::Duration::from_secs(60),
        "the fleet to have it",
        || async { (summed(postgres).0 == requests).then_some(()) },
    )
    .await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn eight_machines_sum_to_the_services_books_over_kill_outage_and_restart() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let mut members = Vec::new();
    for number in 1..9 {
        members.push(Member::start(&sandbox.url(), &postgres, number).await);
    }
    for (at, member) in members.iter().enumerate() {
        for round in 0..3 {
            member.buy(&format!("machine {at}, round {round}")).await;
        }
    }
    is_shipped(&postgres, 24).await;

    // The database is gone at once; requests go on, and one machine dies meanwhile.
    postgres.end();
    for (at, member) in members.iter().enumerate() {
        member
            .buy(&format!("machine {at}, without a database"))
            .await;
    }
    members[0].dies().await;
    members[0].begin().await;
    members[0].buy("after the kill").await;
    postgres.begin();
    is_shipped(&postgres, 33).await;

    // What was bought at last is shipped by the stop.
    members[2].buy("at the end").await;
    for member in &mut members {
        member.stop().await;
    }
    let journals: u64 = members.iter().map(Member::billed).sum();
    assert_eq!(summed(&postgres), (34, journals));
    assert_eq!(journals, sandbox.debited().await);
    let hosts = "SELECT host, lines_behind FROM bursar_fleet.fleet ORDER BY host";
    let all = (1..9).map(|number| format!("host-{number}|0\n"));
    assert_eq!(
        postgres.sql(DATABASE, hosts),
        all.collect::<String>().trim()
    );
}

/// As `bursar fleet leave` changes the system service's configuration, whose URL is a credential until it stops.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_daemon_whose_configuration_names_no_fleet_any_more_says_goodbye_when_it_stops() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let mut member = Member::start(&sandbox.url(), &postgres, 1).await;
    let gone = "SELECT gone IS NOT NULL FROM bursar_fleet.ledgers";
    member.buy("the first").await;
    member.stop().await;
    assert_eq!(postgres.sql(DATABASE, gone), "f", "it comes again");
    member.begin().await;
    member.buy("the last").await;
    leave(&member);
    member.stop().await;
    assert_eq!(postgres.sql(DATABASE, gone), "t");
    assert_eq!(summed(&postgres).0, 2, "the rest was shipped");
}

/// As a user's own `bursar fleet leave --unshipped`: nobody waits for its leases.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_daemon_that_leaves_says_goodbye_also_where_the_fleet_refuses_its_lines() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let mut member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.buy("shipped").await;
    is_shipped(&postgres, 1).await;
    let ship = "REVOKE EXECUTE ON FUNCTION bursar_fleet.ship FROM bursar_node";
    postgres.sql(DATABASE, ship);
    member.buy("refused").await;
    leave(&member);
    member.stop().await;
    let gone = "SELECT gone IS NOT NULL FROM bursar_fleet.ledgers";
    assert_eq!(postgres.sql(DATABASE, gone), "t");
    assert_eq!(summed(&postgres).0, 1, "the fleet takes no more");
}

pub(super) fn leave(member: &Member) {
    let config = std::fs::read_to_string(member.config()).expect("a file");
    let goes = |line: &str| line.starts_with("url_file") || line.starts_with("shared_caps");
    let left = config.lines().filter(|line| !goes(line));
    let left: String = left.map(|line| format!("{line}\n")).collect();
    std::fs::write(member.config(), left).expect("a file");
}

pub(super) async fn lines_behind(member: &Member) -> Option<u64> {
    metric(member, "bursar_fleet_lines_behind ").await
}

pub(super) async fn metric(member: &Member, name: &str) -> Option<u64> {
    let page = member.daemon().admin_page("/metrics").await.text();
    let shown = |line: &str| line.strip_prefix(name)?.parse().ok();
    page.lines().find_map(shown)
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_outage_of_many_visits_is_logged_once_for_each_reason_and_its_end_once() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.buy("before").await;
    is_shipped(&postgres, 1).await;
    let visits = || metric(&member, "bursar_fleet_visits_total{result=\"failed\"} ");

    for outage in 1..3 {
        const VISITS: u64 = 5;
        let failed = visits().await.expect("a metric") + VISITS;
        let logged = member.logged("the fleet gets no lines");
        postgres.end();
        member.buy("without a database").await;
        within(
            std::time::Duration::from_secs(60),
            "visits to fail",
            || async { (visits().await? >= failed).then_some(()) },
        )
        .await;
        // A visit may be under way when the server ends, which is a reason of its own.
        let more = member.logged("the fleet gets no lines") - logged;
        assert!((1..3).contains(&more), "{more} lines");
        postgres.begin();
        is_shipped(&postgres, 1 + i64::try_from(outage).expect("it fits")).await;
        within(
            std::time::Duration::from_secs(10),
            "its end to be logged",
            || async { (member.logged("the fleet is reached again") == outage).then_some(()) },
        )
        .await;
    }
}

/// While somebody upgrades the fleet, its machines are of different versions.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_of_a_later_version_gets_no_lines_and_still_stops_the_money() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let member = Member::start(&origin.url(), &postgres, 1).await;
    member.buy("one").await;
    is_shipped(&postgres, 1).await;
    let version = |number: u8| format!("UPDATE bursar_fleet.about SET version = {number}");
    postgres.sql(DATABASE, &version(99));

    member.buy("two").await;
    let patience = std::time::Duration::from_secs(60);
    let lacks = |wanted: u64| {
        let member = &member;
        move || async move { (lines_behind(member).await == Some(wanted)).then_some(()) }
    };
    within(patience, "what the fleet lacks", lacks(2)).await;
    postgres.sql(DATABASE, "SELECT bursar_fleet.order_freeze('')");
    is_frozen(&member, true).await;
    assert_eq!(member.ask("frozen").await.code(), Some("frozen"));
    postgres.sql(DATABASE, "SELECT bursar_fleet.order_thaw('')");
    is_frozen(&member, false).await;
    member.buy("three").await;
    assert_eq!(summed(&postgres).0, 1);
    // Each of the two orders came with a visit that failed.
    assert_eq!(member.logged("has version 99"), 1);

    postgres.sql(DATABASE, &version(2));
    is_shipped(&postgres, 3).await;
    within(patience, "the fleet to lack nothing", lacks(0)).await;
    within(patience, "its end to be logged", || async {
        (member.logged("the fleet is reached again") == 1).then_some(())
    })
    .await;
}

/// The machines are upgraded first.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_of_an_earlier_version_gets_no_lines_and_still_stops_the_money() {
    let postgres = Postgres::start();
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    postgres.sql(DATABASE, VERSION_1);
    let roles = format!(
        "CREATE ROLE node LOGIN IN ROLE bursar_node; SELECT bursar_fleet.invite('{CODE}1', NULL)"
    );
    postgres.sql(DATABASE, &roles);
    let origin = pricing_always(1).await;
    let mut member = Member::start(&origin.url(), &postgres, 1).await;
    member.buy("one").await;
    let orders = |order: &str| postgres.sql(DATABASE, &format!("SELECT bursar_fleet.{order}('')"));
    orders("order_freeze");
    is_frozen(&member, true).await;
    assert_eq!(member.ask("frozen").await.code(), Some("frozen"));
    orders("order_thaw");
    is_frozen(&member, false).await;
    assert_eq!(summed(&postgres).0, 0);
    // It keeps no thaws, and this machine is away when it is given one.
    orders("order_freeze");
    is_frozen(&member, true).await;
    member.stop().await;
    orders("order_thaw");

    postgres.sql(DATABASE, bursar::fleet::schema::SQL);
    member.begin().await;
    is_shipped(&postgres, 1).await;
    is_frozen(&member, false).await;
}
