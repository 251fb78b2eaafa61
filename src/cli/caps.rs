//! `bursar caps`: what each cap has left, what it holds, and the most it can be overrun.
//!
//! Promise: integers and exact decimals; what is billed, what is held for prices that are not known and
//! what is reserved for requests under way stand apart.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::daemon::order;
use super::error::CliError;
use super::freeze::{caller, name, scope};
use super::locate::SourceArgs;
use super::output::{remark, say};
use super::runtime::block_on;
use super::source::Source;
use super::table::{Align, Table};
use crate::admin::orders::RaiseOrder;
use crate::apps::{Apps, Declared};
use crate::calendar;
use crate::caps::{Orders, Period, Rules};
use crate::clock::SystemClock;
use crate::config::ALL_APPS;
use crate::money::MicroUsd;
use crate::screen::shown;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    order: Option<Order>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Order {
    /// Raise a cap for the window of now; it falls back by itself, or with --undo
    Raise(Raise),
}

#[derive(Debug, clap::Args)]
struct Raise {
    /// The app whose cap it is; all: that of all apps together
    #[arg(value_name = "APP|all", value_parser = name)]
    app: String,
    /// hour, day or month
    #[arg(value_name = "PERIOD", value_parser = period)]
    period: Period,
    /// The new limit, such as 7.50
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    #[arg(required_unless_present = "undo")]
    to_usd: Option<MicroUsd>,
    /// Take a raise back: the configured amount holds again
    #[arg(long, conflicts_with = "to_usd")]
    undo: bool,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn caps(args: &Args) -> Result<(), CliError> {
    if let Some(Order::Raise(asked)) = &args.order {
        return raise(asked);
    }
    let now_ms = SystemClock::shared().wall_ms();
    let view = block_on(async {
        let source = args.source.find().await?;
        // A daemon has its own rules; the files alone have none.
        let rules = match &source {
            Source::Daemon(_) => Rules::none(),
            Source::Journal(_) => rules(&args.source)?,
        };
        source.caps(&rules, now_ms).await
    })?;
    if args.json {
        say(&view)
    } else {
        say(report(&view))
    }
}

fn raise(asked: &Raise) -> Result<(), CliError> {
    let app = scope(Some(&asked.app));
    let (period, now_ms) = (asked.period, SystemClock::shared().wall_ms());
    let source = block_on(asked.source.find_to_order())?;
    let rules = match &source {
        Source::Daemon(_) => Rules::none(),
        Source::Journal(_) => rules(&asked.source)?,
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
            let asked = serde_json::to_value(asked)?;
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
fn configured(view: &Value, app: Option<&str>, period: Period) -> Result<MicroUsd, CliError> {
    let scope = app.unwrap_or(ALL_APPS);
    let mut caps = list(view, "caps");
    let cap =
        caps.find(|cap| text(cap, "scope") == scope && text(cap, "period") == period.as_str());
    let amount = cap.and_then(|cap| cap.get("configured_micro_usd")?.as_u64());
    amount.map(MicroUsd::new).ok_or_else(|| {
        CliError::Failed(format!(
            "{scope} has no cap of the {period} that could be raised"
        ))
    })
}

/// Caps that hold beside the one that was raised and are reached before it, in words.
fn tighter(view: &Value, app: Option<&str>, period: Period, to: MicroUsd) -> Vec<String> {
    let own = app.unwrap_or(ALL_APPS);
    let caps = list(view, "caps").filter_map(|cap| {
        let (scope, of) = (text(cap, "scope"), Period::from_word(text(cap, "period"))?);
        let limit = MicroUsd::new(cap.get("limit_micro_usd")?.as_u64()?);
        let holds_beside = (scope == own && of > period)
            || (scope == ALL_APPS && app.is_some() && of >= period);
        (holds_beside && limit < to).then(|| {
            let whose = if scope == ALL_APPS { "all apps together" } else { scope };
            format!("the cap of {whose} is {limit} for the {of}, and is reached before {to}; see `bursar caps`")
        })
    });
    caps.collect()
}

fn rules(source: &SourceArgs) -> Result<Rules, CliError> {
    let whereabouts = source.whereabouts()?;
    let declared = Declared::from(&whereabouts);
    // Only read: those that were added have caps of their own.
    let apps = Apps::open(&whereabouts.state_dir, declared);
    let apps = apps.map_err(|error| CliError::Failed(error.to_string()))?;
    Ok(apps.cap_rules(&whereabouts.caps))
}

fn period(text: &str) -> Result<Period, String> {
    Period::from_word(text).ok_or_else(|| "hour, day or month is wanted".to_owned())
}

fn usd(text: &str) -> Result<MicroUsd, String> {
    MicroUsd::parse_usd(text).ok_or_else(|| {
        "an amount of dollars from 0 on is wanted, such as 7.50: at most six digits behind the point"
            .to_owned()
    })
}

/// The answer for people.
fn report(view: &Value) -> String {
    let zone_name = view.get("time_zone").and_then(Value::as_str);
    let zone = zone_name.and_then(|name| TimeZone::get(name).ok());
    let zone = zone.unwrap_or_else(TimeZone::system);
    let mut lines: Vec<String> = list(view, "frozen")
        .map(|frozen| {
            let app = frozen.get("app").and_then(Value::as_str);
            format!(
                "FROZEN since {}: {}, by {}",
                at(frozen, "since_ms", &zone),
                app.unwrap_or("all apps"),
                shown(text(frozen, "by")),
            )
        })
        .collect();
    let mut table = Table::new(&[
        ("cap of", Align::Left),
        ("window", Align::Left),
        ("limit", Align::Right),
        ("spent", Align::Right),
        ("held", Align::Right),
        ("reserved", Align::Right),
        ("left", Align::Right),
        ("worst case", Align::Right),
        ("begins anew", Align::Left),
    ]);
    for cap in list(view, "caps") {
        let raised = cap.get("limit_micro_usd") != cap.get("configured_micro_usd");
        table.row([
            text(cap, "scope").to_owned(),
            text(cap, "period").to_owned(),
            format!(
                "{}{}",
                money(cap, "limit"),
                if raised { " (raised)" } else { "" }
            ),
            money(cap, "spent"),
            money(cap, "held"),
            money(cap, "reserved"),
            money(cap, "left"),
            match cap.get("worst_case_micro_usd") {
                Some(Value::Null) => "limit + one request".to_owned(),
                _ => money(cap, "worst_case"),
            },
            at(cap, "resets_at_ms", &zone),
        ]);
    }
    if table.is_empty() {
        lines.push("There is no cap. See [caps] and [[app]] in the configuration.".to_owned());
    } else {
        lines.push(table.to_string());
        lines.push(WORST_CASE.to_owned());
    }
    let waiting = view
        .get("waiting")
        .and_then(Value::as_u64)
        .filter(|waiting| *waiting > 0);
    lines.extend(waiting.map(|waiting| format!("{waiting} requests wait for room below a cap.")));
    lines.join("\n")
}

const WORST_CASE: &str = "\
held: for requests whose price is not known. reserved: for those under way. Both are estimates.
worst case: the most that the service can bill in the window, the limit and one request of the dearest
price known. It holds as long as no request under way beside others costs more than four times the
dearest of its kind, and none in `held` more than is held for it.";

fn list<'a>(view: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    view.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn at(from: &Value, name: &str, zone: &TimeZone) -> String {
    let ms = from.get(name).and_then(Value::as_u64);
    ms.map_or_else(|| "?".to_owned(), |ms| calendar::shown(ms, zone))
}

/// A figure that is missing shows as `?`, never as 0.
fn money(cap: &Value, name: &str) -> String {
    let amount = cap
        .get(format!("{name}_micro_usd").as_str())
        .and_then(Value::as_u64);
    amount.map_or_else(
        || "?".to_owned(),
        |amount| MicroUsd::new(amount).to_string(),
    )
}

fn text<'a>(from: &'a Value, name: &str) -> &'a str {
    from.get(name).and_then(Value::as_str).unwrap_or("?")
}

#[cfg(test)]
mod tests;
