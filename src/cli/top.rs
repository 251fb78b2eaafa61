//! `bursar top`: who spends at this moment, drawn again every two seconds.
//!
//! The screen is drawn over itself line by line: nothing of the terminal's modes is changed, so there is nothing
//! that an end of any kind could leave behind. Behind a pipe, with `--once`, `--json` or `--csv`, it is one screen or document.
//!
//! Promise: no line is wider than 80 columns; amounts are the ledger's, in integers; what began in the last
//! quarter of an hour is held in memory as a few figures an entry, and read from the ledger once. A daemon that ends is
//! asked again when it is back; the ledger's files stand in for it.

use std::collections::{BTreeMap, HashMap};
use std::io::stdout;
use std::time::Duration;

use jiff::tz::TimeZone;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use tokio::signal::ctrl_c;

use super::cells::{amount, counted, tail};
use super::csv;
use super::daemon::{Question, ask};
use super::error::CliError;
use super::locate::SourceArgs;
use super::look::Look;
use super::output::{at_terminal, say, say_document};
use super::runtime::block_on;
use super::source::Source;
use super::status::{held_back, held_back_line, queue, today};
use super::table::TextTable;
use crate::admin::RECEIPTS_MAX;
use crate::admin::documents::{EntryDocument, SpendDocument, StatusDocument};
use crate::calendar;
use crate::clock::SystemClock;
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::{EntryView, Filter, GroupBy};
use crate::protocol::Escalated;
use crate::screen::{self, shown};

const PAUSE: Duration = Duration::from_secs(2);

/// Entries begun longer ago are not looked at again.
const BACK_MS: u64 = 15 * 60 * 1000;

/// What is counted as of late.
const WINDOW_S: u64 = 300;
const MINUTE_MS: u64 = 60 * 1000;

/// Rows of the two tables.
const APPS: usize = 6;
const RECEIPTS: usize = 6;

const COLUMNS: usize = 80;

/// The members of an app's load, as columns.
const LOAD: [&str; 8] = [
    "app",
    "today_micro_usd",
    "last_minute_micro_usd",
    "in_flight",
    "ended",
    "escalated",
    "not_escalated",
    "in_doubt",
];

/// From the upper left corner on; the first time over whatever stands there.
const HOME: &str = "\x1b[H";
const CLEAR: &str = "\x1b[2J\x1b[H";
const LINE_END: &str = "\x1b[K\n";
const REST: &str = "\x1b[J";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one screen and end, as behind a pipe
    #[arg(long)]
    once: bool,
    /// Print one JSON object and end
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print a row of comma-separated values for each app, behind a header row, and end
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// `bursar top --json`.
#[derive(Serialize)]
struct Frame {
    at: Option<String>,
    /// `null`: no daemon answers; the figures are from the files.
    daemon: Option<StatusDocument>,
    /// What `ended` and the three behind it are counted over.
    window_s: u64,
    apps: Vec<AppLoad>,
    /// The newest that ended, newest first.
    receipts: Vec<EntryDocument>,
}

/// What an app does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct AppLoad {
    app: String,
    today_micro_usd: MicroUsdSum,
    last_minute_micro_usd: MicroUsdSum,
    in_flight: u64,
    ended: u64,
    escalated: u64,
    not_escalated: u64,
    in_doubt: u64,
}

/// The entries of late, as the ledger's lines come.
#[derive(Default)]
struct Watch {
    seen: HashMap<EntryId, SeenEntry>,
    newest: Vec<EntryView>,
    after_seq: u64,
}

/// What is counted of an entry.
struct SeenEntry {
    app: String,
    begun_ms: u64,
    ended_ms: Option<u64>,
    state: State,
    escalated: Escalated,
}

/// What is drawn again and again.
struct LiveScreen<'a> {
    args: &'a Args,
    watch: Watch,
    /// What is asked.
    place: Option<(Source, TimeZone)>,
    /// What a person has to know of that, in lines. A line beside the screen would be drawn over.
    remarks: Vec<String>,
}

