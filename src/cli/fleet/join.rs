//! `bursar fleet join`: this machine's ledger goes into a fleet.
//!
//! Promise: the URL, which holds a password, is typed or piped, never an argument; it is written to one file, 0600, whole
//! or not at all, and after the database was asked whether the login, the version and the code will do. The
//! configuration is replaced only by one that parses and names that file. Nothing is restarted.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde::Serialize;

use super::address::{SKEW_MS_MAX, connected, failed};
use super::config_lines::{
    DROP_IN, SYSTEM_CONFIG, replace, says, unreadable, unwritable, with_fleet, write,
};
use crate::cli::error::CliError;
use crate::cli::key::typed;
use crate::cli::locate::LedgerArgs;
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;
use crate::clock::SystemClock;
use crate::config::{Whereabouts, is_label};
use crate::fleet::{FleetError, FleetIdentity, UrlFile};
use crate::ledger::state_dir::Directory;

/// Where the system service finds the file.
const CREDENTIAL: &str = "/run/credentials/bursar.service/fleet-url";

const LINE_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, clap::Args)]
pub struct JoinArgs {
    /// Refused: an argument can be read by every user of the machine
    #[arg(hide = true)]
    url: Option<String>,
    /// What this machine is called in the fleet [default: its host name]
    #[arg(long, value_name = "NAME", value_parser = label)]
    host_label: Option<String>,
    /// The file that the URL is written to [default: fleet-url beside the configuration]
    #[arg(long, value_name = "FILE")]
    url_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Serialize)]
struct JoinDocument {
    url_file: String,
    config: String,
    host_label: String,
    clock_ahead_ms: i64,
    /// A command for what is left to do.
    then: String,
}

fn label(text: &str) -> Result<String, String> {
    match is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("it takes 1 to 64 of a-z, 0-9 and . _ -, such as build-7".to_owned()),
    }
}

pub fn join(args: &JoinArgs) -> Result<(), CliError> {
    if args.url.is_some() {
        return Err(CliError::usage(
            "a URL in the arguments can be read by every user of this machine: leave it out, and it is asked for, or give \
             it on standard input",
        ));
    }
    let place = args.ledger.whereabouts()?;
    let config = place.path.clone().ok_or_else(|| {
        CliError::Failed(
            "there is no configuration file to write [fleet] into: make one (docs/configuration.md), or name it by \
             --config FILE"
                .to_owned(),
        )
    })?;
    let is_system = config == Path::new(SYSTEM_CONFIG) && geteuid().is_root();
    // The system service's directory is its own user's.
    let known = match is_system {
        true => None,
        false => identity(&place.state_dir)?,
    };
    if place.fleet.url_file.is_some() && known.is_some() {
        return Err(CliError::Failed(format!(
            "the ledger in {} is in a fleet already; `bursar fleet leave` ends that",
            place.state_dir.display()
        )));
    }
    let url_file = url_file(args, &config)?;
    let given = asked_for(known.is_some())?;
    let clock_ahead_ms = block_on(checked(&given, &place, known.as_ref()))?;
    let named = match is_system {
        true => PathBuf::from(CREDENTIAL),
        false => url_file.clone(),
    };
    let text = std::fs::read_to_string(&config).map_err(|error| unreadable(&config, &error))?;
    let code = given.code.as_deref().unwrap_or_default();
    let owner = std::fs::metadata(&config).map_err(|error| unreadable(&config, &error))?;
    write(
        &url_file,
        &format!("{}\n{code}\n", given.url),
        0o600,
        &owner,
    )?;
    if is_system {
        let drop_in = Path::new(DROP_IN);
        if let Some(folder) = drop_in.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        }
        let unit = format!(
            "[Service]\nLoadCredential=fleet-url:{}\n",
            url_file.display()
        );
        write(drop_in, &unit, 0o644, &owner)?;
    }
    // What the file says already is left as it stands.
    if !says(&text, "url_file", named.to_str()) || args.host_label.is_some() {
        let new = with_fleet(&text, &named, args.host_label.as_deref()).ok_or_else(|| {
            CliError::Failed(format!(
                "{} cannot be changed by this command. The URL is in {}; write below [fleet]: url_file = {:?}, and start \
                 bursar again",
                config.display(),
                url_file.display(),
                named.display().to_string()
            ))
        })?;
        replace(&config, &new)?;
    }
    let then = match is_system {
        true => "systemctl daemon-reload && systemctl restart bursar".to_owned(),
        false => "start `bursar run` again, or: systemctl --user restart bursar".to_owned(),
    };
    let host_label = args
        .host_label
        .clone()
        .unwrap_or_else(|| place.fleet.label());
    if args.json {
        return say_document(&JoinDocument {
            url_file: url_file.display().to_string(),
            config: config.display().to_string(),
            host_label,
            clock_ahead_ms,
            then,
        });
    }
    say(format_args!(
        "{host_label} joins the fleet at its next start: {then}\n\
         The URL is in {}, [fleet] url_file in {}.\n\
         Shipped is each line of the journal without users, tags, sessions, apps' own keys and the service's words of \
         refusal; no prompt and no answer is in a journal. `[fleet] ship_people = true` ships those, too; docs/fleet.md \
         has the list.",
        url_file.display(),
        config.display()
    ))
}

