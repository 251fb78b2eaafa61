//! `bursar status`: the running daemon on one screen. `bursar env`: what a shell sets so that its programs spend through
//! the daemon.
//!
//! Promise: nothing is changed and nothing is bought; a figure that is not known is said to be, and is never 0; no
//! secret is printed. Without a running daemon the exit code is 1, and what the ledger's files say is shown. What a
//! shell is given to run holds an address and a file's name, and no text of a daemon; a daemon that was only found at a
//! port, where any user may listen, gets no app's requests, and no port gets a token.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::arguments::{Form, FormArgs};
use super::caps;
use super::cells::{counted, state, tail};
use super::client::Client;
use super::clients::{Client as KnownClient, known_client};
use super::csv;
use super::daemon::{Question, ask};
use super::error::CliError;
use super::locate::SourceArgs;
use super::look::{Ink, Look};
use super::output::{remark, say, say_document};
use super::runtime::block_on;
use super::source::Source;
use crate::admin::documents::{
    EntryDocument, FleetStatus, SpendDocument, SpendQuestion, StatusDocument, TrafficStatus,
};
use crate::admin::runs;
use crate::calendar;
use crate::caps::{CapView, CapsView, SharedCapView};
use crate::clock::SystemClock;
use crate::config::ListenAddr;
use crate::ledger::entry::StateWord;
use crate::ledger::query::{EntryView, Filter, GroupBy};
use crate::screen::shown;

/// What a client is given as its key where callers need none.
const NO_TOKEN: &str = "none";

/// Width of a label with its gap.
const LABEL: usize = 12;

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, clap::Args)]
pub struct EnvArgs {
    /// Program that spends, such as codex or claude: its own variables, and what else it needs
    #[arg(value_name = "CLIENT")]
    client: Option<String>,
    /// File that holds an app's token; the printed line reads it, and no token is printed
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// `bursar env --json`.
#[derive(Serialize)]
struct EnvDocument {
    /// `null`: an app's token, which is in `token_file` or has to be made.
    variables: BTreeMap<&'static str, Option<String>>,
    /// What stands before the client's own arguments.
    arguments: Vec<String>,
    /// Callers without a token are refused.
    token_needed: bool,
    token_file: Option<String>,
}

/// The figures of the screen.
#[derive(Serialize)]
struct StatusScreen {
    /// `None`: no daemon answers.
    daemon: Option<StatusDocument>,
    today: SpendDocument,
    caps: CapsView,
}

/// `bursar status --json`.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    screen: &'a StatusScreen,
    /// The newest request that failed or whose price is in doubt.
    last_problem: Option<EntryDocument>,
}

pub fn status(args: &StatusArgs) -> Result<(), CliError> {
    let (source, zone, screen, last) = block_on(async {
        let source = args.source.find().await?;
        let zone = args.source.zone(&source, None).await?;
        let screen = StatusScreen::read(&source, &args.source, &zone).await?;
        let last = last_problem(&source).await?;
        Ok::<_, CliError>((source, zone, screen, last))
    })?;
    let whole = |last: Option<EntryView>| Whole {
        screen: &screen,
        last_problem: last.map(EntryDocument),
    };
    match args.form.form() {
        Form::Json => say_document(&whole(last))?,
        Form::Csv => csv::say_members(&whole(last))?,
        Form::Text(look) => say(screen.text(last.as_ref(), &zone, &look))?,
    }
    source.must_be_daemon()
}

pub fn env(args: &EnvArgs) -> Result<(), CliError> {
    let client = args.client.as_deref().map(known_client).transpose()?;
    let daemon: StatusDocument = block_on(async {
        match args.source.find_trusted().await? {
            Some(client) if args.token_file.is_some() && is_port(&client) => {
                Err(CliError::usage(format_args!(
                    "{} is a port, where any user of this machine may listen, and no app's token goes to one: name \
                     the daemon's socket, --admin unix:/PATH, or its --state-dir DIR",
                    client.address()
                )))
            }
            Some(client) => ask(&client, &Question::new("/api/status")).await,
            None => Err(CliError::Failed(
                "no daemon answers at a socket of this user's or of the system service (group bursar-read). One \
                 that is known to be bursar at a port can be named: --admin 127.0.0.1:8328"
                    .to_owned(),
            )),
        }
    })?;
    let Some(root) = root_url(&daemon) else {
        return Err(CliError::Failed(format!(
            "the daemon listens on {} alone, which no variable of a client names",
            daemon.proxy.join(", ")
        )));
    };
    if args.json {
        return say_document(&EnvDocument::new(args, client, &daemon, &root));
    }
    let token = match (&args.token_file, daemon.anonymous) {
        (Some(file), _) => {
            let file = file.display().to_string().replace('\'', "'\\''");
            Some(format!("\"$(cat '{file}')\""))
        }
        // Clients refuse to start without one.
        (None, true) => Some(NO_TOKEN.to_owned()),
        (None, false) => None,
    };
    match client {
        Some(client) => say(client.shell(&root, token.as_deref()))?,
        None => {
            say(format_args!("export OPENAI_BASE_URL={root}/v1"))?;
            if let Some(token) = &token {
                say(format_args!("export OPENAI_API_KEY={token}"))?;
            }
        }
    }
    if token.is_none() {
        let client = client.map(|client| format!(" {}", client.name));
        remark(format_args!(
            "bursar: callers need a token: `bursar app add NAME >FILE` makes one, and `bursar env --token-file FILE{}` \
             names it",
            client.unwrap_or_default()
        ));
    }
    Ok(())
}

