//! Arguments that several commands share: the flags beside the configuration, a time zone, amounts, words.

use std::fmt::Display;
use std::path::PathBuf;

use jiff::tz::TimeZone;

use super::error::CliError;
use super::look::Look;
use super::output::remark;
use crate::calendar;
use crate::config::Overrides;
use crate::ledger::query::{GroupBy, StateWord};
use crate::money::MicroUsd;

/// Flags that `run` and `check` share; each wins over environment and file.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// URL of the service, without /v1 [env: BURSAR_UPSTREAM]
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// File with the organization's key [env: BURSAR_API_KEY_FILE, or the key in BURSAR_API_KEY]
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Address for apps, IP:PORT or unix:/PATH; may be repeated
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Address for metrics, health and the status page
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
    /// Directory of the ledger [env: BURSAR_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// Flags of every reading command: the form of its answer.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormArgs {
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values with a header row
    #[arg(long)]
    csv: bool,
    /// Show all columns and whole lines, however wide they are
    #[arg(long)]
    wide: bool,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text(Look),
    Json,
    Csv,
}

/// The zone that was named, or this machine's. One of the machine's that is not understood counts
/// as UTC, with a remark.
pub fn zone(name: Option<&str>) -> Result<TimeZone, CliError> {
    let zone = calendar::zone(name)?;
    if name.is_some() || !zone.is_unknown() {
        return Ok(zone);
    }
    remark(
        "bursar: this machine's time zone is not understood (TZ, /etc/localtime); this is in UTC",
    );
    Ok(TimeZone::UTC)
}

/// An amount in dollars, `7.50`.
pub fn usd(text: &str) -> Result<MicroUsd, String> {
    MicroUsd::parse_usd(text).ok_or_else(|| {
        "it takes an amount of dollars, 0 or more, such as 12.50, with at most six digits after the point"
            .to_owned()
    })
}

/// Since when, where nothing is said: several whole rows of what it is grouped by.
pub fn since_of(by: &[GroupBy], now_ms: u64, zone: &TimeZone) -> String {
    let is_by = |one| by.contains(&one);
    let first_week = || calendar::first_week(now_ms, zone);
    if is_by(GroupBy::Month) {
        "this year".to_owned()
    } else if is_by(GroupBy::Week) {
        first_week().unwrap_or_else(|| "this year".to_owned())
    } else if is_by(GroupBy::Day) {
        "this month".to_owned()
    } else {
        "today".to_owned()
    }
}

/// A word of a closed set as it is typed: `in-doubt` or `in_doubt`.
pub fn word<T: Copy + Display>(known: &[T], typed: &str) -> Result<T, String> {
    let typed = typed.replace('-', "_");
    let mut words = known.iter().copied();
    words.find(|word| word.to_string() == typed).ok_or_else(|| {
        let words = known.iter().map(|word| word.to_string().replace('_', "-"));
        let words: Vec<String> = words.collect();
        format!("it takes one of {}", words.join(", "))
    })
}

pub fn state_word(typed: &str) -> Result<StateWord, String> {
    word(StateWord::ALL, typed)
}

// === impl FormArgs ===

impl FormArgs {
    pub fn form(self) -> Form {
        let look = Look::of_standard_output();
        match self {
            Self { json: true, .. } => Form::Json,
            Self { csv: true, .. } => Form::Csv,
            Self { wide: true, .. } => Form::Text(look.wide()),
            _ => Form::Text(look),
        }
    }
}

// === impl ConfigArgs ===

impl ConfigArgs {
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            upstream: self.upstream.clone(),
            api_key_file: self.api_key_file.clone(),
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            state_dir: self.state_dir.clone(),
        }
    }
}
