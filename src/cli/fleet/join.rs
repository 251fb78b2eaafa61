//! `bursar fleet join` and `leave`: this machine's ledger goes into a fleet, or out of it.
//!
//! Promise: the URL, which holds a password, is typed or piped, never an argument; it is written to one file, 0600, whole
//! or not at all, and after the database was asked whether the login, the version and the code will do. The
//! configuration is read as it would be before it is replaced. Nothing is restarted.

use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use rustix::process::geteuid;
use serde::Serialize;

use super::address::{connected, failed};
use crate::cli::error::CliError;
use crate::cli::key::typed;
use crate::cli::locate::{LedgerArgs, UNITS_KEY};
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::whole_file::WholeFile;
use crate::clock::SystemClock;
use crate::config::{Whereabouts, is_label};
use crate::fleet::{Fleet, FleetIdentity, FleetOrders, Shipping, UrlFile};
use crate::ledger::state_dir::Directory;

/// The system service's configuration, whose user cannot read a file of mode 0600 beside it.
const SYSTEM_CONFIG: &str = "/etc/bursar/config.toml";

/// What gives the system service the file as a credential.
const DROP_IN: &str = "/etc/systemd/system/bursar.service.d/fleet.conf";
const CREDENTIAL: &str = "/run/credentials/bursar.service/fleet-url";

/// A clock that is further off is worth a word.
const SKEW_MS_MAX: u64 = 5_000;

const LINE_BYTES_MAX: u64 = 16 * 1024;

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
struct JoinDocument {
    url_file: String,
    config: String,
    host_label: String,
    clock_ahead_ms: i64,
    /// A command for what is left to do.
    then: String,
}