fn is_port(client: &Client) -> bool {
    matches!(client.address(), ListenAddr::Tcp(_))
}

/// What was spent since midnight.
pub fn today(by: Vec<GroupBy>, now_ms: u64, zone: &TimeZone) -> SpendQuestion {
    SpendQuestion {
        since_ms: calendar::midnight_ms(now_ms, zone),
        until_ms: None,
        by,
        // A zone without a name cannot be sent to a daemon; nothing is grouped by day.
        zone: match zone.iana_name() {
            Some(_) => zone.clone(),
            None => TimeZone::UTC,
        },
    }
}

/// The first address that a client can be given. It is written anew from what was read: a shell runs this, and what
/// answered at a port may be no daemon.
fn root_url(daemon: &StatusDocument) -> Option<String> {
    let proxy = daemon.proxy.iter();
    let proxy: Vec<ListenAddr> = proxy
        .filter_map(|address| ListenAddr::parse(address).ok())
        .collect();
    runs::base_url(&proxy)
}

/// The same as a client of OpenAI's kind takes it.
fn base_url(daemon: &StatusDocument) -> Option<String> {
    root_url(daemon).map(|url| format!("{url}/v1"))
}

// === impl EnvDocument ===

impl EnvDocument {
    fn new(
        args: &EnvArgs,
        client: Option<&KnownClient>,
        daemon: &StatusDocument,
        root: &str,
    ) -> Self {
        let settings = client.map_or_else(
            || {
                let base_url = Some(format!("{root}/v1"));
                vec![("OPENAI_BASE_URL", base_url), ("OPENAI_API_KEY", None)]
            },
            |client| client.settings(root),
        );
        let is_open = args.token_file.is_none() && daemon.anonymous;
        let filled = |value: Option<String>| value.or(is_open.then(|| NO_TOKEN.to_owned()));
        let variables = settings.into_iter();
        Self {
            variables: variables
                .map(|(name, value)| (name, filled(value)))
                .collect(),
            arguments: client
                .map(|client| client.arguments(root))
                .unwrap_or_default(),
            token_needed: !daemon.anonymous,
            token_file: args
                .token_file
                .as_ref()
                .map(|file| file.display().to_string()),
        }
    }
}

// === impl StatusScreen ===

impl StatusScreen {
    async fn read(source: &Source, args: &SourceArgs, zone: &TimeZone) -> Result<Self, CliError> {
        let now_ms = SystemClock::shared().wall_ms();
        let today = today(Vec::new(), now_ms, zone);
        let daemon = match source {
            Source::Daemon(client) => Some(ask(client, &Question::new("/api/status")).await?),
            Source::Journal(_) => None,
        };
        Ok(Self {
            daemon,
            today: source.spend(&today).await?,
            caps: caps::view(source, args, now_ms).await?,
        })
    }

