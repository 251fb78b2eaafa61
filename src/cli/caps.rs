//! `bursar caps`: what each cap has left, what it holds, and the most it can be overrun.
//!
//! Promise: integers and exact decimals; what is billed, what is held for prices that are not known and
//! what is reserved for requests under way stand apart.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::arguments::{Form, FormArgs, usd};
use super::cells::counted;
use super::csv;
use super::daemon::order;
use super::error::CliError;
use super::freeze::{by_fleet, caller, name, scope};
use super::locate::{Keeper, Right, SourceArgs};
use super::look::{Ink, Look};
use super::output::{remark, say, say_document};
use super::runtime::block_on;
use super::source::Source;
use super::table::TextTable;
use crate::admin::change::{NoticeSent, TryNotice};
use crate::admin::orders::RaiseOrder;
use crate::apps::{self, Declared, rules_of};
use crate::calendar;
use crate::caps::{
    CapView, CapsView, FrozenView, Orders, Period, Rules, SessionCapsView, SharedCapView, no_cap,
};
use crate::clock::SystemClock;
use crate::config::ALL_APPS;
use crate::money::MicroUsd;
use crate::screen::shown;

/// A trial may wait for one that is being sent: three tries of 5 s with pauses.
const TRIAL_DEADLINE: Duration = Duration::from_secs(40);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<CapsCommand>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum CapsCommand {
    /// Raise a cap until the current hour, day or month ends; --undo ends the raise earlier
    Raise(RaiseArgs),
    /// Have the running daemon send a trial by what [notify] names
    Notify(NotifyArgs),
}

#[derive(Debug, clap::Args)]
struct NotifyArgs {
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, clap::Args)]
struct RaiseArgs {
    /// The app whose cap is raised; all: the cap of all apps together
    #[arg(value_name = "APP|all", value_parser = name)]
    app: String,
    /// hour, day or month
    #[arg(value_name = "PERIOD", value_parser = period)]
    period: Period,
    /// The new limit, such as 7.50
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    #[arg(required_unless_present = "undo")]
    to_usd: Option<MicroUsd>,
    /// End a raise: the configured amount applies again
    #[arg(long, conflicts_with = "to_usd")]
    undo: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// What a raise came to: the document of `--json`.
#[derive(Serialize)]
struct RaiseDocument<'a> {
    order: &'a str,
    /// `null`: all apps together.
    app: Option<&'a str>,
    period: Period,
    limit_micro_usd: MicroUsd,
    by: String,
    /// A daemon runs, and obeys.
    in_force: bool,
    caps: &'a [CapView],
}

pub fn caps(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Some(CapsCommand::Raise(asked)) => return raise(asked),
        Some(CapsCommand::Notify(asked)) => return notify(asked),
        None => {}
    }
    let now_ms = SystemClock::shared().wall_ms();
    let view = block_on(async {
        let source = args.source.find().await?;
        view(&source, &args.source, now_ms).await
    })?;
    match args.form.form() {
        Form::Json => say_document(&view),
        Form::Csv => csv::say_documents(&COLUMNS, &view.caps),
        Form::Text(look) => say(report(&view, &look)),
    }
}

/// The columns of comma-separated values.
const COLUMNS: [&str; 12] = [
    "scope",
    "period",
    "limit_micro_usd",
    "configured_micro_usd",
    "spent_micro_usd",
    "held_micro_usd",
    "reserved_micro_usd",
    "left_micro_usd",
    "worst_case_micro_usd",
    "since_ms",
    "resets_at_ms",
    "refusals",
];

/// What each cap has left.
pub async fn view(source: &Source, args: &SourceArgs, now_ms: u64) -> Result<CapsView, CliError> {
    // A daemon has its own rules, and knows its fleet's orders; the files alone have neither.
    let (rules, fleet) = match source {
        Source::Daemon(_) => (Rules::none(), Orders::default()),
        Source::Journal(state_dir) => (rules(args, state_dir)?, by_fleet(args, state_dir, now_ms)?),
    };
    let mut view = source.caps(&rules, now_ms).await?;
    view.frozen
        .extend(FrozenView::list(&Orders::default(), &fleet));
    Ok(view)
}

/// Sent by the daemon: what it may do, and what its unit forbids it, is what is tried.
fn notify(asked: &NotifyArgs) -> Result<(), CliError> {
    let sent: NoticeSent = block_on(async {
        match asked.source.keeper(Right::Change).await? {
            Keeper::Daemon(daemon) => {
                let daemon = daemon.answering_within(TRIAL_DEADLINE);
                order(&daemon, "/api/caps/notify", &TryNotice {}).await
            }
            Keeper::Files(_) => Err(CliError::Failed(
                "no daemon answers, and it is the one that sends: start `bursar run`, or the system service".to_owned(),
            )),
        }
    })?;
    say(format_args!(
        "the trial arrived: {} (one that is real has \"event\": \"cap_warning\")",
        shown(&sent.way)
    ))
}