/// The name of a ledger that was in a fleet.
fn identity(state_dir: &Path) -> Result<Option<FleetIdentity>, CliError> {
    if !state_dir.join("fleet.json").exists() {
        return Ok(None);
    }
    let directory = Directory::open(state_dir)?;
    FleetIdentity::read(&directory).map_err(failed)
}

/// Where the URL is written. A file that was named and holds something is another one's: the other commands read it.
fn url_file(args: &JoinArgs, config: &Path) -> Result<PathBuf, CliError> {
    let path = args.url_file.clone();
    let path = path.unwrap_or_else(|| config.with_file_name("fleet-url"));
    if args.url_file.is_some() && path.exists() {
        return Err(CliError::usage(format_args!(
            "--url-file: {} is there already; `join` writes a new file",
            path.display()
        )));
    }
    std::path::absolute(path).map_err(failed)
}

/// Login, version, code or name, and clock. Answers by how much this machine's clock is ahead, in milliseconds.
async fn checked(
    given: &UrlFile,
    place: &Whereabouts,
    known: Option<&FleetIdentity>,
) -> Result<i64, CliError> {
    let fleet = connected(&given.url, &place.fleet).await?;
    let greeting = fleet.greet().await.map_err(failed)?;
    if !greeting.is_node {
        return Err(CliError::Failed(
            "this login may not be a bursar of the fleet: as an administrator of the database, GRANT bursar_node TO it"
                .to_owned(),
        ));
    }
    if greeting.is_operator {
        remark(
            "bursar: this login is an operator of the fleet, too: a machine that is stolen could let others in. A login of \
             its own, IN ROLE bursar_node alone, is better",
        );
    }
    let now_ms = SystemClock::shared().wall_ms();
    let is_known = match known {
        Some(known) => match fleet.hello(known, &place.fleet.label(), None, now_ms).await {
            Ok(standing) if standing.is_revoked => return Err(failed(FleetError::Revoked)),
            Ok(_) => true,
            Err(FleetError::Unknown) => false,
            Err(error) => return Err(failed(error)),
        },
        None => false,
    };
    let code = given.code.as_deref().unwrap_or_default();
    if !is_known && !fleet.is_open(code).await.map_err(failed)? {
        return Err(CliError::Failed(
            "the code is not known, was used, or has expired; an operator makes another: bursar fleet invite".to_owned(),
        ));
    }
    let ahead = i128::from(now_ms) - i128::from(greeting.now_ms);
    let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
    if let Some(skewed) = skewed(ahead) {
        remark(skewed);
    }
    Ok(ahead)
}

/// What is said of a clock that is so many milliseconds ahead of the database's. `None`: it is near enough.
fn skewed(ahead_ms: i64) -> Option<String> {
    let skew = ahead_ms.unsigned_abs();
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    (skew > SKEW_MS_MAX).then(|| {
        format!(
            "bursar: this machine's clock is {} s {side} the database's: its entries are counted at the time of its own \
             clock",
            skew / 1_000
        )
    })
}

/// The URL and the code, typed or piped. A ledger that was in the fleet needs no code.
fn asked_for(is_known: bool) -> Result<UrlFile, CliError> {
    let text = if io::stdin().is_terminal() {
        remark("bursar: the URL of the fleet's database, then Enter (it is not shown):");
        let url = block_on(async { Ok(typed(LINE_BYTES_MAX).await) })?.map_err(failed)?;
        remark("bursar: the code that lets this ledger in, then Enter (it is not shown):");
        let code = block_on(async { Ok(typed(LINE_BYTES_MAX).await) })?.map_err(failed)?;
        let [url, code] = [url, code].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        format!("{url}\n{code}")
    } else {
        let mut text = String::new();
        let bytes_max = u64::try_from(2 * LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut lines = io::Read::take(io::stdin().lock(), bytes_max);
        for _ in 0..2 {
            lines.read_line(&mut text).map_err(failed)?;
        }
        text
    };
    if text.lines().any(|line| line.len() > LINE_BYTES_MAX) {
        return Err(CliError::usage(format_args!(
            "a URL or code of more than {LINE_BYTES_MAX} bytes cannot be right"
        )));
    }
    let given = UrlFile::parse(&text);
    match (given.url.is_empty(), &given.code) {
        (true, _) => Err(CliError::usage(
            "no URL was given: two lines on standard input, postgresql://USER:PASSWORD@HOST/DATABASE and the code",
        )),
        (false, None) if !is_known => Err(CliError::usage(
            "no code was given below the URL: an operator makes one: bursar fleet invite",
        )),
        (false, _) => Ok(given),
    }
}

#[cfg(test)]
mod tests;
