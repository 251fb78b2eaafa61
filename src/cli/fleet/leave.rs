//! `bursar fleet leave`: this machine's ledger goes out of its fleet.
//!
//! Promise: what is left is shipped and what is leased goes back before the fleet is told; where that fails the machine
//! stays in its fleet, unless it is to leave all the same. No daemon can start meanwhile. Nothing is restarted.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde::Serialize;
use uuid::Uuid;

use super::address::{connected, failed, read};
use super::config_lines::{DROP_IN, SYSTEM_CONFIG, replace, unreadable, unwritable, without_fleet};
use super::leased::end;
use crate::caps::{Caps, Rules};
use crate::cli::error::CliError;
use crate::cli::locate::LedgerArgs;
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;
use crate::clock::{SystemClock, millis};
use crate::config::Whereabouts;
use crate::fleet::{Fleet, FleetError, FleetIdentity, FleetOrders, Shipping, Trouble, last_visit};
use crate::ledger::state_dir::Directory;
use crate::ledger::{Ledger, LedgerError, LedgerOptions};

#[derive(Debug, clap::Args)]
pub struct LeaveArgs {
    /// Leave although the database cannot be reached: what it has stays counted, the rest is not shipped
    #[arg(long)]
    unshipped: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Serialize)]
struct LeaveDocument {
    /// `null`: it was in none, or the system service has it.
    ledger: Option<String>,
    /// `false`: the fleet was not told, or the system service has yet to tell it.
    left: bool,
    lines_shipped: u64,
    config: Option<String>,
    /// A command for what is left to do.
    then: Option<&'static str>,
}

pub fn leave(args: &LeaveArgs) -> Result<(), CliError> {
    let place = args.ledger.whereabouts()?;
    if place.path.as_deref() == Some(Path::new(SYSTEM_CONFIG)) && geteuid().is_root() {
        return leave_by_restart(args, &place);
    }
    let place = block_on(args.ledger.found())?;
    let directory = Directory::open(&place.state_dir)?;
    let identity = FleetIdentity::read(&directory).map_err(failed)?;
    // Locked to the end: a daemon would spend what goes back, and go on shipping.
    let ledger = match identity {
        Some(_) => opened(&place, args.unshipped)?,
        None => None,
    };
    let _lock = match ledger {
        Some(_) => None,
        None => Some(Directory::open(&place.state_dir)?.lock()?),
    };
    let caps = ledger.as_ref().map(|ledger| {
        let clock = SystemClock::shared();
        Caps::new(ledger, Rules::none(), &place.state_dir, clock)
    });
    // Known before the goodbye, so that the command can be given again.
    let config = without(&place)?;
    // `None`: the fleet was not told.
    let mut shipped = None;
    if identity.is_some() {
        match block_on(shipped_to_the_end(&place, caps.as_deref(), args.unshipped)) {
            Ok(lines) => shipped = Some(lines),
            Err(error) if args.unshipped => remark_unshipped(&error, &place),
            Err(error) => {
                return Err(CliError::Failed(format!(
                    "{error}. This machine is still in its fleet: give the command again, or leave without the rest by \
                     --unshipped"
                )));
            }
        }
    }
    if let Some((path, new)) = &config {
        replace(path, new)?;
    }
    // The name stays: under another one everything would be shipped a second time after a return.
    FleetOrders::remove(&directory)?;
    if let Some(ledger) = &ledger {
        block_on(async {
            ledger.close().await;
            Ok(())
        })?;
    }
    let ledger = identity.map(|identity| identity.ledger);
    if args.json {
        return say_document(&LeaveDocument {
            ledger: ledger.map(|ledger| ledger.to_string()),
            left: shipped.is_some(),
            lines_shipped: shipped.unwrap_or(0),
            config: config.map(|(path, _)| path.display().to_string()),
            then: None,
        });
    }
    match (ledger, shipped) {
        (Some(ledger), Some(_)) => say(format_args!(
            "the ledger {ledger} has left its fleet; what it shipped stays counted there. Its file with the URL can be \
             removed; `bursar fleet join` brings it back under the same name{}",
            shared(&place)
        )),
        (Some(ledger), None) => say(format_args!("{}{}", untold(ledger), shared(&place))),
        (None, _) => say("this ledger was in no fleet; its configuration names none any more"),
    }
}