fn raise(asked: &RaiseArgs) -> Result<(), CliError> {
    let app = scope(Some(&asked.app));
    let (period, now_ms) = (asked.period, SystemClock::shared().wall_ms());
    let source = block_on(asked.source.find_to_order())?;
    let rules = match &source {
        Source::Daemon(_) => Rules::none(),
        Source::Journal(state_dir) => rules(&asked.source, state_dir)?,
    };
    let to = match asked.to_usd {
        Some(to) => to,
        None => configured(&block_on(source.caps(&rules, now_ms))?, app, period)?,
    };
    let view = match &source {
        Source::Daemon(client) => {
            let asked = RaiseOrder {
                app: app.map(str::to_owned),
                period,
                to_micro_usd: to,
            };
            block_on(order(client, "/api/caps/raise", &asked))?
        }
        Source::Journal(state_dir) => {
            let raise = rules.raise(app, period, to, now_ms);
            let raise = raise.map_err(|error| CliError::Failed(error.to_string()))?;
            Orders::order(state_dir, now_ms, |orders| orders.raise(raise, now_ms))?;
            block_on(source.caps(&rules, now_ms))?
        }
    };
    let whose = app.unwrap_or("all apps together");
    let by = caller();
    if asked.json {
        return say_document(&RaiseDocument {
            order: if asked.undo { "undo" } else { "raise" },
            app,
            period,
            limit_micro_usd: to,
            by,
            in_force: matches!(source, Source::Daemon(_)),
            caps: &view.caps,
        });
    }
    if asked.undo {
        say(format_args!(
            "the cap of {whose} is {to} for this {period} again, as configured (ordered by {by})"
        ))?;
    } else {
        say(format_args!(
            "the cap of {whose} is {to} for this {period} (ordered by {by})"
        ))?;
        for cap in tighter(&view, app, period, to) {
            remark(format_args!("bursar: {cap}"));
        }
    }
    Ok(())
}

/// The configured amount of a cap.
fn configured(view: &CapsView, app: Option<&str>, period: Period) -> Result<MicroUsd, CliError> {
    let scope = app.unwrap_or(ALL_APPS);
    let mut caps = view.caps.iter();
    let cap = caps.find(|cap| cap.scope == scope && cap.period == period);
    cap.map(|cap| cap.configured)
        .ok_or_else(|| CliError::Failed(no_cap(scope, period)))
}

/// Caps that hold beside the one that was raised and are reached before it, in words.
fn tighter(view: &CapsView, app: Option<&str>, period: Period, to: MicroUsd) -> Vec<String> {
    let own = app.unwrap_or(ALL_APPS);
    let caps = view.caps.iter().filter_map(|cap| {
        let (scope, of, limit) = (&*cap.scope, cap.period, cap.limit);
        let holds_beside = (scope == own && of > period)
            || (scope == ALL_APPS && app.is_some() && of >= period);
        (holds_beside && limit < to).then(|| {
            let whose = if scope == ALL_APPS { "all apps together" } else { scope };
            format!("the cap of {whose} is {limit} for the {of}, and is reached before {to}; see `bursar caps`")
        })
    });
    caps.collect()
}

/// Of the configuration, and of the apps that were added to this ledger, which have caps of their own.
fn rules(source: &SourceArgs, state_dir: &Path) -> Result<Rules, CliError> {
    let whereabouts = source.ledger.whereabouts()?;
    let table = apps::read(state_dir, &Declared::from(&whereabouts))?;
    Ok(rules_of(&table, &whereabouts.caps))
}

fn period(text: &str) -> Result<Period, String> {
    Period::from_word(text).ok_or_else(|| "hour, day or month is wanted".to_owned())
}

