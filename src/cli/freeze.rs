//! `bursar freeze` and `bursar thaw`: a switch that stops spending at once and stays where it was put,
//! also over a restart. Free routes go on, and answers that are under way finish.
//!
//! Promise: with exit code 0 the order is on the disk, and in force in the daemon if one runs.

use serde_json::Value;

use super::keeper::document;
use super::source::{Source, SourceArgs, order};
use super::{CliError, block_on, say};
use crate::admin::change::list;
use crate::admin::orders::FreezeOrder;
use crate::apps::{self, Declared};
use crate::caps::{Frozen, Orders};
use crate::clock::SystemClock;
use crate::config::{App, DEFAULT_APP};

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
    let keeper = block_on(args.source.find_to_order())?;
    if let Some(app) = app {
        must_be_known(args, &keeper, app)?;
    }
    let note = give(keeper, "/api/freeze", app, &by, change)?;
    say(format_args!(
        "{} frozen: nothing that costs money is sent until `bursar thaw{}`{note}",
        whose(app),
        app.map(|app| format!(" {app}")).unwrap_or_default(),
    ))
}

pub fn thaw(args: &Args) -> Result<(), CliError> {
    let (app, by) = (scope(args.app.as_deref()), caller());
    let keeper = block_on(args.source.find_to_order())?;
    let note = give(keeper, "/api/thaw", app, &by, |orders| orders.thaw(app))?;
    match app {
        Some(_) => say(format_args!("{} thawed{note}", whose(app))),
        None => say(format_args!(
            "the freeze of all apps has ended; an app that was frozen by its name stays so{note}"
        )),
    }
}

/// A slip in the name would leave the app that was meant spending.
fn must_be_known(args: &Args, keeper: &Source, app: &str) -> Result<(), CliError> {
    let known = match keeper {
        Source::Daemon(client) => block_on(async {
            let answer = client.get("/api/apps").await?;
            document(client, answer).await
        })?,
        Source::Journal(state_dir) => {
            let declared = Declared::from(&args.source.whereabouts()?);
            list(&apps::read(state_dir, &declared)?)
        }
    };
    let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(app);
    let apps = known.get("apps").and_then(Value::as_array);
    if app == DEFAULT_APP || apps.is_some_and(|apps| apps.iter().any(named)) {
        return Ok(());
    }
    Err(CliError::Failed(format!(
        "there is no app {app:?}; `bursar app list` shows them. Nothing was frozen"
    )))
}

/// What there is to say beside "done".
fn give(
    keeper: Source,
    path: &str,
    app: Option<&str>,
    by: &str,
    change: impl FnOnce(&Orders) -> Orders,
) -> Result<String, CliError> {
    match keeper {
        Source::Daemon(client) => {
            let asked = FreezeOrder {
                app: app.map(str::to_owned),
                by: by.to_owned(),
            };
            let asked = serde_json::to_value(asked)?;
            block_on(order(&client, path, &asked)).map(|_| String::new())
        }
        Source::Journal(state_dir) => {
            let now_ms = SystemClock::shared().wall_ms();
            Orders::order(&state_dir, now_ms, change)?;
            Ok(format!(
                "\nno daemon runs on {}: it holds from the next start",
                state_dir.display()
            ))
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
