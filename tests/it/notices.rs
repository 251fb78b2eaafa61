//! A share of a cap that is used is told once, whatever ends the daemon; and a person can try how.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, eventually};

/// What it was given, as one line at the end of a file. With its end in one piece: the program may be killed behind it.
const WRITES: &str = r#"printf '%s\n' "$(cat)" >>"#;

struct Place {
    folder: tempfile::TempDir,
    origin: Origin,
}

impl Place {
    /// A service of which each answer costs 30 micro-dollars, and a configuration that tells by a program.
    async fn new(program: &str) -> Self {
        let command = Value::from(vec!["sh", "-c", program]);
        Self::telling(&format!("command = {command}")).await
    }

    /// The same with a way of its own.
    async fn telling(way: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a directory"),
            origin: Origin::always(Step::Answer(billed(30))).await,
        };
        let lines = format!("[caps]\nday_micro_usd = 100\nwarn_at = [0.5, 0.8]\n[notify]\n{way}\n");
        std::fs::write(place.at("config.toml"), lines).expect("a file");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn daemon(&self) -> Daemon {
        let config = self.at("config.toml").display().to_string();
        Daemon::start(
            &self.origin.url(),
            &self.at("state"),
            &["--config", &config],
        )
        .await
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let state = self.at("state").display().to_string();
        let whole = [arguments, &["--state-dir", &state]].concat();
        command(&whole).output().await.expect("it runs")
    }
}

/// A purchase of its own: an equal request behind a kill would be taken for the repeat of one that was not delivered.
async fn spend(daemon: &Daemon) {
    static SPENT: AtomicU32 = AtomicU32::new(0);
    let prompt = SPENT.fetch_add(1, Ordering::Relaxed).to_string();
    let mut wire = daemon.connect().await;
    wire.send(request("POST", "/v1/chat/completions", &[], &chat(&prompt)))
        .await;
    assert_eq!(wire.answer().await.status, 200);
}

/// The objects in a file, when there are so many.
async fn told(file: &Path, count: usize) -> Vec<Value> {
    eventually("the notice", || async {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let objects: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        (objects.len() >= count).then_some(objects)
    })
    .await
}

/// Of what is told later the file's order says that nothing was told twice before.
#[tokio::test]
async fn each_share_is_told_once_a_limit_whether_the_daemon_is_killed_stopped_or_the_cap_is_raised()
{
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("told");
    let program = format!("{WRITES}{}", file.display());
    let place = Place::new(&program).await;

    let daemon = place.daemon().await;
    spend(&daemon).await;
    spend(&daemon).await;
    told(&file, 1).await;
    daemon.kill().await;

    let daemon = place.daemon().await;
    spend(&daemon).await;
    told(&file, 2).await;
    daemon.terminate().await;

    let daemon = place.daemon().await;
    let raise = ["caps", "raise", "all", "day", "--to-usd", "0.0002"];
    let raised = place.run(&raise).await;
    assert!(raised.status.success(), "{raised:?}");
    spend(&daemon).await;
    let told = told(&file, 3).await;
    let figures = |notice: &Value| {
        let of = |name: &str| notice[name].clone();
        (
            of("threshold"),
            of("limit_micro_usd"),
            of("spent_micro_usd"),
        )
    };
    let wanted = [(0.5, 100, 60), (0.8, 100, 90), (0.5, 200, 120)];
    let wanted: Vec<_> = wanted
        .into_iter()
        .map(|(share, limit, spent)| (share.into(), limit.into(), spent.into()))
        .collect();
    assert_eq!(told.iter().map(figures).collect::<Vec<_>>(), wanted);
    for notice in &told {
        assert_eq!(notice["event"], "cap_warning");
        assert_eq!(notice["app"], Value::Null);
        assert_eq!(notice["cap"], "day");
    }
    daemon.terminate().await;
}

/// It was marked before it was sent.
#[tokio::test]
async fn a_daemon_that_dies_while_it_tells_does_not_tell_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("told");
    // It hangs behind the first.
    let program = format!("{WRITES}{}; sleep 9", file.display());
    let place = Place::new(&program).await;
    let daemon = place.daemon().await;
    spend(&daemon).await;
    spend(&daemon).await;
    told(&file, 1).await;
    daemon.kill().await;
    let daemon = place.daemon().await;
    spend(&daemon).await;
    let told = told(&file, 2).await;
    assert_eq!(told[0]["threshold"], 0.5);
    assert_eq!(told[1]["threshold"], 0.8);
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_of_the_daemon_has_none_of_its_files_open_and_a_trial_says_how_it_went() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("open");
    let program = format!("ls -l /proc/$$/fd >{}; test ! -e /nowhere", file.display());
    let place = Place::new(&program).await;
    let without = place.run(&["caps", "notify"]).await;
    assert_eq!(without.status.code(), Some(1), "no daemon: {without:?}");
    let daemon = place.daemon().await;
    let tried = place.run(&["caps", "notify"]).await;
    assert!(tried.status.success(), "{tried:?}");
    let open = std::fs::read_to_string(&file).expect("the program ran");
    let target = |line: &str| line.split_once(" -> ").map(|(_, target)| target.to_owned());
    // What whoever runs the tests left open reaches every child.
    let given: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect();
    let is_its_own = |target: &str| {
        target.starts_with("pipe:") || target == "/dev/null" || Path::new(target) == file
    };
    let others: Vec<String> = open
        .lines()
        .filter_map(target)
        .filter(|target| !is_its_own(target) && !given.contains(target))
        .collect();
    assert!(open.contains(" -> "), "{open}");
    assert_eq!(others, Vec::<String>::new());
    daemon.terminate().await;

    let place = Place::new("exit 3").await;
    let daemon = place.daemon().await;
    let tried = place.run(&["caps", "notify"]).await;
    assert_eq!(tried.status.code(), Some(1));
    let words = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(words.contains("exit status: 3"), "{words}");
    daemon.terminate().await;
}

