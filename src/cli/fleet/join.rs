//! `bursar fleet join` and `leave`: this machine's ledger goes into a fleet, or out of it.
//!
//! Promise: the URL, which holds a password, is typed or piped, never an argument; it is written to one file, 0600, whole
//! or not at all, and after the database was asked whether the login, the version and the code will do. The
//! configuration is replaced only by one that parses and names that file. Nothing is restarted.

use std::fs::Metadata;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use rustix::process::geteuid;
use serde::Serialize;
use uuid::Uuid;

use super::address::{SKEW_MS_MAX, connected, failed, read};
use super::leased::end;
use crate::cli::error::CliError;
use crate::cli::key::typed;
use crate::cli::locate::LedgerArgs;
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::whole_file::WholeFile;
use crate::clock::{SystemClock, millis};
use crate::config::{Whereabouts, is_label};
use crate::fleet::{Fleet, FleetError, FleetIdentity, FleetOrders, Shipping, Trouble, UrlFile};
use crate::ledger::state_dir::Directory;

/// The system service's configuration, whose user cannot read a file of mode 0600 beside it.
const SYSTEM_CONFIG: &str = "/etc/bursar/config.toml";

/// What gives the system service the file as a credential.
const DROP_IN: &str = "/etc/systemd/system/bursar.service.d/fleet.conf";
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
    /// `null`: it was in none, or the system service has it.
    ledger: Option<String>,
    /// `false`: the fleet was not told, or the system service has yet to tell it.
    left: bool,
    lines_shipped: u64,
    config: Option<String>,
    /// A command for what is left to do.
    then: Option<&'static str>,
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

/// The lines of a configuration, and which are of its table `[fleet]`; the header is one.
fn lines_of_fleet(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_fleet = false;
    text.split_inclusive('\n').map(move |line| {
        let code = line.split('#').next().unwrap_or_default().trim();
        if let Some(table) = code.strip_prefix('[') {
            is_fleet = table
                .strip_suffix(']')
                .is_some_and(|name| name.trim() == "fleet");
        }
        (line, is_fleet)
    })
}

fn key_of(line: &str) -> &str {
    let code = line.split('#').next().unwrap_or_default();
    code.split_once('=').map_or("", |(key, _)| key.trim())
}

/// The configuration with the lines of a fleet; `None`: it would not say what is meant.
fn with_fleet(text: &str, url_file: &Path, host_label: Option<&str>) -> Option<String> {
    let url_file = url_file.to_str()?;
    let mut keys = vec![("url_file", url_file)];
    keys.extend(host_label.map(|label| ("host_label", label)));
    let lines = keys
        .iter()
        .map(|(key, value)| format!("{key} = {value:?}\n"));
    let lines: String = lines.collect();
    // Below the header; the old lines of these keys go.
    let mut new = String::with_capacity(text.len() + lines.len());
    let mut is_written = false;
    for (line, is_fleet) in lines_of_fleet(text) {
        if is_fleet && keys.iter().any(|(key, _)| *key == key_of(line)) {
            continue;
        }
        new.push_str(line);
        if is_fleet && !is_written {
            if !line.ends_with('\n') {
                new.push('\n');
            }
            new.push_str(&lines);
            is_written = true;
        }
    }
    if !is_written {
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        new.push_str(&format!("{end}\n[fleet]\n{lines}"));
    }
    let says_all = keys.iter().all(|(key, value)| says(&new, key, Some(value)));
    says_all.then_some(new)
}

/// The configuration without the URL's file, and with its shared caps as a comment, for they are refused where that is
/// not; `None`: it would not say what is meant.
fn without_fleet(text: &str) -> Option<String> {
    let lines = lines_of_fleet(text).map(|(line, is_fleet)| match key_of(line) {
        "url_file" if is_fleet => String::new(),
        "shared_caps" if is_fleet => format!("# {line}"),
        _ => line.to_owned(),
    });
    let new: String = lines.collect();
    (says(&new, "url_file", None) && !shares_caps(&new)).then_some(new)
}

