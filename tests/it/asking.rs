//! Asking the ledger: every table fits 80 columns, in a pipe and in a terminal of that width; colours are for
//! terminals alone; each reading command has JSON and CSV; `spend` by every word and over every period.

use std::path::Path;
use std::time::Duration;

use bursar::calendar;
use bursar::clock::SystemClock;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::daemon::{Daemon, command};
use crate::support::wire::request;
use crate::support::{Sandbox, chat};

const SESSION: &str = "0190a6c1-7b3e-7c2f-9d41-5f0be2d73f0a";

/// Labels as long as they may be, or as they are in practice.
const OF_A_PERSON: [(&str, &str); 3] = [
    ("X-Claude-Code-Session-Id", SESSION),
    (
        "X-End-User",
        "a.person.with.a.long.name@a-department.of-a-company.example.org",
    ),
    (
        "X-Bursar-Tags",
        "customer=a-company-with-a-long-name-in-its-own-country.example",
    ),
];

/// A daemon with apps, caps and entries of several kinds.
struct Asked {
    _sandbox: Sandbox,
    _place: tempfile::TempDir,
    state: String,
    config: String,
    daemon: Daemon,
    /// The end of an entry's id.
    id: String,
}

impl Asked {
    async fn start() -> Self {
        let sandbox = Sandbox::start().await;
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
        let (state, config) = (path("state"), path("config.toml"));
        let text = "[listen]\nanonymous = true\n\
                    [caps]\ntime_zone = \"Pacific/Kiritimati\"\nday_micro_usd = 7000000\nmonth_micro_usd = 70000000\n\
                    [[app]]\nname = \"nightly-batch-of-all-reports\"\nuids = [4242]\ncap_day_micro_usd = 1000000\n\
                    [[app]]\nname = \"default\"\nuser_header = \"X-End-User\"\ntags = [\"customer\"]\n";
        std::fs::write(&config, text).expect("a configuration");
        let daemon = Daemon::start(&sandbox.url(), Path::new(&state), &["--config", &config]).await;
        let mut id = String::new();
        for (path, body) in [
            ("/v1/chat/completions", chat("one")),
            ("/v1/chat/completions", chat("two")),
            (
                "/v1/images/generations",
                r#"{"model":"auto","prompt":"a house"}"#.to_owned(),
            ),
            ("/v1/audio/speech", r#"{"text":"Good day."}"#.to_owned()),
            (
                "/v1/embeddings",
                r#"{"model":"auto","input":"a text"}"#.to_owned(),
            ),
        ] {
            let mut wire = daemon.connect().await;
            wire.send(request("POST", path, &OF_A_PERSON, &body)).await;
            let answer = wire.answer().await;
            let entry = answer.header("x-bursar-entry").expect("an entry");
            id = entry.rsplit('-').next().expect("its end").to_owned();
        }
        Self {
            _sandbox: sandbox,
            _place: place,
            state,
            config,
            daemon,
            id,
        }
    }

    fn arguments<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [
            words,
            &["--state-dir", &self.state, "--config", &self.config],
        ]
        .concat()
    }

