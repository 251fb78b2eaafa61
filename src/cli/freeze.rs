//! `bursar freeze` and `bursar thaw`: a switch that stops spending at once and stays where it was put,
//! also over a restart. Free routes go on, and answers that are under way finish.
//!
//! Promise: with exit code 0 the order is on the disk, and in force in the daemon if one runs.

use super::source::{Source, SourceArgs, order};
use super::{CliError, block_on, say};
use crate::admin::orders::FreezeOrder;
use crate::caps::{Frozen, Orders};
use crate::clock::SystemClock;
use crate::config::App;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The app; without it all apps
    #[arg(value_name = "APP", value_parser = name)]
    app: Option<String>,
    #[command(flatten)]
    source: SourceArgs,
}

/// An app's name; `all` for all apps.
pub fn name(text: &str) -> Result<String, String> {
    App::check_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// `None` for all apps.
pub fn scope(name: Option<&str>) -> Option<&str> {
    name.filter(|name| *name != "all")
}

pub fn freeze(args: &Args) -> Result<(), CliError> {
    let (app, by) = (scope(args.app.as_deref()), caller());
    let frozen = Frozen {
        since_ms: SystemClock::shared().wall_ms(),
        by: by.clone(),
    };
    let change = |orders: &Orders| orders.freeze(app, frozen);
    give(args, "/api/freeze", app, &by, change)?;
    say(format_args!(
        "{} frozen: nothing that costs money is sent until `bursar thaw`",
        whose(app)
    ))
}

pub fn thaw(args: &Args) -> Result<(), CliError> {
    let (app, by) = (scope(args.app.as_deref()), caller());
    give(args, "/api/thaw", app, &by, |orders| orders.thaw(app))?;
    say(format_args!("{} thawed", whose(app)))
}

fn give(
    args: &Args,
    path: &str,
    app: Option<&str>,
    by: &str,
    change: impl FnOnce(&Orders) -> Orders,
) -> Result<(), CliError> {
    match block_on(args.source.find_to_order())? {
        Source::Daemon(client) => {
            let asked = FreezeOrder {
                app: app.map(str::to_owned),
                by: by.to_owned(),
            };
            let asked = serde_json::to_value(asked)?;
            block_on(order(&client, path, &asked)).map(drop)
        }
        Source::Journal(state_dir) => {
            let now_ms = SystemClock::shared().wall_ms();
            Ok(Orders::order(&state_dir, now_ms, change)?)
        }
    }
}

fn whose(app: Option<&str>) -> String {
    app.map_or_else(
        || "all apps are".to_owned(),
        |app| format!("the app {app} is"),
    )
}

/// Who gives the order.
pub fn caller() -> String {
    format!("user {}", rustix::process::getuid().as_raw())
}
