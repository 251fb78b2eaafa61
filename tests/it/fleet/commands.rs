//! The commands of the fleet, as a person at a machine or at the database gives them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::serving::{Member, is_shipped};
use super::{DATABASE, fleet, left_alone, private_file};
use crate::support::daemon::{Daemon, Signal, command};
use crate::support::postgres::Postgres;
use crate::support::wire::request;
use crate::support::{Bursar, Sandbox, chat, within};

/// A person with a login of a role, and a file with its URL.
pub(super) struct Person {
    folder: TempDir,
}

/// What a command came to.
pub(super) struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Person {
    pub fn new(postgres: &Postgres, role: &str) -> Self {
        Self::with(&postgres.url(role, DATABASE))
    }

    pub fn with(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        private_file(&folder.path().join("url"), url);
        std::fs::write(folder.path().join("empty.toml"), "").expect("a file");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// With the file of the URL.
    pub async fn gives(&self, arguments: &[&str]) -> Done {
        let (url, config) = (self.path("url"), self.path("empty.toml"));
        let file = ["--url-file", &url, "--config", &config];
        given(&[arguments, &file].concat(), "").await
    }

    pub async fn document(&self, arguments: &[&str]) -> Value {
        let done = self.gives(&[arguments, &["--json"]].concat()).await;
        assert_eq!(done.code, Some(0), "{}", done.err);
        serde_json::from_str(&done.out).expect("a document")
    }
}

async fn given(arguments: &[&str], typed: &str) -> Done {
    ended(command(arguments), typed).await
}

/// With this on its standard input.
pub(super) async fn ended(mut command: Command, typed: &str) -> Done {
    command
        .env_remove("BURSAR_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(typed.as_bytes()).await.expect("it is read");
    drop(input);
    let ended = child.wait_with_output().await.expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done {
        code: ended.status.code(),
        out: text(&ended.stdout),
        err: text(&ended.stderr),
    }
}

/// A machine that is in no fleet yet.
pub(super) fn machine() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let config = folder.path().join("config.toml");
    let text = "[ledger]\nstate_dir = \"state\"\n\n[fleet]\nship_interval_s = 1\n";
    std::fs::write(&config, text).expect("a file");
    (folder, config)
}

pub(super) async fn joins(config: &Path, more: &[&str], typed: &str) -> Done {
    let config = config.to_str().expect("UTF-8");
    given(
        &[&["fleet", "join", "--config", config], more].concat(),
        typed,
    )
    .await
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_freeze_of_the_fleet_stops_every_machine_and_holds_while_the_database_is_away() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let sandbox = Sandbox::start().await;
    let mut one = Member::start(&sandbox.url(), &postgres, 1).await;
    let two = Member::start(&sandbox.url(), &postgres, 2).await;
    one.buy("before").await;
    two.buy("before, too").await;

    let order = operator.document(&["fleet", "freeze"]).await;
    assert_eq!(order["changed"], true, "{order}");
    for member in [&one, &two] {
        is_frozen(member, true).await;
    }
    let spent = sandbox.debited().await;
    let refused = one.ask("frozen").await;
    assert!(
        refused.text().contains("for the whole fleet"),
        "{}",
        refused.text()
    );
    assert!(
        refused.text().contains("bursar fleet thaw"),
        "{}",
        refused.text()
    );

    // The machine starts anew while the database is away: what was ordered holds.
    left_alone(&postgres).await;
    postgres.end();
    one.stop().await;
    one.begin().await;
    let refused = one.ask("frozen without a database").await;
    assert_eq!(refused.code(), Some("frozen"), "{}", refused.text());
    assert_eq!(sandbox.debited().await, spent);

    // A thaw of the machine is not the fleet's.
    let config = one.config();
    let state = one.state_dir();
    let local = [
        "--config",
        config.to_str().expect("UTF-8"),
        "--state-dir",
        state.to_str().expect("UTF-8"),
    ];
    let thawed = given(&[&["thaw"], &local[..]].concat(), "").await;
    assert!(
        thawed.out.contains("bursar fleet thaw"),
        "{}{}",
        thawed.out,
        thawed.err
    );
    assert_eq!(one.ask("still").await.code(), Some("frozen"));

    // Nor is a freeze of the machine ended by the fleet's thaw.
    let (config, state) = (two.config(), two.state_dir());
    let local = [
        "--config",
        config.to_str().expect("UTF-8"),
        "--state-dir",
        state.to_str().expect("UTF-8"),
    ];
    let frozen = given(&[&["freeze"], &local[..]].concat(), "").await;
    assert_eq!(frozen.code, Some(0), "{}", frozen.err);
    postgres.begin();
    let order = operator.document(&["fleet", "thaw"]).await;
    assert_eq!(order["changed"], true, "{order}");
    assert_eq!(order["frozen"], Value::Array(Vec::new()), "{order}");
    is_frozen(&one, false).await;
    one.buy("after").await;
    within(Duration::from_secs(60), "the fleet's thaw", || async {
        let orders = two.daemon().admin_page("/api/caps").await.text();
        (!orders.contains("for the whole fleet")).then_some(())
    })
    .await;
    let refused = two.ask("frozen by itself").await;
    assert_eq!(refused.code(), Some("frozen"), "{}", refused.text());
    let thawed = given(&[&["thaw"], &local[..]].concat(), "").await;
    assert_eq!(thawed.code, Some(0), "{}", thawed.err);
    two.buy("after both").await;
}

/// The backup is from before the freeze.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_restored_database_thaws_no_machine_until_it_is_ordered() {
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let mut member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.buy("before").await;
    let backup = postgres.backup(DATABASE);
    let order = |order: &str| postgres.sql(DATABASE, &format!("SELECT bursar_fleet.{order}('')"));
    assert_eq!(order("order_freeze"), "t");
    is_frozen(&member, true).await;

    postgres.restore(DATABASE, &backup);
    // What a hello says is in force before the next one.
    for _ in 0..2 {
        let now = postgres.sql(DATABASE, "SELECT clock_timestamp()");
        let heard = format!("SELECT heard > '{now}' FROM bursar_fleet.ledgers");
        within(Duration::from_secs(60), "a hello", || async {
            (postgres.sql(DATABASE, &heard) == "t").then_some(())
        })
        .await;
    }
    is_frozen(&member, true).await;
    member.stop().await;
    member.begin().await;
    assert_eq!(member.ask("frozen").await.code(), Some("frozen"));

    assert_eq!(order("order_thaw"), "f", "the database does not have it");
    is_frozen(&member, false).await;
    member.buy("after").await;
}

