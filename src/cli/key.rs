//! `bursar key set`: another key of the organization, into the file that bursar reads it from.
//!
//! The key is asked for at a terminal, without an echo, or read from standard input. The service is asked
//! for its models with it, which costs nothing; a key that it refuses is not written.
//!
//! Promise: the key is in no argument, is never printed, and is written to one file, 0600, whole or not
//! at all; where the system service's is encrypted, it is written as encrypted. What stood there stays until the new one is
//! proven.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use http::StatusCode;
use rustix::fs::{Gid, Uid, fchown};
use rustix::process::geteuid;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde::Serialize;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::error::CliError;
use super::locate::UNITS_KEY;
use super::output::{remark, say, say_document};
use super::runtime::block_on;
use super::whole_file::WholeFile;
use crate::clock::SystemClock;
use crate::config::{
    ApiKey, Config, Env, KEY_CHARS_MAX, KeyPlace, Overrides, read_key, users_folder,
};
use crate::proxy::{self, Authorities};
use crate::server::ServerError;

/// The key of the system service where systemd has encrypted it (docs/secrets.md).
const SEALED_KEY: &str = "/etc/bursar/api-key.cred";

/// Permission bits of a file's group.
const FOR_GROUP: u32 = 0o070;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// Check a new key with the service, then write it into the configured file
    Set(KeySetArgs),
}

#[derive(Debug, clap::Args)]
struct KeySetArgs {
    /// Write it without checking it with the service
    #[arg(long)]
    no_check: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file to write [default: the configured one]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// The service to check it with [default: the configured one]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
}

/// Where the key is written.
enum KeyFile {
    Plain(PathBuf),
    /// systemd encrypts it.
    Sealed(PathBuf),
}

/// `bursar key set --json`.
#[derive(Serialize)]
struct KeySetDocument {
    key_file: String,
    /// The service was asked, and takes it.
    checked: bool,
    /// What a running daemon takes it with: `reload`, or `restart` for the system service, which has a copy.
    takes: &'static str,
}

pub fn key(args: &Args) -> Result<(), CliError> {
    match &args.command {
        KeyCommand::Set(args) => set(args),
    }
}

// === impl KeyFile ===

impl KeyFile {
    /// What a link names is written, and the link stays. A name that ends in `.cred`, of the link or of the file, is that of
    /// an encrypted key: the plain one would be on the disk, and no unit could read it.
    fn at(named: PathBuf) -> Self {
        let path = std::fs::canonicalize(&named).unwrap_or_else(|_| named.clone());
        let is_sealed = |path: &Path| path.extension().is_some_and(|end| end == "cred");
        match is_sealed(&named) || is_sealed(&path) {
            true => Self::Sealed(path),
            false => Self::Plain(path),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Plain(path) | Self::Sealed(path) => path,
        }
    }

    /// A running daemon has a copy of it.
    fn is_credential(&self) -> bool {
        match self {
            Self::Plain(path) => path == Path::new(UNITS_KEY),
            Self::Sealed(_) => true,
        }
    }
}

fn set(args: &KeySetArgs) -> Result<(), CliError> {
    let overrides = Overrides {
        config: args.config.clone(),
        upstream: args.upstream.clone(),
        api_key_file: args.api_key_file.clone(),
        ..Overrides::default()
    };
    let env = Env::from_process();
    // No key is typed in before its place is known, and the service that it is checked with.
    let file = place(&overrides, &env)?;
    let path = file.path();
    let before = regular(path)?;
    if !args.no_check {
        let stand_in = ApiKey::from_text(b"none");
        let stand_in = stand_in.map_err(|error| CliError::Failed(error.to_string()))?;
        let config = Config::load_with(&overrides, &env, stand_in)?;
        proxy::authorities(&config).map_err(ServerError::from)?;
    }
    let key = asked_for()?;
    if args.no_check {
        remark("bursar: the service was not asked whether it takes this key (--no-check)");
    } else {
        let config = Config::load_with(&overrides, &env, key.clone())?;
        let upstream = config.upstream.base_url.to_string();
        let authorities = proxy::authorities(&config).map_err(ServerError::from)?;
        must_be_taken(config, authorities, &upstream)?;
    }
    write(&file, &key, before.as_ref())?;
    if args.json {
        return say_document(&KeySetDocument {
            key_file: path.display().to_string(),
            checked: !args.no_check,
            takes: match file.is_credential() {
                true => "restart",
                false => "reload",
            },
        });
    }
    say(format_args!("the key is in {}", path.display()))?;
    remark(in_force(&file, &env));
    Ok(())
}