#[tokio::test]
async fn a_notice_goes_to_its_address_whatever_the_proxy_variables_say() {
    let receiver = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let elsewhere = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let place = Place::telling(&format!("url = \"{}/told\"", receiver.url())).await;
    let (upstream, state) = (place.origin.url(), place.at("state"));
    let config = place.at("config.toml").display().to_string();
    let mut arguments = run_arguments(&upstream, state.to_str().expect("a path"));
    arguments.extend_from_slice(&["--config", config.as_str()]);
    let mut starting = command(&arguments);
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        starting.env(name, elsewhere.url());
    }
    let daemon = Daemon::ready(starting).await;
    spend(&daemon).await;
    spend(&daemon).await;
    eventually("the notice of the cap", || async {
        (receiver.received().len() == 1).then_some(())
    })
    .await;
    let tried = place.run(&["caps", "notify"]).await;
    assert!(tried.status.success(), "{tried:?}");
    let received = receiver.received();
    let events = received.iter().map(|told| {
        assert_eq!(told.request_line(), "POST /told HTTP/1.1");
        let notice: Value = serde_json::from_slice(&told.body).expect("JSON");
        notice["event"].clone()
    });
    assert_eq!(events.collect::<Vec<_>>(), ["cap_warning", "trial"]);
    assert_eq!(elsewhere.connections(), 0);
    daemon.terminate().await;
}

/// Its connection is held until all requests are answered and the daemon has ended.
#[tokio::test]
async fn beside_a_receiver_that_never_answers_requests_are_served_and_billed_as_usual() {
    let receiver = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = receiver.local_addr().expect("an address");
    let place = Place::telling(&format!("url = \"http://{address}/told\"")).await;
    let daemon = place.daemon().await;
    spend(&daemon).await;
    spend(&daemon).await;
    let accepted = timeout(Duration::from_secs(10), receiver.accept()).await;
    let (mut silent, _) = accepted.expect("a notice").expect("a connection");
    let line = b"POST /told HTTP/1.1\r\n";
    let mut posted = vec![0; line.len()];
    silent.read_exact(&mut posted).await.expect("the notice");
    assert_eq!(posted, line);

    // Orders are taken, too.
    let raise = ["caps", "raise", "all", "day", "--to-usd", "0.001"];
    let raised = place.run(&raise).await;
    assert!(raised.status.success(), "{raised:?}");
    for _ in 0..8 {
        spend(&daemon).await;
    }
    let billed: Vec<_> = entries(&place.at("state"))
        .iter()
        .map(|entry| entry.billed_micro_usd.map(|billed| billed.get()))
        .collect();
    assert_eq!(billed, [Some(30); 10]);
    let metrics = daemon.admin_page("/metrics").await.text();
    let sent = r#"bursar_cap_notices_total{result="sent"} 0"#;
    assert!(metrics.contains(sent), "{metrics}");
    daemon.terminate().await;
    drop(silent);
}

/// Three trials and the notice of a cap at once, to a program that says when another one runs beside it.
#[tokio::test]
async fn one_notice_is_sent_at_a_time_a_trial_beside_others_too() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("told");
    let program = format!(
        "mkdir {0}.busy || echo '\"beside another\"' >>{0}; {WRITES}{0}; sleep 0.3; rmdir {0}.busy",
        file.display()
    );
    let place = Place::new(&program).await;
    let daemon = place.daemon().await;
    spend(&daemon).await;
    spend(&daemon).await;
    let tried =
        futures_util::future::join_all((0..3).map(|_| place.run(&["caps", "notify"]))).await;
    for tried in tried {
        assert!(tried.status.success(), "{tried:?}");
    }
    let told = told(&file, 4).await;
    let events = told.iter().map(|notice| notice["event"].as_str());
    let mut events: Vec<_> = events.collect();
    events.sort_unstable();
    let trial = Some("trial");
    assert_eq!(
        events,
        [Some("cap_warning"), trial, trial, trial],
        "{told:?}"
    );
    daemon.terminate().await;
}
