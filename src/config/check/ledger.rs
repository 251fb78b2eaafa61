//! `[ledger]`: where it is, and what it does when its disk fails.

use std::path::PathBuf;
use std::time::Duration;

use super::Check;
use crate::config::env;
use crate::config::errors::Place;
use crate::config::file::{At, LedgerTable};
use crate::config::settings::{Durability, Ledger, OnFailure};

/// A hundred years.
const RETENTION_DAYS_MAX: u64 = 36_500;

pub fn ledger(check: &mut Check<'_>, table: LedgerTable) -> Option<Ledger> {
    let on_failure = check.word(
        table.on_failure,
        OnFailure::Refuse,
        OnFailure::ALL,
        OnFailure::as_str,
    );
    let durability = check.word(
        table.durability,
        Durability::Power,
        Durability::ALL,
        Durability::as_str,
    );
    let retention = retention(check, table.retention_days);
    let state_dir = state_dir(check, table.state_dir)?;
    Some(Ledger {
        state_dir,
        durability,
        on_failure,
        retention,
    })
}

/// Whole days; 0 is for ever. A key's amount may come for a day, so one day is too short.
fn retention(check: &mut Check<'_>, days: Option<At<i64>>) -> Option<Duration> {
    let place = days.as_ref().map(|days| days.place.clone());
    let days = check.number("ledger", "retention_days", days, 0, 0..=RETENTION_DAYS_MAX);
    if let (1, Some(place)) = (days, place) {
        check.refuse(
            &place,
            "takes 0 (for ever) or 2 and more, not 1: a price may come a day later",
        );
    }
    (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60))
}

fn state_dir(check: &mut Check<'_>, in_file: Option<At<String>>) -> Option<PathBuf> {
    let from_flag = check.overrides().state_dir.clone();
    let from_env = check.env().path(env::BURSAR_STATE_DIR);
    let given = from_flag
        .or(from_env)
        .or_else(|| in_file.map(|given| check.path(given)));
    let from_systemd = || {
        let list = check.env().get(env::STATE_DIRECTORY)?.to_string_lossy();
        let path = list.split(':').next().map(PathBuf::from)?;
        // With DynamicUser= this path is systemd's own link to the directory, and the ledger
        // follows no links.
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    };
    let from_xdg = || {
        let base = check.env().path(env::XDG_STATE_HOME)?;
        base.is_absolute().then(|| base.join("bursar"))
    };
    let from_home = || Some(check.env().path(env::HOME)?.join(".local/state/bursar"));
    let found = given
        .or_else(from_systemd)
        .or_else(from_xdg)
        .or_else(from_home)
        .and_then(|path| std::path::absolute(path).ok());
    if found.is_none() {
        check.refuse(
            &Place::default(),
            "no state directory: set state_dir in [ledger] of the configuration file, BURSAR_STATE_DIR, or --state-dir DIR",
        );
    }
    found
}