pub(super) async fn is_frozen(member: &Member, wanted: bool) {
    is_frozen_within(Duration::from_secs(60), member, wanted).await;
}

pub(super) async fn is_frozen_within(patience: Duration, member: &Member, wanted: bool) {
    within(patience, "the order", || async {
        let page = member.daemon().admin_page("/metrics").await;
        let line = format!("bursar_total_frozen {}\n", u8::from(wanted));
        page.text().contains(&line).then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn all_machines_together_are_held_against_the_services_own_figure() {
    let postgres = fleet();
    let reader = Person::new(&postgres, "reader");
    let sandbox = Sandbox::start().await;
    let one = Member::start(&sandbox.url(), &postgres, 1).await;
    let two = Member::start(&sandbox.url(), &postgres, 2).await;
    one.buy("on one").await;
    one.buy("hard: why, on one?").await;
    two.buy("on two").await;
    is_shipped(&postgres, 3).await;
    within(Duration::from_secs(60), "all lines to be there", || async {
        let behind = "SELECT sum(lines_behind) FROM bursar_fleet.fleet";
        (postgres.sql(DATABASE, behind) == "0").then_some(())
    })
    .await;
    let state = one.state_dir();
    // The daemon of this machine asks the service, whose figure is the organization's.
    let asked = [
        "reconcile",
        "--fleet",
        "--state-dir",
        state.to_str().expect("UTF-8"),
    ];

    let equal = reader.document(&asked).await;

    assert_eq!(equal["conclusion"], "equal", "{equal}");
    let source = equal["source"].as_str().expect("a member's name");
    assert_ne!(source, "typed", "{equal}");
    assert_eq!(
        equal["service_micro_usd"],
        sandbox.debited().await,
        "{equal}"
    );
    let hosts = equal["hosts"].as_array().expect("hosts");
    let hosts: Vec<_> = hosts.iter().map(|host| host["host"].as_str()).collect();
    assert_eq!(hosts, [Some("host-1"), Some("host-2")], "{equal}");

    // A machine that is not in the fleet spends with the same key.
    let alone = Bursar::before(&sandbox.url()).await;
    alone.post("/v1/chat/completions", &chat("elsewhere")).await;
    let apart = reader.gives(&[&asked[..], &["--json"]].concat()).await;
    assert_eq!(apart.code, Some(1), "{}{}", apart.out, apart.err);
    let apart: Value = serde_json::from_str(&apart.out).expect("a document");
    assert_eq!(apart["conclusion"], "unexplained", "{apart}");
    assert_eq!(apart["difference_micro_usd"], alone.billed(), "{apart}");
    // Nobody is heard after an end that has not come.
    let typed = [
        "reconcile",
        "--fleet",
        "--json",
        "--billed-usd",
        "1",
        "--since",
        "24h",
        "--until",
        "2099-01-01",
    ];
    let typed = reader.gives(&typed).await;
    assert_eq!(typed.code, Some(1), "{}{}", typed.out, typed.err);
    let typed: Value = serde_json::from_str(&typed.out).expect("a document");
    assert_eq!(
        (&typed["conclusion"], &typed["not_heard_since"]),
        (&"unexplained".into(), &0.into()),
        "{typed}"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_machine_is_invited_joins_is_seen_summed_revoked_and_leaves() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let reader = Person::new(&postgres, "reader");
    let invited = operator
        .document(&["fleet", "invite", "--note", "a laptop"])
        .await;
    let code = invited["code"].as_str().expect("a code");
    let seen = reader.document(&["fleet", "status"]).await;
    let is_open = |seen: &Value| {
        let open = seen["invitations"].as_array().expect("a list");
        open.iter().any(|one| one["note"] == "a laptop")
    };
    assert!(is_open(&seen), "{seen}");
    let shown = reader.gives(&["fleet", "status"]).await.out;
    assert!(shown.contains("not used yet: a laptop"), "{shown}");
    let (folder, config) = machine();
    let typed = format!("{}\n{code}\n", postgres.url("node", DATABASE));

    let joined = joins(&config, &["--host-label", "laptop"], &typed).await;

    assert_eq!(joined.code, Some(0), "{}", joined.err);
    for said in [
        "Shipped is each line of the journal without users, tags, sessions, apps' own keys",
        "no prompt and no answer",
        "docs/fleet.md",
    ] {
        assert!(joined.out.contains(said), "{said}: {}", joined.out);
    }
    for text in [&joined.out, &joined.err] {
        assert!(
            !text.contains(code) && !text.contains("postgresql://"),
            "{text}"
        );
    }
    let file = folder.path().join("fleet-url");
    let mode = std::fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    // Before the first start it may be given again, with another code.
    let again = joins(&config, &[], &typed).await;
    assert_eq!(again.code, Some(0), "{}", again.err);

    let sandbox = Sandbox::start().await;
    let state = folder.path().join("state");
    let named = config.to_str().expect("UTF-8");
    let mut daemon = Daemon::start(&sandbox.url(), &state, &["--config", named]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("one")))
        .await;
    assert_eq!(app.answer().await.status, 200);
    is_shipped(&postgres, 1).await;
    let again = joins(
        &config,
        &["--state-dir", state.to_str().expect("UTF-8")],
        &typed,
    )
    .await;
    assert!(again.err.contains("is in a fleet already"), "{}", again.err);

    let seen = reader.document(&["fleet", "status"]).await;
    let ledger = &seen["ledgers"][0];
    assert_eq!(
        (&ledger["host"], &ledger["state"]),
        (&"laptop".into(), &"in".into()),
        "{seen}"
    );
    assert!(!is_open(&seen), "it was used: {seen}");
    let spent = reader
        .document(&["spend", "--fleet", "--by", "host,lane"])
        .await;
    let row = &spent["rows"][0];
    assert_eq!(
        (&row["host"], &row["requests"]),
        (&"laptop".into(), &1.into()),
        "{spent}"
    );
    assert_eq!(
        spent["total"]["billed_micro_usd"],
        sandbox.debited().await,
        "{spent}"
    );
    let csv = reader.gives(&["spend", "--fleet", "--csv"]).await;
    assert!(
        csv.out
            .starts_with("host,requests,billed_micro_usd,in_doubt,unreported\nlaptop,1,"),
        "{}",
        csv.out
    );
    let billed = format!("0.{:06}", sandbox.debited().await);
    let figure = [
        "reconcile",
        "--fleet",
        "--billed-usd",
        &billed,
        "--since",
        "24h",
    ];
    let equal = reader.document(&figure).await;
    assert_eq!(equal["conclusion"], "equal", "{equal}");
    assert_eq!(equal["hosts"][0]["host"], "laptop", "{equal}");
    let tables: [(&[&str], &str); 4] = [
        (
            &["spend", "--fleet", "--by", "host,app,lane,state"],
            "host,app,lane,state,requests,",
        ),
        (
            &["fleet", "status"],
            "ledger,host,bursar,state,heard,lines_behind,",
        ),
        (&["fleet", "caps"], "cap,period,time_zone,since,until,"),
        (&figure, "name,value"),
    ];
    for (words, header) in tables {
        let table = reader.gives(words).await;
        assert_eq!(table.code, Some(0), "{words:?}: {}", table.err);
        let widest = table.out.lines().map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|wide| wide <= 80),
            "{words:?}\n{}",
            table.out
        );
        let csv = reader.gives(&[words, &["--csv"]].concat()).await;
        assert!(csv.out.starts_with(header), "{words:?}\n{}", csv.out);
    }
    // A reader lets nobody in.
    let refused = reader.gives(&["fleet", "invite"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("bursar_operator"), "{}", refused.err);

    daemon.signal(Signal::TERM);
    daemon.ended().await;
    let state_text = state.to_str().expect("UTF-8");
    let left = given(
        &[
            "fleet",
            "leave",
            "--config",
            named,
            "--state-dir",
            state_text,
        ],
        "",
    )
    .await;
    assert_eq!(left.code, Some(0), "{}", left.err);
    let text = std::fs::read_to_string(&config).expect("it is there");
    assert!(
        !text.contains("url_file") && text.contains("ship_interval_s = 1"),
        "{text}"
    );
    let seen = reader.document(&["fleet", "status"]).await;
    assert_eq!(seen["ledgers"][0]["state"], "left", "{seen}");

    // It comes back under its name: what it shipped is not shipped again.
    let other = operator.document(&["fleet", "invite"]).await;
    let code = other["code"].as_str().expect("a code");
    let typed = format!("{}\n{code}\n", postgres.url("node", DATABASE));
    let joined = joins(&config, &["--host-label", "laptop"], &typed).await;
    assert_eq!(joined.code, Some(0), "{}", joined.err);
    let daemon = Daemon::start(&sandbox.url(), &state, &["--config", named]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("two")))
        .await;
    assert_eq!(app.answer().await.status, 200);
    is_shipped(&postgres, 2).await;
    daemon.terminate().await;
    let seen = reader.document(&["fleet", "status"]).await;
    assert_eq!(seen["ledgers"].as_array().map(Vec::len), Some(1), "{seen}");
    let ledger = seen["ledgers"][0]["ledger"].as_str().expect("an id");
    let revoked = operator.document(&["fleet", "revoke", &ledger[20..]]).await;
    assert_eq!(revoked["revoked"], true);
    let seen = reader.document(&["fleet", "status"]).await;
    assert_eq!(seen["ledgers"][0]["state"], "revoked", "{seen}");
    let spent = reader.document(&["spend", "--fleet"]).await;
    assert_eq!(spent["total"]["requests"], 2, "{spent}");
}

/// Nothing is written by a join that would not work.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_join_that_would_not_work_says_why_and_changes_nothing() {
    let postgres = fleet();
    let url = postgres.url("node", DATABASE);
    let code = format!("{}1", super::CODE);
    let cases = [
        (String::new(), "no URL was given"),
        (format!("{url}\n"), "no code was given"),
        (
            format!("{url}\nno-such-code-at-all-1234\n"),
            "not known, was used, or has expired",
        ),
        (
            format!("{}\n{code}\n", postgres.url("reader", DATABASE)),
            "GRANT bursar_node",
        ),
        (
            format!("{}\n{code}\n", postgres.url("node", "postgres")),
            "no schema of a fleet",
        ),
        (
            format!("mysql://a@b/c\n{code}\n"),
            "no address of a PostgreSQL",
        ),
        (
            format!("postgresql://node@db.invalid/fleet?sslmode=require\n{code}\n"),
            "sslmode=verify-full",
        ),
    ];
    let typed = format!("{url}\n{code}\n");
    let versions = [
        (99, typed.clone(), "version 99"),
        (99, typed.clone(), "install a newer bursar"),
        (1, typed, "bursar fleet schema | psql"),
    ];
    let cases = cases.map(|(typed, why)| (bursar::fleet::schema::VERSION, typed, why));
    for (version, typed, why) in cases.into_iter().chain(versions) {
        let set = format!("UPDATE bursar_fleet.about SET version = {version}");
        postgres.sql(DATABASE, &set);
        let (folder, config) = machine();
        let before = std::fs::read_to_string(&config).expect("it is there");
        let done = joins(&config, &[], &typed).await;
        assert_ne!(done.code, Some(0), "{why}");
        assert!(done.err.contains(why), "{why}: {}", done.err);
        assert_eq!(
            std::fs::read_to_string(&config).expect("it is there"),
            before
        );
        let files = std::fs::read_dir(folder.path())
            .expect("a directory")
            .count();
        assert_eq!(files, 1, "{why}");
    }
    let (_folder, config) = machine();
    let done = joins(&config, &[&url], "").await;
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(
        done.err.contains("every user of this machine"),
        "{}",
        done.err
    );
}