fn shares_caps(text: &str) -> bool {
    let file = toml::de::DeTable::parse(text).ok();
    let fleet = file.as_ref().and_then(|file| file.get_ref().get("fleet"));
    fleet.is_some_and(|table| table.get_ref().get("shared_caps").is_some())
}

/// Whether this is the value of a key below `[fleet]`; `None`: there is no such key.
fn says(text: &str, key: &str, wanted: Option<&str>) -> bool {
    let Ok(file) = toml::de::DeTable::parse(text) else {
        return false;
    };
    let fleet = file.get_ref().get("fleet");
    let said = fleet.and_then(|table| table.get_ref().get(key));
    said.and_then(|value| value.get_ref().as_str()) == wanted
}

pub fn leave(args: &LeaveArgs) -> Result<(), CliError> {
    let place = args.ledger.whereabouts()?;
    if place.path.as_deref() == Some(Path::new(SYSTEM_CONFIG)) && geteuid().is_root() {
        return leave_by_restart(args, &place);
    }
    let place = block_on(args.ledger.found())?;
    let directory = Directory::open(&place.state_dir)?;
    // A daemon would go on shipping.
    let _lock = Directory::open(&place.state_dir)?.lock()?;
    // Known before the goodbye, so that the command can be given again.
    let config = without(&place)?;
    let identity = FleetIdentity::read(&directory).map_err(failed)?;
    // `None`: the fleet was not told.
    let mut shipped = None;
    if identity.is_some() {
        match block_on(shipped_to_the_end(&place, args.unshipped)) {
            Ok(lines) => shipped = Some(lines),
            Err(error) if args.unshipped => remark_unshipped(&error),
            Err(error) => {
                return Err(CliError::Failed(format!(
                    "{error}. Nothing was changed; --unshipped leaves without shipping the rest"
                )));
            }
        }
    }
    if let Some((path, new)) = &config {
        replace(path, new)?;
    }
    // The name stays: under another one everything would be shipped a second time after a return.
    FleetOrders::remove(&directory)?;
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

fn remark_unshipped(why: &CliError) {
    remark(format_args!(
        "bursar: {why}; what was not shipped stays here alone"
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

/// Ships what is left, then says goodbye; where it may, also without shipping. Answers how many lines were shipped. An
/// error: the fleet was not told.
async fn shipped_to_the_end(place: &Whereabouts, may_be_less: bool) -> Result<u64, CliError> {
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
    let visited = shipping.visit(&fleet, clock.wall_ms()).await;
    let visited = visited.map_err(failed);
    if visited.is_err() && !may_be_less {
        return visited.map(|shipped| shipped.lines);
    }
    let (wall_ms, up_ms) = (clock.wall_ms(), millis(clock.since_boot()));
    match shipping.leave(&fleet, wall_ms, up_ms).await {
        // The fleet has shut it out, or never had it: nobody waits for it.
        Ok(()) | Err(Trouble::Fleet(FleetError::Revoked | FleetError::Unknown)) => {}
        Err(error) => return Err(failed(error)),
    }
    if let Err(error) = visited {
        remark_unshipped(&error);
    }
    Ok(shipping.take_shipped())
}

/// A file of its own, of the owner that another one has.
fn write(path: &Path, text: &str, mode: u32, owner: &Metadata) -> Result<(), CliError> {
    let target = WholeFile::create(path)?;
    let written = fill(&target, text, mode, owner);
    written.map_err(|error| unwritable(path, &error))?;
    target.keep()
}

fn fill(target: &WholeFile, text: &str, mode: u32, owner: &Metadata) -> io::Result<()> {
    io::Write::write_all(&mut target.file(), text.as_bytes())?;
    let now = target.file().metadata()?;
    if (owner.uid(), owner.gid()) != (now.uid(), now.gid()) {
        let user = Some(Uid::from_raw(owner.uid()));
        fchown(target.file(), user, Some(Gid::from_raw(owner.gid())))?;
    }
    Ok(fchmod(target.file(), Mode::from_raw_mode(mode))?)
}

/// The same with owner and mode of what stands there, through a link.
fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    let path = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    let before = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
    write(&path, text, before.permissions().mode() & 0o7777, &before)
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be read: {error}", path.display()))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
