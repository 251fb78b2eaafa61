//! `[ledger]` and `[reconcile]`: where the ledger is, what it does when its disk fails, and how it and the
//! service's figures are brought together.
//!
//! Promise: a name that no JSON document could have is refused here, not at the first comparison.

use std::path::PathBuf;
use std::time::Duration;

use super::env;
use super::errors::Location;
use super::reader::Reader;
use super::written::quoted;
use crate::protocol::closed_set;

const SPEND_FIELD_BYTES_MAX: usize = 128;

/// `[ledger]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerTable {
    /// From the root of the file system.
    pub state_dir: PathBuf,
    pub durability: Durability,
    pub on_failure: OnFailure,
    /// How long entries are kept one by one. `None`: for ever.
    pub retention: Option<Duration>,
}

/// `[reconcile]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconcile {
    /// bursar asks for eval runs that it saw start, until they report their price.
    pub poll_eval_runs: bool,
    /// How often bursar itself compares. `None`: never.
    pub every: Option<Duration>,
    /// The days that the service's document sums over.
    pub window_days: u64,
    /// The document's member with the billed spend; dots lead into objects.
    pub spend_field: String,
}

closed_set! {
    /// What an intent survives before its request leaves (rule I1).
    Durability {
        /// Power loss: one fdatasync a batch.
        Power => "power",
        /// kill -9 of this process: handed to the kernel.
        Process => "process",
    }
}

closed_set! {
    /// What becomes of metered requests while the ledger cannot be written.
    OnFailure {
        /// They are refused before they are sent (rule I1).
        Refuse => "refuse",
        /// They are sent; intent and outcome wait in memory. `intend` and `settle` then return `Ok` for
        /// what is not durable, and what waits is lost when the process dies before it is written.
        Serve => "serve",
    }
}

// === impl LedgerTable ===

impl LedgerTable {
    /// `None`: there is no state directory, which is reported.
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.enter("ledger");
        let state_dir = state_dir(reader);
        let durability = reader
            .word("durability", Durability::ALL)
            .unwrap_or(Durability::Power);
        let on_failure = reader
            .word("on_failure", OnFailure::ALL)
            .unwrap_or(OnFailure::Refuse);
        let retention = retention(reader);
        Some(Self {
            state_dir: state_dir?,
            durability,
            on_failure,
            retention,
        })
    }
}

// === impl Reconcile ===

impl Reconcile {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("reconcile");
        Self {
            poll_eval_runs: reader.flag("poll_eval_runs").unwrap_or(true),
            every: every(reader),
            window_days: reader.number("window_days"),
            spend_field: spend_field(reader).unwrap_or_default(),
        }
    }
}

/// Hours; 0 is never.
fn every(reader: &mut Reader<'_>) -> Option<Duration> {
    let hours = reader.number("every_h");
    (hours > 0).then(|| Duration::from_secs(hours * 60 * 60))
}

/// The name of the billed spend in `/v1/auto/metrics`.
/// Assumed: the interface does not name the field; the default is the sandbox's name.
fn spend_field(reader: &mut Reader<'_>) -> Option<String> {
    let field = reader.text("spend_field")?;
    let is_path = (1..=SPEND_FIELD_BYTES_MAX).contains(&field.value.len())
        && field.value.bytes().all(|byte| byte.is_ascii_graphic())
        && field.value.split('.').all(|part| !part.is_empty());
    if !is_path {
        let wanted =
            "takes a member's name, such as \"billed_micro_usd_30d\"; dots lead into objects";
        reader.refuse(&field.place, wanted);
    }
    reader.set("spend_field", quoted(&field.value));
    Some(field.value)
}

/// Whole days; 0 is for ever. A key's amount may come for a day, so one day is too short.
fn retention(reader: &mut Reader<'_>) -> Option<Duration> {
    const KEY: &str = "retention_days";
    let days = reader.number(KEY);
    if let (1, Some(place)) = (days, reader.place(KEY)) {
        reader.refuse(
            &place,
            "takes 0 (for ever) or 2 and more, not 1: a price may come a day later",
        );
    }
    (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60))
}

fn state_dir(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let in_file = reader.text("state_dir");
    let from_flag = reader.overrides().state_dir.clone();
    let env = reader.env();
    let from_env = env.path(env::BURSAR_STATE_DIR);
    let given = from_flag
        .or(from_env)
        .or_else(|| in_file.map(|given| reader.whole_path(given).value));
    let from_systemd = || {
        let list = env.get(env::STATE_DIRECTORY)?.to_string_lossy();
        let path = list.split(':').next().map(PathBuf::from)?;
        // With DynamicUser= this path is systemd's own link to the directory, and the ledger
        // follows no links.
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    };
    let from_xdg = || {
        let base = env.path(env::XDG_STATE_HOME)?;
        base.is_absolute().then(|| base.join("bursar"))
    };
    let from_home = || Some(env.path(env::HOME)?.join(".local/state/bursar"));
    let found = given
        .or_else(from_systemd)
        .or_else(from_xdg)
        .or_else(from_home)
        .and_then(|path| std::path::absolute(path).ok());
    if found.is_none() {
        reader.refuse(
            &Location::default(),
            "no state directory: set state_dir in [ledger] of the configuration file, BURSAR_STATE_DIR, or --state-dir DIR",
        );
    }
    if let Some(path) = &found {
        reader.set("state_dir", quoted(&path.to_string_lossy()));
    }
    found
}