pub fn top(args: &Args) -> Result<(), CliError> {
    if args.once || args.json || args.csv || !at_terminal() {
        let (source, zone, frame) = block_on(async {
            let source = args.source.find().await?;
            let zone = zone(args, &source).await?;
            let frame = Watch::default().frame(&source, &zone).await?;
            Ok::<_, CliError>((source, zone, frame))
        })?;
        match args {
            Args { json: true, .. } => say_document(&frame)?,
            Args { csv: true, .. } => csv::say_documents(&LOAD, &frame.apps)?,
            _ => say(frame.lines(&zone).join("\n"))?,
        }
        return source.must_be_daemon();
    }
    block_on(live(args))
}

/// The zone whose day "today" is: that of the caps, as in `bursar status`.
async fn zone(args: &Args, source: &Source) -> Result<TimeZone, CliError> {
    args.source.zone(source, None).await
}

/// Draws until Ctrl-C.
async fn live(args: &Args) -> Result<(), CliError> {
    let mut interrupted = std::pin::pin!(ctrl_c());
    let mut screen = LiveScreen {
        args,
        watch: Watch::default(),
        place: None,
        remarks: Vec::new(),
    };
    let mut begin = CLEAR;
    loop {
        let lines = tokio::select! {
            lines = screen.lines() => lines,
            _ = &mut interrupted => return Ok(()),
        };
        draw(begin, &lines)?;
        begin = HOME;
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = &mut interrupted => return Ok(()),
        }
    }
}

fn draw(begin: &str, lines: &[String]) -> Result<(), CliError> {
    let height = tcgetwinsize(stdout()).map_or(24, |size| usize::from(size.ws_row));
    // The last row stays empty for what the shell writes behind.
    let shown = lines.iter().take(height.saturating_sub(1));
    let text: String = shown.map(|line| format!("{line}{LINE_END}")).collect();
    say(format_args!("{begin}{text}{REST}"))
}

// === impl LiveScreen ===

impl LiveScreen<'_> {
    /// What there is at this moment, or what went wrong.
    async fn lines(&mut self) -> Vec<String> {
        let drawn = self.drawn().await;
        drawn.unwrap_or_else(|error| {
            self.place = None;
            vec![shown(&error.to_string()).into_owned()]
        })
    }

    async fn drawn(&mut self) -> Result<Vec<String>, CliError> {
        if !self.is_found().await {
            // Perhaps a daemon with another ledger.
            self.watch = Watch::default();
            self.remarks.clear();
            let look = Look::of_width(COLUMNS);
            let say = &mut |words: String| {
                let lines = look.wrapped(&shown(&words), 0);
                self.remarks.extend(lines.lines().map(str::to_owned));
            };
            let source = self.args.source.find_saying(say).await?;
            let zone = zone(self.args, &source).await?;
            self.place = Some((source, zone));
        }
        let Some((source, zone)) = &self.place else {
            return Ok(Vec::new());
        };
        let mut lines = self.remarks.clone();
        lines.extend(self.watch.frame(source, zone).await?.lines(zone));
        Ok(lines)
    }

    /// Files are read only until a daemon comes, or comes back.
    async fn is_found(&self) -> bool {
        match &self.place {
            None => false,
            Some((Source::Daemon(_), _)) => true,
            Some((Source::Journal(_), _)) => {
                let status = Question::new("/api/status");
                let asked = self.args.source.ask_quickly(&status, PAUSE).await;
                !matches!(asked, Ok(Some((StatusDocument { .. }, _))))
            }
        }
    }
}

// === impl Watch ===

