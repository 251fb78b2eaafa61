//! The bounds of apps and runs, and why apps cannot be read or changed.

use crate::config::NameError;
use crate::ledger::LedgerError;

/// Most apps, declared and added: each is a label of every metric that has apps.
pub const APPS_MAX: usize = 64;

/// Runs at once. Each holds a connection of the admin listener, which has twice as many.
pub const RUNS_MAX: usize = 32;

/// Why apps cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AppsError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(
        "{path} is damaged ({why}), so it is not known which apps may spend. Move it away and add its apps \
         again with `bursar app add`; the ledger is not affected"
    )]
    Damaged { path: String, why: String },
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("there is an app {name:?} already; `bursar app rotate {name}` gives it a new token")]
    Exists { name: String },
    #[error(
        "the app {name:?} is declared in the configuration ({place}); it is changed there, and a \
         reload (SIGHUP, `systemctl reload bursar`) applies it"
    )]
    Declared { name: String, place: String },
    #[error("there is no app {name:?}; `bursar app list` shows them")]
    Unknown { name: String },
    #[error(
        "the app {name:?} was added while bursar ran and is declared in the configuration \
         ({place}) as well; remove it in one place: `bursar app remove {name}`, or there"
    )]
    Twice { name: String, place: String },
    #[error(
        "{place} in the state directory: the app {name:?} was added under that name, and {why}: \
         `bursar app remove {name}`, then `bursar app add` it with another one. What it spent stays \
         in the ledger, under its old name"
    )]
    Misnamed {
        name: String,
        place: String,
        why: NameError,
    },
    #[error("the user {uid} is the app {name:?} already")]
    UserTaken { uid: u32, name: String },
    #[error("the apps {one:?} and {other:?} have the same token; give one of them another")]
    SameToken { one: String, other: String },
    #[error("there are {APPS_MAX} apps; no more can be added")]
    Full,
    #[error(
        "the cap of the {short} is above that of the {long}, which would never let it be reached"
    )]
    Caps {
        short: &'static str,
        long: &'static str,
    },
    #[error("\"default\" is the app of callers that show no token; it is declared, not added")]
    Default,
    #[error("there are {RUNS_MAX} runs of `bursar exec` at once; no more can begin")]
    RunsFull,
    #[error("no token can be drawn: {0}")]
    Random(getrandom::Error),
}