/// The file that the key belongs into.
fn place(overrides: &Overrides, env: &Env) -> Result<KeyFile, CliError> {
    match Config::key_place(overrides, env)? {
        KeyPlace::File(path) => Ok(KeyFile::at(path)),
        KeyPlace::Variable => Err(CliError::Failed(
            "BURSAR_API_KEY is set and overrides the configured file: unset it, or name a file with \
             --api-key-file FILE"
                .to_owned(),
        )),
        // What root sets without naming a place is the key of the system service, where that is installed.
        KeyPlace::Nowhere if geteuid().is_root() && Path::new(UNITS_KEY).parent().is_some_and(Path::is_dir) => {
            units_key()
        }
        KeyPlace::Nowhere => Err(CliError::Failed(format!(
            "no file is configured for the key: write api_key_file = \"api-key\" below [upstream] of \
             ~/.config/bursar/config.toml, or name the configuration with --config FILE, or the file itself with \
             --api-key-file FILE. The key of the shipped system service is in {UNITS_KEY}: sudo bursar key set"
        ))),
    }
}

/// Where the system service has its key.
fn units_key() -> Result<KeyFile, CliError> {
    match (
        Path::new(UNITS_KEY).exists(),
        Path::new(SEALED_KEY).exists(),
    ) {
        (true, true) => Err(CliError::Failed(format!(
            "{UNITS_KEY} and {SEALED_KEY} are both there, and the service reads one of them: name it with \
             --api-key-file FILE, or remove the other"
        ))),
        (false, true) => Ok(KeyFile::at(PathBuf::from(SEALED_KEY))),
        (_, false) => Ok(KeyFile::at(PathBuf::from(UNITS_KEY))),
    }
}

/// What stands there now; `None` for nothing.
fn regular(path: &Path) -> Result<Option<Metadata>, CliError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(_) => Err(CliError::Failed(format!(
            "{} is no file: a key is written into a file of its own; name one with --api-key-file FILE",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::Failed(format!(
            "{} cannot be looked at: {error}",
            path.display()
        ))),
    }
}

fn asked_for() -> Result<ApiKey, CliError> {
    let stdin = io::stdin();
    let text = if stdin.is_terminal() {
        remark("bursar: the organization's key, then Enter (it is not shown):");
        block_on(async { Ok(typed(KEY_CHARS_MAX).await) })?
    } else {
        read_key(stdin.lock())
    };
    let text = text.map_err(|error| CliError::Failed(format!("no key was read: {error}")))?;
    ApiKey::from_text(&text).map_err(|error| CliError::Failed(error.to_string()))
}

/// One line from the terminal, which shows nothing of it. A signal leaves the terminal as it was.
pub async fn typed(bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let ended = interrupted()?;
    let _silent = Silent::begin()?;
    let (sender, typed) = oneshot::channel();
    // Its read cannot be called off: where a signal comes first it ends with the process.
    std::thread::spawn(move || sender.send(line(bytes_max)));
    select! {
        typed = typed => typed.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into())),
        () = ended => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Waits for SIGINT or SIGTERM. From the first call on they do nothing else.
fn interrupted() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Character by character: nothing is shown.
fn line(bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut stdin = io::stdin().lock();
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    let mut one = [0];
    loop {
        if stdin.read(&mut one)? == 0 {
            return Ok(text);
        }
        match one {
            [b'\r' | b'\n'] | [0x04] => return Ok(text),
            [0x03] => return Err(io::ErrorKind::Interrupted.into()),
            [0x08 | 0x7f] => {
                text.pop();
            }
            // One more than there may be: that it is too long is said.
            [byte] if text.len() <= bytes_max => text.push(byte),
            _ => {}
        }
    }
}

/// A terminal that shows nothing and hands over each character, until this is dropped.
struct Silent(Termios);

