//! `[fleet]`: where the organization's other ledgers are, and what of this one goes there.
//!
//! Promise: the URL, which holds a password, is not read here and stands in no text of this type.

use std::path::PathBuf;
use std::time::Duration;

use super::errors::At;
use super::reader::Reader;
use super::written::quoted;

const LABEL_CHARS_MAX: usize = 64;

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
    Some(value)
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