/// With what a killed daemon left open at its end. `None`: it cannot be opened, and leaves all the same.
fn opened(place: &Whereabouts, may_be_less: bool) -> Result<Option<Ledger>, CliError> {
    let options = LedgerOptions::new(&place.state_dir, SystemClock::shared());
    match Ledger::open(options) {
        Ok(ledger) => Ok(Some(ledger)),
        Err(error) if may_be_less && !matches!(error, LedgerError::Locked { .. }) => {
            remark(format_args!("bursar: the ledger cannot be opened: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What is said of the shared caps.
fn shared(place: &Whereabouts) -> &'static str {
    match place.fleet.shared_caps.is_empty() {
        true => "",
        false => {
            ". It then obeys no shared cap: shared_caps below [fleet] is a comment now, to be taken up again after a join"
        }
    }
}

/// What is said where the database was away.
fn untold(ledger: Uuid) -> String {
    format!(
        "the ledger {ledger} ships nothing more, but the fleet was not told that it has left, and takes it for a machine \
         that is away. If it does not come back by `bursar fleet join`, an operator shuts it out: \
         `bursar fleet revoke {}`. What it shipped stays counted there",
        end(ledger)
    )
}

fn remark_unshipped(why: &CliError, place: &Whereabouts) {
    let leased = match place.fleet.shared_caps.is_empty() {
        true => "",
        false => ", and what is leased stays charged until its windows end",
    };
    remark(format_args!(
        "bursar: {why}; what was not shipped stays here alone{leased}"
    ));
}

/// The system service's directory and credentials are its own: it ships the rest when it stops.
fn leave_by_restart(args: &LeaveArgs, place: &Whereabouts) -> Result<(), CliError> {
    const THEN: &str = "systemctl daemon-reload && systemctl restart bursar";
    let Some((path, new)) = without(place)? else {
        return Err(CliError::Failed(
            "the system service is in no fleet: its configuration has no [fleet] url_file"
                .to_owned(),
        ));
    };
    replace(&path, &new)?;
    match std::fs::remove_file(DROP_IN) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(unwritable(Path::new(DROP_IN), &error));
        }
        Ok(()) | Err(_) => {}
    }
    if args.json {
        return say_document(&LeaveDocument {
            ledger: None,
            left: false,
            lines_shipped: 0,
            config: Some(path.display().to_string()),
            then: Some(THEN),
        });
    }
    say(format_args!(
        "the system service leaves its fleet with its next stop, which ships what the fleet takes and says so there: {THEN}\n\
         What it shipped stays counted there. /etc/bursar/fleet-url can be removed after that{}",
        shared(place)
    ))
}

/// The configuration's file, and what it is to be. `None`: it names no fleet.
fn without(place: &Whereabouts) -> Result<Option<(PathBuf, String)>, CliError> {
    let Some(path) = place
        .path
        .clone()
        .filter(|_| place.fleet.url_file.is_some())
    else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
    match without_fleet(&text) {
        Some(new) => Ok(Some((path, new))),
        None => Err(CliError::Failed(format!(
            "{} cannot be changed by this command: comment out its url_file and shared_caps below [fleet] when this is \
             done, and give this command with a configuration that has each as a line of its own",
            path.display()
        ))),
    }
}

/// Ships what is left, gives back what is leased, then says goodbye; where it may, also without shipping. Answers how many lines were shipped. An
/// error: the fleet was not told.
async fn shipped_to_the_end(
    place: &Whereabouts,
    caps: Option<&Caps>,
    may_be_less: bool,
) -> Result<u64, CliError> {
    let table = &place.fleet;
    let path = table.url_file.as_ref().ok_or_else(|| {
        CliError::Failed("[fleet] url_file is not set: the database is not known".to_owned())
    })?;
    let fleet: Fleet = connected(&read(path)?.url, table).await?;
    let shipping = Shipping::open(place.state_dir.clone(), table.label(), table.ship_people);
    let Some(mut shipping) = shipping.map_err(failed)? else {
        return Ok(0);
    };
    let clock = SystemClock::shared();
    let ledger = (&*place.state_dir, &**table);
    let visited = match caps {
        Some(caps) => last_visit(&mut shipping, &fleet, caps, ledger, &clock).await,
        None => shipping.visit(&fleet, clock.wall_ms()).await.map(|_| ()),
    };
    let visited = match visited.map_err(failed) {
        Err(error) if !may_be_less => return Err(error),
        visited => visited,
    };
    let (wall_ms, up_ms) = (clock.wall_ms(), millis(clock.since_boot()));
    match shipping.leave(&fleet, wall_ms, up_ms).await {
        // The fleet has shut it out, or never had it: nobody waits for it.
        Ok(()) | Err(Trouble::Fleet(FleetError::Revoked | FleetError::Unknown)) => {}
        Err(error) => return Err(failed(error)),
    }
    match (visited, caps) {
        (Err(error), _) => remark_unshipped(&error, place),
        (Ok(()), Some(caps)) if !caps.left_open().is_zero() => remark(format_args!(
            "bursar: {} of shared caps stays charged until its windows end",
            caps.left_open()
        )),
        (Ok(()), _) => {}
    }
    Ok(shipping.take_shipped())
}

#[cfg(test)]
mod tests;