    async fn said(&self, words: &[&str]) -> String {
        let done = command(&self.arguments(words))
            .output()
            .await
            .expect("it runs");
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{words:?}: {error}");
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    async fn json(&self, words: &[&str]) -> Value {
        let text = self.said(&[words, &["--json"]].concat()).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }

    /// What the same prints at a terminal of so many columns.
    async fn shown(&self, words: &[&str], columns: u16, variable: Option<(&str, &str)>) -> String {
        let own = command(&self.arguments(words));
        let mut terminal = Command::new("python3");
        terminal
            .args(["-c", TERMINAL, &columns.to_string()])
            .arg(own.as_std().get_program())
            .args(own.as_std().get_args())
            .env_remove("NO_COLOR")
            .envs(variable)
            .kill_on_drop(true);
        let ended = timeout(Duration::from_secs(20), terminal.output()).await;
        let output = ended.expect("it ends within 20 s").expect("python3 runs");
        String::from_utf8(output.stdout)
            .expect("UTF-8")
            .replace('\r', "")
    }
}

/// Runs a command at a terminal of a width and prints what it shows.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
columns, command = int(sys.argv[1]), sys.argv[2:]
child, keeper = pty.fork()
if child == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
shown = b""
while True:
    try:
        piece = os.read(keeper, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece
os.waitpid(child, 0)
os.write(1, shown)
"#;

/// The reading commands, but for `explain ID`.
const COMMANDS: &[&[&str]] = &[
    &["spend"],
    &["spend", "--by", "session"],
    &["spend", "--by", "user"],
    &["spend", "--by", "tag:customer"],
    &["spend", "--by", "app,session,model,day"],
    &["explain", "--session", SESSION],
    &["ledger", "verify"],
    &["spend", "--by", "app,operation,model"],
    &[
        "spend",
        "--by",
        "app,lane,operation,served-by,day,state,model,hour,week,month",
    ],
    &["receipts"],
    &["caps"],
    &["app", "list"],
    &["status"],
    &["reconcile"],
    &["reconcile", "--billed-usd", "0.5", "--since", "this month"],
];

fn is_narrow(text: &str, words: &[&str]) {
    assert!(!text.trim().is_empty(), "{words:?}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{words:?}: {line:?}\n{text}");
    }
}

#[tokio::test]
async fn every_table_fits_80_columns_and_a_wide_one_is_there_on_demand() {
    let asked = Asked::start().await;
    let explain = ["explain", asked.id.as_str()];
    for words in COMMANDS.iter().copied().chain([&explain[..]]) {
        // A reconcile that finds a difference exits with 1.
        let done = command(&asked.arguments(words))
            .output()
            .await
            .expect("it runs");
        let text = String::from_utf8(done.stdout).expect("UTF-8");
        is_narrow(&text, words);
        assert!(!text.contains('\u{1b}'), "{words:?}: a colour in a pipe");
        let plain = asked.shown(words, 80, Some(("NO_COLOR", "1"))).await;
        is_narrow(&plain, words);
        assert!(
            !plain.contains('\u{1b}'),
            "{words:?}: a colour with NO_COLOR"
        );
    }
    let narrow = asked.said(&["receipts"]).await;
    assert!(!narrow.contains("served by"), "{narrow}");
    for wide in [
        asked.said(&["receipts", "--wide"]).await,
        asked
            .shown(&["receipts"], 200, Some(("NO_COLOR", "1")))
            .await,
    ] {
        assert!(
            wide.contains("served by") && wide.contains("tokens"),
            "{wide}"
        );
    }
    let coloured = asked.shown(&["receipts"], 80, None).await;
    assert!(coloured.contains("\u{1b}[1m"), "{coloured:?}");
    asked.daemon.terminate().await;
}

#[tokio::test]
async fn every_reading_command_has_json() {
    let asked = Asked::start().await;
    let explain = ["explain", asked.id.as_str()];
    let others: [&[&str]; 7] = [
        &explain,
        &["check", "--upstream", "http://127.0.0.1:9"],
        &["line"],
        &["env"],
        &["env", "codex", "--token-file", "/run/token"],
        &["top"],
        &["doctor"],
    ];
    for words in COMMANDS.iter().chain(&others) {
        let whole = [&asked.arguments(words)[..], &["--json"]].concat();
        let done = command(&whole).output().await.expect("it runs");
        let text = String::from_utf8(done.stdout).expect("UTF-8");
        assert!(!text.is_empty(), "{words:?}");
        for line in text.lines() {
            let document = serde_json::from_str::<Value>(line);
            assert!(
                document.is_ok_and(|found| found.is_object()),
                "{words:?}: {line}"
            );
        }
    }
    let checked = asked
        .json(&["check", "--upstream", "http://127.0.0.1:9"])
        .await;
    assert_eq!(checked["in_force"]["caps"]["day_micro_usd"], 7_000_000);
    assert_eq!(checked["file"], asked.config.as_str());
    let line = asked.json(&["line"]).await;
    let text = line["line"].as_str().expect("a line");
    assert!(text.contains("of $7.00 today"), "{line}");
    assert_eq!(line["day"]["writable"], true, "{line}");
    let codex = asked
        .json(&["env", "codex", "--token-file", "/run/token"])
        .await;
    assert_eq!(codex["variables"]["OPENAI_API_KEY"], Value::Null);
    assert_eq!(codex["token_file"], "/run/token");
    assert!(
        codex["arguments"]
            .as_array()
            .is_some_and(|them| !them.is_empty())
    );
    let shell = asked.json(&["env"]).await;
    let base_url = format!("http://{}/v1", asked.daemon.proxy);
    assert_eq!(shell["variables"]["OPENAI_BASE_URL"], base_url);
    assert_eq!(shell["token_needed"], false, "{shell}");
    asked.daemon.terminate().await;
}

/// The rows of comma-separated values without quotes.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[tokio::test]
async fn every_reading_command_has_comma_separated_values() {
    let asked = Asked::start().await;
    let table: [(&[&str], &str, usize); 9] = [
        (
            &["spend", "--by", "operation,model"],
            "operation,model,requests,billed_micro_usd,",
            4,
        ),
        (&["receipts", "--limit", "2"], "id,seq,at,local_time,", 2),
        (&["explain", &asked.id], "id,seq,at,local_time,", 1),
        (&["caps"], "scope,period,limit_micro_usd,", 3),
        (&["app", "list"], "name,token,uids,", 1),
        (&["top"], "app,today_micro_usd,last_minute_micro_usd,", 1),
        (&["status"], "name,value", 40),
        (&["ledger", "verify"], "name,value", 15),
        (&["reconcile"], "name,value", 5),
    ];
    for (words, header, count) in table {
        let text = asked.said(&[words, &["--csv"]].concat()).await;
        let rows = rows(&text);
        assert!(text.starts_with(header), "{words:?}: {text}");
        let is_count = if header == "name,value" {
            rows.len() > count
        } else {
            rows.len() == count + 1
        };
        assert!(is_count, "{words:?}: {text}");
    }
    let of_a_session = ["explain", "--session", SESSION, "--csv"];
    let of_a_session = asked.said(&of_a_session).await;
    assert!(
        of_a_session.starts_with("id,seq,at,local_time,"),
        "{of_a_session}"
    );
    assert!(rows(&of_a_session).len() > 1, "{of_a_session}");
    let build = command(&["version", "--csv"])
        .output()
        .await
        .expect("it runs");
    let build = String::from_utf8(build.stdout).expect("UTF-8");
    assert!(build.starts_with("name,value\nversion,"), "{build}");
    let checks = ["doctor", "--csv", "--state-dir", &asked.state];
    let checks = command(&checks).output().await.expect("it runs");
    let checks = String::from_utf8(checks.stdout).expect("UTF-8");
    assert!(
        checks.starts_with("check,what,verdict,found,remedy\ndaemon,"),
        "{checks}"
    );
    // An estimate over some answers does not stand beside the sum of all of them.
    let text = asked.said(&["spend", "--csv"]).await;
    let header = text.lines().next().expect("a header");
    let of_estimates = header
        .split(',')
        .filter(|name| name.contains("would_have_cost"));
    assert_eq!(
        of_estimates.collect::<Vec<_>>(),
        ["compared_would_have_cost_micro_usd"]
    );
    asked.daemon.terminate().await;
}

/// "today" and the clock times are those of the caps on every screen.
#[tokio::test]
async fn the_live_screen_and_the_page_count_the_day_of_the_caps() {
    let asked = Asked::start().await;
    let zone = calendar::zone(Some("Pacific/Kiritimati")).expect("a zone");
    let minute = || {
        let now = calendar::shown(SystemClock::shared().wall_ms(), &zone);
        now[.."2026-01-31 08:00".len()].to_owned()
    };
    let before = minute();
    let screen = asked.said(&["top", "--once"]).await;
    assert!(
        screen.contains(&before) || screen.contains(&minute()),
        "not {before}:\n{screen}"
    );
    let page = asked.daemon.admin_page("/").await;
    assert!(
        page.text().contains("Times and days: Pacific/Kiritimati"),
        "{}",
        page.text()
    );
    asked.daemon.terminate().await;
}

#[tokio::test]
async fn spend_is_asked_by_each_word_and_over_each_period_and_its_total_stays() {
    let asked = Asked::start().await;
    let words = "app,lane,operation,served-by,day,state,model,hour,week,month";
    let whole = asked.json(&["spend"]).await;
    assert_eq!(whole["requests"], 5);
    assert_eq!(whole["time_zone"], "Pacific/Kiritimati", "the caps' days");
    let admin = asked.daemon.admin.to_string();
    for word in words.split(',') {
        let label = word.replace('-', "_");
        let mut answers = vec![asked.json(&["spend", "--by", word]).await];
        // The daemon itself answers the same.
        let mut daemons = command(&["spend", "--by", word, "--json", "--admin", &admin]);
        let done = daemons.output().await.expect("it runs");
        answers.push(serde_json::from_slice(&done.stdout).expect("JSON"));
        assert_eq!(answers[0], answers[1], "{word}");
        assert_eq!(
            answers[0]["billed_micro_usd"], whole["billed_micro_usd"],
            "{word}"
        );
        let rows = answers[0]["rows"].as_array().expect("rows");
        let requests: u64 = rows.iter().filter_map(|row| row["requests"].as_u64()).sum();
        assert_eq!(requests, 5, "{word}");
        assert!(
            rows.iter().all(|row| row[&label].is_string()),
            "{word}: {rows:?}"
        );
    }
    let models = asked.json(&["spend", "--by", "model"]).await;
    let models = models["rows"].as_array().expect("rows");
    let models: Vec<_> = models
        .iter()
        .map(|row| row["model"].as_str().expect("a model"))
        .collect();
    assert!(
        models.contains(&"auto") && models.contains(&"-"),
        "{models:?}"
    );
    for period in [
        "today",
        "this hour",
        "this week",
        "this month",
        "this-year",
        "last year",
        "24h",
        "1w",
        "2026-01",
    ] {
        // The machine's clock may stand just behind the beginning of an hour.
        let sums = asked.json(&["spend", "--since", period]).await;
        assert!(sums["requests"].as_u64() <= Some(5), "{period}");
    }
    let last = asked
        .json(&["spend", "--since", "last month", "--until", "this month"])
        .await;
    assert_eq!(last["requests"], 0);
    let mut mistaken = command(&asked.arguments(&["spend", "--since", "next month"]));
    let done = mistaken.output().await.expect("it runs");
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(
        error.contains("this or last hour, week, month or year"),
        "{error}"
    );
    asked.daemon.terminate().await;
}