/// A freeze is for every machine that has the key: trouble with its lines keeps none from hearing it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_freeze_is_heard_where_nothing_can_be_shipped_and_by_a_ledger_that_was_shut_out() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let sandbox = Sandbox::start().await;
    let member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.buy("shipped").await;
    is_shipped(&postgres, 1).await;
    let ship = "ON FUNCTION bursar_fleet.ship";
    postgres.sql(DATABASE, &format!("REVOKE EXECUTE {ship} FROM bursar_node"));
    member.buy("not shipped").await;

    operator.document(&["fleet", "freeze"]).await;
    is_frozen(&member, true).await;
    operator.document(&["fleet", "thaw"]).await;
    is_frozen(&member, false).await;
    postgres.sql(DATABASE, &format!("GRANT EXECUTE {ship} TO bursar_node"));
    is_shipped(&postgres, 2).await;

    let seen = operator.document(&["fleet", "status"]).await;
    let ledger = seen["ledgers"][0]["ledger"].as_str().expect("an id");
    operator.document(&["fleet", "revoke", ledger]).await;
    member.buy("of a ledger that was shut out").await;
    operator.document(&["fleet", "freeze"]).await;
    is_frozen(&member, true).await;
    operator.document(&["fleet", "thaw"]).await;
    is_frozen(&member, false).await;
    assert_eq!(super::summed(&postgres).0, 2);
}
