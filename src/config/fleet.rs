//! `[fleet]`: where the organization's other ledgers are, and what of this one goes there.
//!
//! Promise: the URL, which holds a password, is kept in none of these types and stands in no text of them; it is not
//! read from a file that other users could read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::env::Env;
use super::errors::At;
use super::key::KeyFile;
use super::opened::open_to_read;
use super::reader::{Need, Reader};
use super::written::quoted;

const LABEL_CHARS_MAX: usize = 64;

const URL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Why the file with the URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UrlFileError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error(
        "every user of this machine can read or replace it (mode {mode:04o}), and it holds a password; run: chmod o-rwx \
         {path}"
    )]
    OpenToOthers { path: String, mode: u32 },
}

/// `[fleet]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetTable {
    /// `None`: this bursar is in no fleet.
    pub url_file: Option<PathBuf>,
    /// `None`: the machine's name.
    pub host_label: Option<String>,
    pub ca_file: Option<PathBuf>,
    pub insecure: bool,
    pub interval: Duration,
    /// How long lines stay one by one after the database has them.
    pub resend: Duration,
    pub ship_people: bool,
    pub stop_flush: Duration,
    /// The caps that this bursar obeys together with others, by their names in the database.
    pub shared_caps: Vec<String>,
    /// It is gone soon: it leases single requests, and returns what it has when it stops.
    pub ephemeral: bool,
}

// === impl FleetTable ===

impl FleetTable {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("fleet");
        Self {
            url_file: url_file(reader),
            host_label: host_label(reader),
            ca_file: reader.path("ca_file").map(|given| given.value),
            insecure: reader.flag("insecure").unwrap_or(false),
            interval: reader.seconds("ship_interval_s"),
            resend: Duration::from_secs(reader.number("resend_days") * 24 * 60 * 60),
            ship_people: reader.flag("ship_people").unwrap_or(false),
            stop_flush: reader.seconds("stop_flush_s"),
            shared_caps: shared_caps(reader),
            ephemeral: reader.flag("ephemeral").unwrap_or(false),
        }
    }

    /// What this machine is called in the fleet.
    pub fn label(&self) -> String {
        self.host_label.clone().unwrap_or_else(own_name)
    }
}

fn url_file(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let At { value, place } = reader.path("url_file")?;
    if !cfg!(feature = "fleet") {
        reader.refuse(
            &place,
            "this bursar was built without the fleet (Cargo feature fleet)",
        );
    }
    // One that is not there yet keeps nothing from being served.
    if !matches!(reader.need(), Need::Whereabouts | Need::KeyPlace)
        && let Err(why @ UrlFileError::OpenToOthers { .. }) = opened(&value, reader.env())
    {
        reader.refuse(&place, format!("{}: {why}", value.display()));
    }
    Some(value)
}

/// What stands in the file of a URL.
pub fn url_text(path: &Path, env: &Env) -> Result<String, UrlFileError> {
    let mut text = String::new();
    let mut file = opened(path, env)?.take(URL_FILE_BYTES_MAX);
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn opened(path: &Path, env: &Env) -> Result<File, UrlFileError> {
    let file = open_to_read(path)?;
    match KeyFile::at(path, env).open_to_others(&file)? {
        None => Ok(file),
        Some(mode) => Err(UrlFileError::OpenToOthers {
            path: path.display().to_string(),
            mode,
        }),
    }
}

fn host_label(reader: &mut Reader<'_>) -> Option<String> {
    let At { value, place } = reader.text("host_label")?;
    if !is_label(&value) {
        let wanted = "takes 1 to 64 of a-z, 0-9 and . _ -, such as \"build-7\"";
        reader.refuse(&place, wanted);
    }
    reader.set("host_label", quoted(&value));
    Some(value)
}

/// Most of them: each is asked for by itself.
const SHARED_CAPS_MAX: usize = 16;

const CAP_CHARS_MAX: usize = 64;

fn shared_caps(reader: &mut Reader<'_>) -> Vec<String> {
    let names = reader.each("shared_caps", cap_name);
    let place = reader.place("shared_caps").unwrap_or_default();
    if names.len() > SHARED_CAPS_MAX {
        reader.refuse(&place, format!("takes at most {SHARED_CAPS_MAX} names"));
    }
    let is_twice = |(at, name): (usize, &String)| names.iter().take(at).any(|one| one == name);
    if names.iter().enumerate().any(is_twice) {
        reader.refuse(&place, "has a name twice");
    }
    if !names.is_empty() && reader.place("url_file").is_none() {
        reader.refuse(
            &place,
            "takes [fleet] url_file beside it: shared caps stand in the fleet's database",
        );
    }
    names
}

/// The name of a shared cap, as the database takes it.
pub fn cap_name(text: &str) -> Result<String, String> {
    let is_of =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    match (1..=CAP_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_of) {
        true => Ok(text.to_owned()),
        false => Err("takes names of 1 to 64 of a-z, 0-9, _ and -, such as \"team\"".to_owned()),
    }
}

pub fn is_label(text: &str) -> bool {
    let is_of =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=LABEL_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_of)
}

/// The machine's name, in the form of a label.
fn own_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().to_ascii_lowercase();
    let name: String = name
        .chars()
        .map(|letter| match is_label(letter.encode_utf8(&mut [0; 4])) {
            true => letter,
            false => '-',
        })
        .take(LABEL_CHARS_MAX)
        .collect();
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => name,
    }
}