    fn text(&self, last_problem: Option<&EntryView>, zone: &TimeZone, look: &Look) -> String {
        let mut lines: Vec<(&str, String)> = Vec::new();
        if let Some(daemon) = &self.daemon {
            lines.extend(daemon_lines(daemon, zone));
            let held = [held_back(daemon), self.orders_and_caps()].concat();
            lines.push(("held back", held_back_line(&held)));
            lines.push(("queue", queue(&daemon.traffic)));
            if !daemon.waits_for_restart.is_empty() {
                let keys = daemon.waits_for_restart.join(", ");
                lines.push((
                    "RESTART",
                    format!("{keys}: changed in the file, and not in force before"),
                ));
            }
        }
        let total = &self.today.total;
        let unknown = match total.in_doubt + total.unreported {
            0 => String::new(),
            _ => format!(
                "; not in it: {} in doubt, {} unreported",
                total.in_doubt, total.unreported
            ),
        };
        let requests = counted(total.requests, "request", "requests");
        let billed = total.billed_micro_usd;
        lines.push(("today", format!("{billed} over {requests}{unknown}")));
        for frozen in &self.caps.frozen {
            let since = calendar::shown(frozen.since_ms, zone);
            let thaw = if frozen.fleet {
                "bursar fleet thaw"
            } else {
                "bursar thaw"
            };
            lines.push((
                "FROZEN",
                match &frozen.app {
                    Some(app) => format!("{app}, since {since}: {thaw} {app}"),
                    None => format!("all apps, since {since}: {thaw}"),
                },
            ));
        }
        for cap in &self.caps.caps {
            lines.push(("cap", cap_line(cap)));
        }
        for cap in &self.caps.shared {
            lines.push(("shared cap", shared_line(cap)));
        }
        if let Some(daemon) = &self.daemon {
            lines.extend(ledger_lines(daemon));
            let fleet = daemon.fleet.as_ref();
            lines.extend(fleet.map(|fleet| ("fleet", fleet_line(fleet, zone))));
        }
        let problem = last_problem.map(|entry| {
            format!(
                "{} {} {} {}: bursar explain {}",
                calendar::shown(entry.at_ms, zone),
                shown(&entry.app),
                entry.operation,
                state(entry.state.word(), entry.state.reason()),
                tail(&entry.id)
            )
        });
        lines.push(("last error", problem.unwrap_or_else(|| "none".to_owned())));
        let lines = lines.into_iter();
        let lines: Vec<String> = lines
            .map(|(name, text)| {
                let line = format!("{name:<LABEL$}{}", shown(&text));
                let is_stopped = name == "FROZEN" || text.contains("NOT WRITABLE");
                let ink = if is_stopped { Ink::Red } else { Ink::Plain };
                look.inked(ink, look.wrapped(&line, LABEL))
            })
            .collect();
        lines.join("\n")
    }

    /// What stops paid requests by somebody's order.
    fn orders_and_caps(&self) -> Vec<String> {
        let frozen = self.caps.frozen.iter().map(|frozen| match &frozen.app {
            Some(app) => format!("{app} is frozen"),
            None => "all apps are frozen".to_owned(),
        });
        let reached = self.caps.caps.iter().filter(|cap| cap.left.is_zero());
        let reached =
            reached.map(|cap| format!("the {} cap of {} is reached", cap.period, cap.scope));
        let shared = self.caps.shared.iter();
        let shared = shared.filter(|cap| cap.open.is_zero() && cap.state != "leased");
        let shared = shared.map(|cap| {
            let says = caps::fleet_says(&cap.state);
            format!(
                "nothing is left here of the shared cap {} ({says})",
                cap.cap
            )
        });
        frozen.chain(reached).chain(shared).collect()
    }
}

/// The newest request that failed or whose price is in doubt.
async fn last_problem(source: &Source) -> Result<Option<EntryView>, CliError> {
    let mut last: Option<EntryView> = None;
    for state in [StateWord::Failed, StateWord::InDoubt] {
        let filter = Filter {
            state: Some(state),
            ..Filter::default()
        };
        let newest = source.receipts(&filter, 1).await?.entries.pop();
        let both = last.into_iter().chain(newest);
        last = both.max_by_key(|entry| entry.at_ms);
    }
    Ok(last)
}

fn daemon_lines(daemon: &StatusDocument, zone: &TimeZone) -> Vec<(&'static str, String)> {
    let minutes = daemon.uptime_s / 60;
    let up = match minutes / 60 {
        0 => format!("{minutes} min"),
        hours => format!("{hours} h {} min", minutes % 60),
    };
    let doing = if daemon.draining {
        "stopping"
    } else {
        "running"
    };
    let url = base_url(daemon).unwrap_or_else(|| daemon.proxy.join(", "));
    let callers = match daemon.anonymous {
        true => "any local process may spend: bursar app add NAME ends that",
        false => "a token is needed",
    };
    let config = match &daemon.config {
        Some(path) => shown(path).into_owned(),
        None => "none: the defaults".to_owned(),
    };
    vec![
        (
            "bursar",
            format!(
                "{} {doing} for {up}, process {}",
                daemon.version, daemon.pid
            ),
        ),
        ("base URL", format!("{url} ({callers})")),
        ("service", shown(&daemon.upstream).into_owned()),
        ("config", config),
        ("key", key(daemon, zone)),
    ]
}

/// What the answers of the service showed of the organization's key.
fn key(daemon: &StatusDocument, zone: &TimeZone) -> String {
    let at = |text: &str| moment(text, zone);
    let key = &daemon.key;
    let taken = match (&key.refused, &key.accepted, &key.answered) {
        (Some(refused), Some(accepted), _) => format!(
            "refused by the service at {}; accepted last at {}",
            at(refused),
            at(accepted)
        ),
        (Some(refused), None, _) => format!("refused by the service at {}", at(refused)),
        (None, Some(accepted), _) => {
            format!("accepted by the service, last at {}", at(accepted))
        }
        (None, None, Some(answered)) => format!(
            "no answer has shown yet whether the service accepts it; the last one came at {}",
            at(answered)
        ),
        (None, None, None) => "the key was not used yet: nothing is known of it".to_owned(),
    };
    match &key.balance_empty {
        Some(empty) => format!("{taken}; the balance was empty at {}", at(empty)),
        None => taken,
    }
}