// === impl Silent ===

impl Silent {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Asks the service for its models, which is free.
fn must_be_taken(config: Config, authorities: Authorities, upstream: &str) -> Result<(), CliError> {
    let clock = SystemClock::shared();
    let answered = block_on(async {
        let ended = interrupted().map_err(|error| CliError::Failed(error.to_string()))?;
        select! {
            answered = proxy::own_call::models(config, authorities, &clock) => Ok(answered),
            () = ended => Err(CliError::Failed("interrupted: nothing was written".to_owned())),
        }
    })?;
    let why = match answered.map(|answer| answer.status) {
        Ok(status) if status.is_success() => return Ok(()),
        Ok(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => {
            return Err(CliError::Failed(format!(
                "the service at {upstream} refuses this key ({}): nothing was written",
                status.as_u16()
            )));
        }
        Ok(status) => format!("it answered {} to GET /v1/models", status.as_u16()),
        Err(error) => error.to_string(),
    };
    Err(CliError::Failed(format!(
        "whether the service at {upstream} takes this key is not known: {why}. Nothing was written; \
         --no-check writes it anyway"
    )))
}

fn write(file: &KeyFile, key: &ApiKey, before: Option<&Metadata>) -> Result<(), CliError> {
    let path = file.path();
    let target = WholeFile::create(path)?;
    let written = own_as(&target, before).and_then(|()| match file {
        KeyFile::Sealed(_) => seal(key, target.file()),
        KeyFile::Plain(_) => key.write_to(&mut target.file()),
    });
    written.map_err(|error| {
        CliError::Failed(format!("{} cannot be written: {error}", path.display()))
    })?;
    target.keep()?;
    if before.is_some_and(|before| before.permissions().mode() & FOR_GROUP != 0) {
        remark(format_args!(
            "bursar: until now the group of {} could read it; from now on only its owner can (0600)",
            path.display()
        ));
    }
    Ok(())
}

/// Has systemd encrypt the key for the credential `api-key` of this machine. It reaches systemd's program by a pipe.
fn seal(key: &ApiKey, to: &File) -> io::Result<()> {
    let mut sealing = Command::new("systemd-creds")
        .args(["encrypt", "--name=api-key", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(to.try_clone()?)
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("systemd-creds: {error}")))?;
    let written = match sealing.stdin.take() {
        Some(mut input) => key.write_to(&mut input),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    };
    match sealing.wait()? {
        ended if ended.success() => written,
        ended => Err(io::Error::other(format!(
            "systemd-creds encrypt ended with {ended}"
        ))),
    }
}

/// Root writes the file of a service's user: it stays that user's.
fn own_as(target: &WholeFile, before: Option<&Metadata>) -> io::Result<()> {
    let Some(before) = before else {
        return Ok(());
    };
    let now = target.file().metadata()?;
    if (before.uid(), before.gid()) != (now.uid(), now.gid()) {
        let owner = Some(Uid::from_raw(before.uid()));
        fchown(target.file(), owner, Some(Gid::from_raw(before.gid())))?;
    }
    Ok(())
}

/// How a daemon is started with the key, and when a running one takes it.
fn in_force(file: &KeyFile, env: &Env) -> &'static str {
    if file.is_credential() {
        return "bursar: to start the service: systemctl enable --now bursar.socket bursar-admin.socket bursar\n\
                bursar: if it is running, it keeps the key it was started with: systemctl restart bursar";
    }
    let users = users_folder(env).map(|folder| folder.join("api-key"));
    // What was written is named without links.
    let users = users.map(|users| std::fs::canonicalize(&users).unwrap_or(users));
    if users.is_some_and(|users| users == file.path()) {
        return "bursar: to start it: bursar run; as a service of your own: systemctl --user enable --now bursar.socket \
                bursar\n\
                bursar: if it is running, a reload takes the key: systemctl --user reload bursar, or SIGHUP to `bursar run`";
    }
    "bursar: a running daemon takes the key at a reload: `systemctl reload bursar`, or SIGHUP to its process. \
     Where a unit gives it the key as a credential (LoadCredential), it has a copy: `systemctl restart bursar`"
}
