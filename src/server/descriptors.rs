//! File descriptors: 768 apps with a connection to the service each need more than the 1024 that a
//! process has by default, and what lacks one then is the ledger's next segment.
//!
//! Promise: the soft limit is raised as far as the process may, up to what bursar can use; a limit
//! that is too low for it is logged at start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As in the systemd unit.
const WANTED: u64 = 8192;

/// What bursar can have open at once: apps and their upstream connections, those turned away, the
/// admin listener, and the ledger's files.
const NEEDED: u64 = 768 + 768 + 64 + 128 + 128;

/// Raises the soft limit.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(WANTED).min(WANTED);
    let now = limit.current.unwrap_or(u64::MAX);
    if now < most {
        let raised = Rlimit {
            current: Some(most),
            ..limit
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit on open files could not be raised");
        }
    }
    if most.max(now) < NEEDED {
        tracing::warn!(
            limit = most.max(now),
            "the limit on open files is too low for 768 apps at once (LimitNOFILE, ulimit -n)"
        );
    }
}