#[derive(Serialize)]
struct LeaveDocument {
    ledger: String,
    lines_shipped: u64,
    config: Option<String>,
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
    if place.fleet.url_file.is_some() {
        return Err(CliError::Failed(format!(
            "{} has a [fleet] url_file already: this machine is in a fleet; `bursar fleet leave` ends that",
            config.display()
        )));
    }
    let given = asked_for()?;
    let clock_ahead_ms = block_on(checked(&given, &place))?;
    let url_file = args
        .url_file
        .clone()
        .unwrap_or_else(|| config.with_file_name("fleet-url"));
    let is_system = config == Path::new(SYSTEM_CONFIG) && geteuid().is_root();
    let named = match is_system {
        true => PathBuf::from(CREDENTIAL),
        false => std::path::absolute(&url_file).map_err(failed)?,
    };
    let text = std::fs::read_to_string(&config).map_err(|error| unreadable(&config, &error))?;
    let new = with_fleet(&text, &named, args.host_label.as_deref()).ok_or_else(|| {
        CliError::Failed(format!(
            "{} cannot be changed by this command; write below [fleet]: url_file = {:?}",
            config.display(),
            named.display().to_string()
        ))
    })?;
    let code = given.code.as_deref().unwrap_or_default();
    write(&url_file, &format!("{}\n{code}\n", given.url), None)?;
    if is_system {
        let drop_in = Path::new(DROP_IN);
        if let Some(folder) = drop_in.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        }
        let unit = format!(
            "[Service]\nLoadCredential=fleet-url:{}\n",
            url_file.display()
        );
        write(drop_in, &unit, Some(0o644))?;
    }
    replace(&config, &new)?;
    let then = match is_system {
        true => "systemctl daemon-reload && systemctl restart bursar".to_owned(),
        false if Path::new(UNITS_KEY).exists() => {
            "systemctl --user restart bursar, or start `bursar run` again".to_owned()
        }
        false => "start `bursar run` again".to_owned(),
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

/// Login, version, code and clock. Answers by how much this machine's clock is ahead, in milliseconds.
async fn checked(given: &UrlFile, place: &Whereabouts) -> Result<i64, CliError> {
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
    let code = given.code.as_deref().unwrap_or_default();
    if !fleet.is_open(code).await.map_err(failed)? {
        return Err(CliError::Failed(
            "the code is not known, was used, or has expired; an operator makes another: bursar fleet invite".to_owned(),
        ));
    }
    let now_ms = SystemClock::shared().wall_ms();
    let ahead = i128::from(now_ms) - i128::from(greeting.now_ms);
    let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
    if ahead.unsigned_abs() > SKEW_MS_MAX {
        remark(format_args!(
            "bursar: this machine's clock is {} s {} the database's: its entries are counted at the time of its own clock",
            ahead.unsigned_abs() / 1_000,
            if ahead > 0 { "ahead of" } else { "behind" }
        ));
    }
    Ok(ahead)
}

/// The URL and the code, typed or piped.
fn asked_for() -> Result<UrlFile, CliError> {
    let text = if io::stdin().is_terminal() {
        remark("bursar: the URL of the fleet's database, then Enter (it is not shown):");
        let url = block_on(async { Ok(typed().await) })?.map_err(failed)?;
        remark("bursar: the code that lets this ledger in, then Enter (it is not shown):");
        let code = block_on(async { Ok(typed().await) })?.map_err(failed)?;
        let [url, code] = [url, code].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        format!("{url}\n{code}")
    } else {
        let mut text = String::new();
        let mut lines = io::Read::take(io::stdin().lock(), LINE_BYTES_MAX);
        for _ in 0..2 {
            lines.read_line(&mut text).map_err(failed)?;
        }
        text
    };
    let given = UrlFile::parse(&text);
    match (given.url.is_empty(), &given.code) {
        (true, _) => Err(CliError::usage(
            "no URL was given: two lines on standard input, postgresql://USER:PASSWORD@HOST/DATABASE and the code",
        )),
        (false, None) => Err(CliError::usage(
            "no code was given below the URL: an operator makes one: bursar fleet invite",
        )),
        (false, Some(_)) => Ok(given),
    }
}

/// The configuration with the lines of a fleet; `None`: it would not say what is meant.
fn with_fleet(text: &str, url_file: &Path, host_label: Option<&str>) -> Option<String> {
    let url_file = url_file.to_str()?;
    let mut lines = vec![format!("url_file = {url_file:?}")];
    lines.extend(host_label.map(|label| format!("host_label = {label:?}")));
    let lines = format!("{}\n", lines.join("\n"));
    let header = |line: &&str| {
        line.split('#')
            .next()
            .is_some_and(|code| code.trim() == "[fleet]")
    };
    let new = match text.split_inclusive('\n').find(header) {
        Some(header) => {
            let (before, behind) = text.split_once(header)?;
            let end = if header.ends_with('\n') { "" } else { "\n" };
            format!("{before}{header}{end}{lines}{behind}")
        }
        None => {
            let end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            format!("{text}{end}\n[fleet]\n{lines}")
        }
    };
    says_url_file(&new, Some(url_file)).then_some(new)
}

/// The configuration without the URL's file; `None`: it would not say what is meant.
fn without_fleet(text: &str) -> Option<String> {
    let mut is_fleet = false;
    let mut new = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default().trim();
        if code.starts_with('[') {
            is_fleet = code == "[fleet]";
        }
        let is_url_file = code
            .split('=')
            .next()
            .is_some_and(|key| key.trim() == "url_file");
        if !(is_fleet && is_url_file) {
            new.push_str(line);
        }
    }
    says_url_file(&new, None).then_some(new)
}

fn says_url_file(text: &str, wanted: Option<&str>) -> bool {
    let Ok(file) = toml::de::DeTable::parse(text) else {
        return false;
    };
    let fleet = file.get_ref().get("fleet");
    let said = fleet.and_then(|table| table.get_ref().get("url_file"));
    said.and_then(|value| value.get_ref().as_str()) == wanted
}

