//! `bursar freeze` and `bursar thaw`: a switch that stops spending at once and stays where it was put,
//! also over a restart. Free routes go on, and answers that are under way finish.
//!
//! Promise: with exit code 0 the order is on the disk, and in force in the daemon if one runs. Before a
//! daemon that hangs a freeze is written to the disk where that is possible, and the exit code is 1.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde::Serialize;

use super::client::ClientError;
use super::daemon::{end_it, known_apps, order};
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_document};
use super::runtime::block_on;
use super::source::Source;
use crate::admin::change::AppsDocument;
use crate::admin::orders::FreezeOrder;
use crate::apps::{self, Declared};
use crate::calendar;
use crate::caps::{CapsView, Frozen, FrozenView, Orders, Rules};
use crate::clock::SystemClock;
use crate::config::{ALL_APPS, App, DEFAULT_APP};
use crate::fleet::FleetOrders;
use crate::screen::shown;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The app [default: all apps]
    #[arg(value_name = "APP", value_parser = name)]
    app: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// What an order came to: the document of `--json`.
#[derive(Serialize)]
struct OrderDocument<'a> {
    order: &'a str,
    app: Option<&'a str>,
    by: String,
    /// A daemon runs, and obeys.
    in_force: bool,
    frozen: &'a [FrozenView],
}

/// What is frozen after an order, or before one.
struct Freezes {
    freezes: Vec<FrozenView>,
    /// No daemon runs: the directory whose next daemon obeys.
    waits_in: Option<PathBuf>,
}

/// An app's name; `all` for all apps.
pub fn name(text: &str) -> Result<String, String> {
    if text != ALL_APPS {
        App::check_name(text).map_err(|error| error.to_string())?;
    }
    Ok(text.to_owned())
}

/// `None` for all apps.
pub fn scope(name: Option<&str>) -> Option<&str> {
    name.filter(|name| *name != ALL_APPS)
}

pub fn freeze(args: &Args) -> Result<(), CliError> {
    let (app, by) = (scope(args.app.as_deref()), caller());
    let now_ms = SystemClock::shared().wall_ms();
    let frozen = Frozen {
        since_ms: now_ms,
        by: by.clone(),
    };
    let change = |orders: &Orders| orders.freeze(app, frozen);
    let keeper = match block_on(args.source.find_to_order()) {
        Err(CliError::Silent {
            error, state_dir, ..
        }) => return beside(args, app, &error, &state_dir, change),
        keeper => keeper?,
    };
    if let Some(app) = app {
        must_be_known(args, &keeper, app, "Nothing was frozen")?;
    }
    let in_force = give(args, keeper, "/api/freeze", app, &by, change)?;
    let before = in_force.of(app).filter(|frozen| frozen.since_ms < now_ms);
    let done = before.map_or_else(
        || format!("{} frozen", whose(app)),
        |before| {
            let since = calendar::shown(before.since_ms, &TimeZone::system());
            format!(
                "{} frozen already, since {since} by {}",
                whose(app),
                shown(&before.by)
            )
        },
    );
    let thaw = behind(app);
    args.say(
        "freeze",
        app,
        &in_force,
        format_args!("{done}: nothing that costs money is sent until `bursar thaw{thaw}`"),
    )
}

/// The daemon hangs. The file is written beside it, where this user may: it obeys when it looks again.
fn beside(
    args: &Args,
    app: Option<&str>,
    silent: &ClientError,
    state_dir: &Path,
    change: impl FnOnce(&Orders) -> Orders,
) -> Result<(), CliError> {
    if let Some(app) = app {
        let files = Source::Journal(state_dir.to_owned());
        must_be_known(args, &files, app, "Nothing was frozen")?;
    }
    let now_ms = SystemClock::shared().wall_ms();
    let why = match Orders::order_beside(state_dir, now_ms, change) {
        Ok(_) => format!(
            "The order is on the disk, in {}: the daemon obeys it within two seconds once it goes \
             on, and after a restart. Whether it is in force now is not known",
            state_dir.join("orders").display()
        ),
        Err(error) => format!("Nothing was changed: the order cannot be written, either: {error}"),
    };
    Err(CliError::Failed(format!(
        "{silent}.\n{why}.\n{}",
        end_it(state_dir)
    )))
}

pub fn thaw(args: &Args) -> Result<(), CliError> {
    let (app, by) = (scope(args.app.as_deref()), caller());
    let keeper = block_on(args.source.find_to_order())?;
    let was_frozen = frozen_by(args, &keeper)?.of(app).is_some();
    if let (Some(app), false) = (app, was_frozen) {
        must_be_known(args, &keeper, app, "Nothing was thawed")?;
    }
    let in_force = give(args, keeper, "/api/thaw", app, &by, |orders| {
        orders.thaw(app)
    })?;
    let done = match (app, was_frozen) {
        (Some(app), true) => format!("the app {app} is thawed"),
        (Some(app), false) => format!("the app {app} was not frozen by its name"),
        (None, true) => "the freeze of all apps has ended".to_owned(),
        (None, false) => "there was no freeze of all apps".to_owned(),
    };
    let own = in_force.freezes.iter().filter(|one| !one.fleet);
    let left: Vec<&str> = own.filter_map(|one| one.app.as_deref()).collect();
    let of_fleet = in_force.thaws_of_fleet(app).join(", ");
    let still = match &*left {
        _ if !of_fleet.is_empty() => format!("; still frozen for the whole fleet: {of_fleet}"),
        _ if in_force.of(None).is_some() => "; all apps are still frozen: `bursar thaw`".to_owned(),
        [] => String::new(),
        left => format!("; still frozen by name: {}", left.join(", ")),
    };
    args.say("thaw", app, &in_force, format_args!("{done}{still}"))
}