impl Watch {
    /// What there is at this moment.
    async fn frame(&mut self, source: &Source, zone: &TimeZone) -> Result<Frame, CliError> {
        let now_ms = SystemClock::shared().wall_ms();
        let daemon = match source {
            Source::Daemon(client) => Some(ask(client, &Question::new("/api/status")).await?),
            Source::Journal(_) => None,
        };
        let by_app = source
            .spend(&today(vec![GroupBy::App], now_ms, zone))
            .await?;
        self.follow(source, now_ms).await?;
        let receipts = self.newest.iter().rev().cloned();
        Ok(Frame {
            at: calendar::rfc3339(now_ms),
            daemon,
            window_s: WINDOW_S,
            apps: self.loads(&by_app, now_ms),
            receipts: receipts.map(EntryDocument).collect(),
        })
    }

    /// Reads what has happened since.
    async fn follow(&mut self, source: &Source, now_ms: u64) -> Result<(), CliError> {
        if self.after_seq == 0 {
            let newest = source.receipts(&Filter::default(), RECEIPTS).await?;
            newest
                .entries
                .into_iter()
                .for_each(|entry| self.take(entry));
        }
        loop {
            let filter = Filter {
                since_ms: now_ms.checked_sub(BACK_MS),
                after_seq: Some(self.after_seq),
                ..Filter::default()
            };
            let listing = source.receipts(&filter, RECEIPTS_MAX).await?;
            let are_all = listing.entries.len() < RECEIPTS_MAX;
            let before = self.after_seq;
            self.after_seq = before.max(listing.last_seq.unwrap_or(0));
            listing
                .entries
                .into_iter()
                .for_each(|entry| self.take(entry));
            if are_all || self.after_seq == before {
                break;
            }
        }
        self.forget(now_ms);
        Ok(())
    }

    fn take(&mut self, entry: EntryView) {
        let seen = SeenEntry {
            app: entry.app.to_string(),
            begun_ms: entry.at_ms,
            ended_ms: entry.ended_ms,
            state: entry.state,
            escalated: entry.escalated,
        };
        self.seen.insert(entry.id, seen);
        if entry.state != State::Open {
            self.newest.retain(|known| known.id != entry.id);
            self.newest.push(entry);
            self.newest.sort_by_key(|known| known.ended_ms);
            let more = self.newest.len().saturating_sub(RECEIPTS);
            self.newest.drain(..more);
        }
    }

    fn forget(&mut self, now_ms: u64) {
        self.seen.retain(|_, entry| match entry.ended_ms {
            Some(ended_ms) => now_ms.saturating_sub(ended_ms) <= WINDOW_S * 1000,
            None => now_ms.saturating_sub(entry.begun_ms) <= BACK_MS,
        });
    }

    /// The apps, those with the most in this minute first.
    fn loads(&self, today: &SpendDocument, now_ms: u64) -> Vec<AppLoad> {
        let mut loads: BTreeMap<&str, AppLoad> = BTreeMap::new();
        for row in &today.rows {
            if let Some(app) = row.labels.get(&GroupBy::App) {
                loads.entry(app).or_default().today_micro_usd = row.billed_micro_usd;
            }
        }
        for entry in self.seen.values() {
            let load = loads.entry(&entry.app).or_default();
            let Some(ended_ms) = entry.ended_ms.filter(|_| entry.state != State::Open) else {
                load.in_flight += 1;
                continue;
            };
            load.ended += 1;
            if now_ms.saturating_sub(ended_ms) <= MINUTE_MS {
                load.last_minute_micro_usd.add(entry.state.adds());
            }
            match entry.escalated {
                Escalated::True => load.escalated += 1,
                Escalated::False => load.not_escalated += 1,
                Escalated::Unknown => {}
            }
            load.in_doubt += u64::from(entry.state.reason().is_some());
        }
        let named = loads.into_iter().map(|(app, load)| AppLoad {
            app: app.to_owned(),
            ..load
        });
        let mut loads: Vec<AppLoad> = named.collect();
        loads.sort_by_key(|load| {
            let busy = (
                load.last_minute_micro_usd,
                load.in_flight,
                load.today_micro_usd,
            );
            std::cmp::Reverse(busy)
        });
        loads
    }
}

// === impl AppLoad ===

