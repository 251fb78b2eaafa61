//! The lines of a fleet in a machine's configuration, and how files beside it are written.
//!
//! Promise: a configuration is replaced whole, with its owner and mode, and only by one that parses and says what is meant.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};

use crate::cli::error::CliError;
use crate::cli::whole_file::WholeFile;

/// The system service's configuration, whose user cannot read a file of mode 0600 beside it.
pub const SYSTEM_CONFIG: &str = "/etc/bursar/config.toml";

/// What gives the system service the file with the URL as a credential.
pub const DROP_IN: &str = "/etc/systemd/system/bursar.service.d/fleet.conf";

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
pub fn with_fleet(text: &str, url_file: &Path, host_label: Option<&str>) -> Option<String> {
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
pub fn without_fleet(text: &str) -> Option<String> {
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
pub fn says(text: &str, key: &str, wanted: Option<&str>) -> bool {
    let Ok(file) = toml::de::DeTable::parse(text) else {
        return false;
    };
    let fleet = file.get_ref().get("fleet");
    let said = fleet.and_then(|table| table.get_ref().get(key));
    said.and_then(|value| value.get_ref().as_str()) == wanted
}

/// A file of its own, of the owner that another one has.
pub fn write(path: &Path, text: &str, mode: u32, owner: &Metadata) -> Result<(), CliError> {
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
pub fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    let path = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    let before = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
    write(&path, text, before.permissions().mode() & 0o7777, &before)
}

pub fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be read: {error}", path.display()))
}

pub fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