/// A time of a document, as it is shown.
fn moment(text: &str, zone: &TimeZone) -> String {
    match calendar::instant(text, 0, zone) {
        Ok(at_ms) => calendar::shown(at_ms, zone),
        Err(_) => text.to_owned(),
    }
}

/// What the fleet's database has of this ledger.
fn fleet_line(fleet: &FleetStatus, zone: &TimeZone) -> String {
    let behind = match (&fleet.heard, fleet.lines_behind) {
        (None, _) => "not reached since the start".to_owned(),
        (Some(heard), None) => format!("heard at {}", moment(heard, zone)),
        (Some(heard), Some(0)) => format!("has everything, heard at {}", moment(heard, zone)),
        (Some(heard), Some(behind)) => format!(
            "{} behind, heard at {}",
            counted(behind, "line", "lines"),
            moment(heard, zone)
        ),
    };
    match &fleet.trouble {
        Some(trouble) => format!("{behind}; TROUBLE: {trouble}"),
        None => behind,
    }
}

/// What of the daemon holds requests back, by name.
pub fn held_back(daemon: &StatusDocument) -> Vec<String> {
    let causes = daemon.traffic.held_back_by.iter();
    let probed = |what: &str| format!("{what}; one request at a time probes it");
    let mut held: Vec<String> = causes
        .map(|cause| match cause.as_str() {
            "balance" => probed("the balance is empty (402)"),
            "key" => probed("the service refuses the key (401)"),
            "upstream" => probed("the service cannot be reached"),
            other => other.to_owned(),
        })
        .collect();
    if daemon.draining {
        held.push("bursar is stopping".to_owned());
    }
    if !daemon.ledger.writable {
        held.push("the ledger cannot be written".to_owned());
    }
    let traffic = &daemon.traffic;
    if traffic.waiting > 0 {
        let is_full = |limit: i64| traffic.at_service >= limit;
        held.push(
            match traffic.in_flight_limit.filter(|limit| is_full(*limit)) {
                Some(limit) => format!("all {limit} places at the service are taken"),
                None => "the requests of this minute are used up".to_owned(),
            },
        );
    }
    held
}

/// The same in one line.
pub fn held_back_line(held: &[String]) -> String {
    match held {
        [] => "nothing that bursar knows of".to_owned(),
        held => held.join("; "),
    }
}

pub fn queue(traffic: &TrafficStatus) -> String {
    let limit = |limit: Option<i64>, unit: &str| match limit {
        None => format!("no limit {unit}"),
        Some(limit) => format!("{limit} {unit}"),
    };
    format!(
        "{} waiting, {} at the service ({}, {})",
        traffic.waiting,
        traffic.at_service,
        limit(traffic.in_flight_limit, "at once"),
        limit(traffic.per_minute_limit, "a minute")
    )
}

fn cap_line(cap: &CapView) -> String {
    format!(
        "{} {}: {} of {} spent, {} held, {} left",
        cap.scope, cap.period, cap.spent, cap.limit, cap.held, cap.left
    )
}

/// What this machine has of a cap that many share.
fn shared_line(cap: &SharedCapView) -> String {
    let of = match (cap.limit, cap.period) {
        (Some(limit), Some(period)) => format!("{} {period}, {limit} in all", cap.cap),
        _ => cap.cap.clone(),
    };
    format!(
        "{of}: {} leased here, {} spent, {} held, {} left of it ({})",
        cap.leased,
        cap.spent,
        cap.held,
        cap.open,
        super::caps::fleet_says(&cap.state)
    )
}

fn ledger_lines(daemon: &StatusDocument) -> Vec<(&'static str, String)> {
    let ledger = &daemon.ledger;
    let state = match &ledger.unavailable {
        Some(why) => format!("NOT WRITABLE: {}", shown(why)),
        None if ledger.adding_up => "writable, its sums are being added up".to_owned(),
        None => "writable".to_owned(),
    };
    let mebibytes = ledger.journal_bytes.div_ceil(1 << 20);
    let mut lines = vec![(
        "ledger",
        format!("{}: {state}, {mebibytes} MiB", shown(&ledger.state_dir)),
    )];
    if let Some(count) = daemon.in_doubt.filter(|count| *count > 0) {
        let entries = counted(count, "entry", "entries");
        let text = format!("{entries} in all: bursar receipts --state in-doubt");
        lines.push(("in doubt", text));
    }
    lines
}

#[cfg(test)]
mod tests;
