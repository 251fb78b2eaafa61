//! `bursar fleet freeze` and `thaw`: a switch for all machines.
//!
//! Promise: with exit code 0 the order is in the database; each machine obeys it with its next hello, some half
//! a minute later where it reaches the database, and keeps to it until the fleet's thaw.

use std::time::Duration;

use tokio::time::timeout;

use super::address::{FleetArgs, failed};
use super::ledgers::FreezeDocument;
use crate::cli::error::CliError;
use crate::cli::freeze::{behind, name, scope};
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;

/// Longest look for an app of this name.
const LOOK_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub struct OrderArgs {
    /// The app [default: all apps]
    #[arg(value_name = "APP", value_parser = name)]
    app: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// `--json`.
#[derive(serde::Serialize)]
struct OrderDocument<'a> {
    order: &'a str,
    /// `null`: all apps.
    app: Option<&'a str>,
    /// It was otherwise before.
    changed: bool,
    /// After a thaw: what is still frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen: Option<Vec<FreezeDocument>>,
}

pub fn freeze(args: &OrderArgs) -> Result<(), CliError> {
    let app = scope(args.app.as_deref());
    let changed = block_on(async {
        let operator = args.fleet.operator().await?;
        let changed = operator.freeze(app).await.map_err(failed)?;
        // Among all lines of all machines: not worth a wait, nor an error.
        if let Some(app) = app
            && let Ok(Ok(false)) = timeout(LOOK_MAX, operator.knows_app(app)).await
        {
            remark(format_args!(
                "bursar: no machine has spent as an app {app:?} so far; if that is a slip: `bursar fleet thaw {app}`"
            ));
        }
        Ok(changed)
    })?;
    args.say("freeze", changed, None, &frozen(app, changed))
}

pub fn thaw(args: &OrderArgs) -> Result<(), CliError> {
    let app = scope(args.app.as_deref());
    let (changed, left) = block_on(async {
        let operator = args.fleet.operator().await?;
        let changed = operator.thaw(app).await.map_err(failed)?;
        Ok((changed, operator.frozen().await.map_err(failed)?))
    })?;
    let whose = whose(app);
    let done = match changed {
        true => format!("{whose} thawed in the fleet; what a machine has frozen by itself stays"),
        false => format!(
            "{whose} not frozen in the fleet; a machine that still holds a freeze of it ends that with its next hello"
        ),
    };
    let names: Vec<&str> = left
        .iter()
        .map(|(app, ..)| app.as_deref().unwrap_or("all apps"))
        .collect();
    let still = match &*names {
        [] => String::new(),
        names => format!("; still frozen: {}", names.join(", ")),
    };
    let left = left.iter().map(FreezeDocument::of).collect();
    args.say("thaw", changed, Some(left), &format!("{done}{still}"))
}

/// What a freeze came to.
fn frozen(app: Option<&str>, changed: bool) -> String {
    let whose = whose(app);
    match changed {
        true => format!(
            "{whose} frozen on every machine: each obeys within half a minute of reaching the database, and spends \
             nothing more until `bursar fleet thaw{}`",
            behind(app)
        ),
        false => format!("{whose} frozen already on every machine"),
    }
}

fn whose(app: Option<&str>) -> String {
    match app {
        None => "all apps are".to_owned(),
        Some(app) => format!("the app {app} is"),
    }
}

// === impl OrderArgs ===

impl OrderArgs {
    fn say(
        &self,
        order: &str,
        changed: bool,
        frozen: Option<Vec<FreezeDocument>>,
        text: &str,
    ) -> Result<(), CliError> {
        match self.json {
            true => say_document(&OrderDocument {
                order,
                app: scope(self.app.as_deref()),
                changed,
                frozen,
            }),
            false => say(text),
        }
    }
}

#[cfg(test)]
mod tests;