/// The answer for people.
fn report(view: &CapsView, look: &Look) -> String {
    let zone = view.time_zone.as_deref();
    let zone = zone.and_then(|name| TimeZone::get(name).ok());
    let zone = zone.unwrap_or_else(TimeZone::system);
    let frozen = view.frozen.iter().map(|frozen| {
        let since = calendar::shown(frozen.since_ms, &zone);
        let app = frozen.app.as_deref().unwrap_or("all apps");
        let text = format!("FROZEN since {since}: {app}, by {}", shown(&frozen.by));
        look.inked(Ink::Red, look.wrapped(&text, 0))
    });
    let mut lines: Vec<String> = frozen.collect();
    let mut table = TextTable::new(
        "cap of|=window|>+limit|>^limit|>spent|>held|>left|=+resets at|=^resets|>~reserved|>~worst case",
    );
    for cap in &view.caps {
        let raised = match cap.limit == cap.configured {
            true => "",
            false => " (raised)",
        };
        let ink = if cap.left.is_zero() {
            Ink::Red
        } else {
            Ink::Plain
        };
        let cells = [
            cap.scope.clone(),
            cap.period.to_string(),
            format!("{}{raised}", cap.limit),
            cap.limit.to_string(),
            cap.spent.to_string(),
            cap.held.to_string(),
            cap.left.to_string(),
            calendar::shown(cap.resets_at_ms, &zone),
            calendar::shown_short(cap.resets_at_ms, &zone),
            cap.reserved.to_string(),
            match cap.worst_case {
                Some(worst_case) => worst_case.to_string(),
                None => "limit + one request".to_owned(),
            },
        ];
        table.row_in(ink, cells);
    }
    if table.is_empty() && view.sessions.is_empty() && view.shared.is_empty() {
        lines.push("There is no cap. See [caps] and [[app]] in the configuration.".to_owned());
    } else if !table.is_empty() {
        lines.push(table.laid_out(look));
        let raised = view.caps.iter().filter(|cap| cap.limit != cap.configured);
        lines.extend(raised.map(|cap| {
            let (scope, period, limit) = (shown(&cap.scope), cap.period, cap.limit);
            let text = format!(
                "raised: the {period} of {scope} to {limit}, from {}",
                cap.configured
            );
            look.wrapped(&text, 0)
        }));
        lines.extend(WORST_CASE.map(|line| look.wrapped(line, 0)));
    }
    if !view.shared.is_empty() {
        lines.push(shared(&view.shared, look));
        let bounds = view.shared.iter().filter_map(shared_bound);
        lines.extend(bounds.map(|bound| look.wrapped(&bound, 0)));
        lines.push(look.wrapped(SHARED_WORST_CASE, 0));
    }
    lines.extend(
        view.sessions
            .iter()
            .map(|of| look.wrapped(&of_sessions(of), 0)),
    );
    if view.waiting > 0 {
        lines.push(format!(
            "{} for room below a cap.",
            counted(view.waiting, "request waits", "requests wait")
        ));
    }
    lines.join("\n")
}

/// Caps that many machines share, and what this one holds of them.
fn shared(caps: &[SharedCapView], look: &Look) -> String {
    let mut table = TextTable::new(
        "=shared cap|=window|>limit|>leased here|>spent|>held|>left|>~reserved|>~ahead|>~all machines|=fleet",
    );
    for cap in caps {
        let ink = match cap.open.is_zero() && cap.state != "leased" {
            true => Ink::Red,
            false => Ink::Plain,
        };
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let cells = [
            cap.cap.clone(),
            known(cap.period.map(|period| period.to_string())),
            known(cap.limit.map(|limit| limit.to_string())),
            cap.leased.to_string(),
            cap.spent.to_string(),
            cap.held.to_string(),
            cap.open.to_string(),
            cap.reserved.to_string(),
            cap.ahead.to_string(),
            known(cap.charged.map(|charged| charged.to_string())),
            fleet_says(&cap.state).to_owned(),
        ];
        table.row_in(ink, cells);
    }
    table.laid_out(look)
}

/// The figures of the worst case, as far as this machine knows them. `None`: the database was not heard.
fn shared_bound(cap: &SharedCapView) -> Option<String> {
    let limit = cap.limit?;
    let each = match cap.dearest {
        Some(dearest) => format!("{dearest}, the dearest request known here,"),
        None => "one request".to_owned(),
    };
    Some(format!(
        "worst case of {}: {limit}, and {each} for each machine that spends of it",
        cap.cap
    ))
}

/// The state of a shared cap, in words.
pub fn fleet_says(state: &str) -> &str {
    match state {
        "leased" => "answers",
        "empty" => "has none",
        "share" => "share used",
        "paused" => "paused",
        "unreachable" => "away",
        "unheard" => "unheard",
        "no_cap" => "no such cap",
        other => other,
    }
}

/// The limits of an app's sessions, and how near to them they are.
fn of_sessions(of: &SessionCapsView) -> String {
    let limits = [
        of.cap.map(|cap| format!("{cap}")),
        of.requests_max.map(requests),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let known = counted(of.sessions, "session", "sessions");
    let known = match of.overflow {
        None => known,
        Some(billed) => format!("{known} and an overflow of {billed}"),
    };
    format!(
        "each session of {}: at most {}; {known} so far, the dearest {}, the longest {}; {} at the limit. \
         `bursar spend --by session` lists them.",
        shown(&of.app),
        limits.join(" and "),
        of.most_spent,
        requests(of.most_requests),
        of.reached,
    )
}

fn requests(count: u64) -> String {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    counted(count, "request", "requests")
}

const SHARED_WORST_CASE: &str = "worst case of a shared cap, over all machines: its limit; one request of the dearest price known of each machine \
     that spends of it, as long as no price is more than four times the dearest known one of its kind (else each of the \
     requests that run at once, by what it costs above what was held for it); what prices that come late are above what \
     was held for them; what a copy of a machine spends of the machine's lease until it is known as a copy; and, where \
     the fleet's database was restored from a backup, what it had leased since that backup.";

const WORST_CASE: [&str; 2] = [
    "held: for requests whose price is not known. reserved: for those under way. Both are estimates.",
    "worst case: the most that the service can bill in the window, the limit and one request of the dearest price \
     known. It holds as long as no request under way beside others costs more than four times the dearest of its \
     kind, and none in `held` more than is held for it. `--wide` shows all columns.",
];

#[cfg(test)]
mod tests;