/// A slip in the name would leave the app that was meant as it was.
fn must_be_known(args: &Args, keeper: &Source, app: &str, nothing: &str) -> Result<(), CliError> {
    let known: AppsDocument = match keeper {
        Source::Daemon(client) => block_on(known_apps(client))?,
        Source::Journal(state_dir) => {
            let declared = Declared::from(&args.source.ledger.whereabouts()?);
            AppsDocument::of(&apps::read(state_dir, &declared)?)
        }
    };
    if app == DEFAULT_APP || known.apps.iter().any(|known| known.name == app) {
        return Ok(());
    }
    Err(CliError::Failed(format!(
        "there is no app {app:?}; `bursar app list` shows them. {nothing}"
    )))
}

/// What is frozen now.
fn frozen_by(args: &Args, keeper: &Source) -> Result<Freezes, CliError> {
    let now_ms = SystemClock::shared().wall_ms();
    match keeper {
        Source::Daemon(_) => {
            let view = block_on(keeper.caps(&Rules::none(), now_ms))?;
            Ok(Freezes::of_daemon(view))
        }
        Source::Journal(state_dir) => {
            let fleet = by_fleet(&args.source, state_dir, now_ms)?;
            let orders = Orders::read(state_dir, now_ms);
            Ok(Freezes::of_file(&orders, &fleet, state_dir))
        }
    }
}

/// What the fleet's operators froze, as the next daemon on these files will have it.
pub fn by_fleet(args: &SourceArgs, state_dir: &Path, now_ms: u64) -> Result<Orders, CliError> {
    let table = args.ledger.whereabouts()?.fleet;
    Ok(FleetOrders::kept(&table, state_dir, now_ms)?)
}

fn give(
    args: &Args,
    keeper: Source,
    path: &str,
    app: Option<&str>,
    by: &str,
    change: impl FnOnce(&Orders) -> Orders,
) -> Result<Freezes, CliError> {
    match keeper {
        Source::Daemon(client) => {
            let asked = FreezeOrder {
                app: app.map(str::to_owned),
                by: by.to_owned(),
            };
            Ok(Freezes::of_daemon(block_on(order(&client, path, &asked))?))
        }
        Source::Journal(state_dir) => {
            let now_ms = SystemClock::shared().wall_ms();
            let fleet = by_fleet(&args.source, &state_dir, now_ms)?;
            let orders = Orders::order(&state_dir, now_ms, change)?;
            Ok(Freezes::of_file(&orders, &fleet, &state_dir))
        }
    }
}

/// An app as it stands behind a command. Nothing for all apps.
pub fn behind(app: Option<&str>) -> String {
    app.map(|app| format!(" {app}")).unwrap_or_default()
}

fn whose(app: Option<&str>) -> String {
    app.map_or_else(
        || "all apps are".to_owned(),
        |app| format!("the app {app} is"),
    )
}

// === impl Args ===

impl Args {
    fn say(
        &self,
        order: &str,
        app: Option<&str>,
        in_force: &Freezes,
        text: impl Display,
    ) -> Result<(), CliError> {
        if self.json {
            return say_document(&OrderDocument {
                order,
                app,
                by: caller(),
                in_force: in_force.waits_in.is_none(),
                frozen: &in_force.freezes,
            });
        }
        let note = in_force
            .waits_in
            .as_ref()
            .map_or_else(String::new, |place| {
                format!(
                    "\nno daemon runs on {}: it holds from the next start",
                    place.display()
                )
            });
        say(format_args!("{text}{note}"))
    }
}

// === impl Freezes ===

impl Freezes {
    fn of_daemon(view: CapsView) -> Self {
        Self {
            freezes: view.frozen,
            waits_in: None,
        }
    }

    fn of_file(orders: &Orders, fleet: &Orders, state_dir: &Path) -> Self {
        Self {
            freezes: FrozenView::list(orders, fleet),
            waits_in: Some(state_dir.to_owned()),
        }
    }

    /// The freeze of this app by its name; of all apps without one. That of the fleet is not this machine's.
    fn of(&self, app: Option<&str>) -> Option<&FrozenView> {
        let mut own = self.freezes.iter().filter(|frozen| !frozen.fleet);
        own.find(|frozen| frozen.app.as_deref() == app)
    }

    /// The commands that end what the fleet has frozen of this app, or of all.
    fn thaws_of_fleet(&self, app: Option<&str>) -> Vec<String> {
        let fleet = self.freezes.iter().filter(|frozen| frozen.fleet);
        let apps = fleet.map(|frozen| frozen.app.as_deref());
        let apps = apps.filter(|frozen| frozen.is_none() || *frozen == app);
        let thaws = apps.map(|frozen| format!("`bursar fleet thaw{}`", behind(frozen)));
        thaws.collect()
    }
}

/// The person behind the order.
pub fn caller() -> String {
    format!("user {}", rustix::process::getuid().as_raw())
}

#[cfg(test)]
mod tests;