pub fn leave(args: &LeaveArgs) -> Result<(), CliError> {
    let place = block_on(args.ledger.found())?;
    let directory = Directory::open(&place.state_dir)?;
    // A daemon would go on shipping.
    let _lock = Directory::open(&place.state_dir)?.lock()?;
    let Some(identity) = FleetIdentity::read(&directory).map_err(failed)? else {
        return Err(CliError::Failed(format!(
            "the ledger in {} is in no fleet",
            place.state_dir.display()
        )));
    };
    let shipped = match block_on(shipped_to_the_end(&place)) {
        Ok(lines) => lines,
        Err(error) if args.unshipped => {
            remark(format_args!(
                "bursar: {error}; what was not shipped stays here alone"
            ));
            0
        }
        Err(error) => {
            return Err(CliError::Failed(format!(
                "{error}. Nothing was changed; --unshipped leaves without shipping the rest"
            )));
        }
    };
    let config = match place.path.as_deref() {
        Some(path) if place.fleet.url_file.is_some() => {
            let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            let new = without_fleet(&text).ok_or_else(|| {
                CliError::Failed(format!(
                    "take url_file below [fleet] out of {} yourself, then give this command again",
                    path.display()
                ))
            })?;
            replace(path, &new)?;
            Some(path.display().to_string())
        }
        _ => None,
    };
    // The name stays: under another one everything would be shipped a second time after a return.
    FleetOrders::remove(&directory)?;
    if args.json {
        return say_document(&LeaveDocument {
            ledger: identity.ledger.to_string(),
            lines_shipped: shipped,
            config,
        });
    }
    say(format_args!(
        "the ledger {} has left its fleet; what it shipped stays counted there. Its file with the URL can be removed; \
         `bursar fleet join` brings it back under the same name",
        identity.ledger
    ))
}

/// Ships what is left, then says goodbye.
async fn shipped_to_the_end(place: &Whereabouts) -> Result<u64, CliError> {
    let table = &place.fleet;
    let path = table.url_file.as_ref().ok_or_else(|| {
        CliError::Failed("[fleet] url_file is not set: the database is not known".to_owned())
    })?;
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let fleet: Fleet = connected(&UrlFile::parse(&text).url, table).await?;
    let shipping = Shipping::open(place.state_dir.clone(), table.label(), table.ship_people);
    let Some(mut shipping) = shipping.map_err(failed)? else {
        return Ok(0);
    };
    let now_ms = SystemClock::shared().wall_ms();
    let shipped = shipping.visit(&fleet, now_ms).await.map_err(failed)?;
    fleet.leave(shipping.identity()).await.map_err(failed)?;
    Ok(shipped.lines)
}

/// A file of its own, 0600 where nothing else is asked.
fn write(path: &Path, text: &str, mode: Option<u32>) -> Result<(), CliError> {
    let target = WholeFile::create(path)?;
    let written = io::Write::write_all(&mut target.file(), text.as_bytes());
    written.map_err(|error| unwritable(path, &error))?;
    if let Some(mode) = mode {
        let mode = Mode::from_raw_mode(mode);
        fchmod(target.file(), mode).map_err(|error| unwritable(path, &error.into()))?;
    }
    target.keep()
}

/// The same with owner and mode of what stands there, through a link.
fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    let path = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    let before = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
    let target = WholeFile::create(&path)?;
    let written = || -> io::Result<()> {
        io::Write::write_all(&mut target.file(), text.as_bytes())?;
        let now = target.file().metadata()?;
        if (before.uid(), before.gid()) != (now.uid(), now.gid()) {
            let owner = Some(Uid::from_raw(before.uid()));
            fchown(target.file(), owner, Some(Gid::from_raw(before.gid())))?;
        }
        let mode = before.permissions().mode() & 0o7777;
        Ok(fchmod(target.file(), Mode::from_raw_mode(mode))?)
    };
    written().map_err(|error| unwritable(&path, &error))?;
    target.keep()
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be read: {error}", path.display()))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