impl AppLoad {
    /// The sum over all apps.
    fn sum(loads: &[Self]) -> Self {
        let mut all = Self {
            app: "all".to_owned(),
            ..Self::default()
        };
        for load in loads {
            all.today_micro_usd.merge(load.today_micro_usd);
            all.last_minute_micro_usd.merge(load.last_minute_micro_usd);
            all.in_flight += load.in_flight;
            all.ended += load.ended;
            all.escalated += load.escalated;
            all.not_escalated += load.not_escalated;
            all.in_doubt += load.in_doubt;
        }
        all
    }

    fn cells(&self) -> [String; 7] {
        [
            cut(&self.app, 16),
            self.today_micro_usd.to_string(),
            self.last_minute_micro_usd.to_string(),
            self.in_flight.to_string(),
            self.ended.to_string(),
            self.escalation(),
            self.in_doubt.to_string(),
        ]
    }

    /// The share of the answers that say it.
    fn escalation(&self) -> String {
        let known = self.escalated + self.not_escalated;
        let percent = self.escalated.saturating_mul(100).checked_div(known);
        percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"))
    }
}

// === impl Frame ===

impl Frame {
    fn lines(&self, zone: &TimeZone) -> Vec<String> {
        let mut lines = self.head(zone);
        let mut table = TextTable::new("app|>today|>last minute|>running|>ended|>escal.|>doubt");
        self.apps
            .iter()
            .take(APPS)
            .for_each(|load| table.row(load.cells()));
        if self.apps.len() != 1 {
            table.rule();
            table.row(AppLoad::sum(&self.apps).cells());
        }
        lines.extend(table.to_string().lines().map(str::to_owned));
        let more = self.apps.len().saturating_sub(APPS);
        if more > 0 {
            lines.push(format!(
                "and {} in the sum",
                counted(more, "more app", "more apps")
            ));
        }
        lines.push(String::new());
        if self.receipts.is_empty() {
            lines.push("no receipts yet".to_owned());
        } else {
            lines.extend(
                self.receipt_rows(zone)
                    .to_string()
                    .lines()
                    .map(str::to_owned),
            );
        }
        let lines = lines.iter();
        lines.map(|line| cut(line, COLUMNS)).collect()
    }

    fn head(&self, zone: &TimeZone) -> Vec<String> {
        let now_ms = SystemClock::shared().wall_ms();
        let now = calendar::shown(now_ms, zone);
        let over = format!(
            "ended, escalated, in doubt: of the last {} min",
            self.window_s / 60
        );
        let mut lines = match &self.daemon {
            Some(daemon) => vec![
                format!("bursar {}  {now}  {}", daemon.version, daemon.upstream),
                format!("{} in flight; {}", daemon.in_flight, queue(&daemon.traffic)),
                format!("held back: {}", held_back_line(&held_back(daemon))),
            ],
            None => vec![format!(
                "bursar  {now}  no daemon answers: from the ledger's files"
            )],
        };
        lines.push(over);
        lines.push(String::new());
        lines
    }

    fn receipt_rows(&self, zone: &TimeZone) -> TextTable {
        let mut table = TextTable::new("ended|app|operation|state|>billed|>took|entry");
        for EntryDocument(entry) in &self.receipts {
            let ended = calendar::shown(entry.ended_ms.unwrap_or(entry.at_ms), zone);
            let time = ended.split_once(' ').map_or(&*ended, |(_, time)| time);
            let took = entry.timings.map(|timings| {
                let tenths = timings.total_ms / 100;
                format!("{}.{} s", tenths / 10, tenths % 10)
            });
            table.row([
                time.to_owned(),
                cut(&entry.app, 10),
                cut(entry.operation.as_str(), 10),
                cut(entry.state.word().as_str(), 11),
                amount(entry.billed_micro_usd),
                took.unwrap_or_else(|| "-".to_owned()),
                tail(&entry.id),
            ]);
        }
        table
    }
}

/// As a person may see it, in at most so many columns.
fn cut(text: &str, width: usize) -> String {
    screen::cut(&shown(text), width).into_owned()
}

#[cfg(test)]
mod tests;
