//! File descriptors. A process has 1,024 by default, an app's connection and its own to the service take two,
//! and what lacks one when they are used up is the ledger's next segment.
//!
//! Promise: the soft limit is raised as far as the process may and bursar can use it; where that is too low for
//! `[listen] connections_max`, as many connections are served as fit, and one line of the log says so.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of an app's connection, and of its request at the service.
const OF_ONE_CONNECTION: u64 = 2;

/// What is not for apps: 64 that are turned away, 128 of the admin listener with a file each that they read, 256
/// kept connections to the service, and the ledger, the listeners and the log.
const OWN: u64 = 64 + 2 * 128 + 256 + 192;

/// Raises the soft limit for so many connections, and returns how many fit.
pub fn make_room(connections_max: usize) -> usize {
    let wanted = u64::try_from(connections_max).unwrap_or(u64::MAX);
    let needed = wanted.saturating_mul(OF_ONE_CONNECTION).saturating_add(OWN);
    let granted = raise_limit(needed);
    let fit = fitting(granted).min(connections_max);
    if fit < connections_max {
        tracing::warn!(
            "at most {fit} connections of apps are served at once, not the {connections_max} of [listen] \
             connections_max: {granted} open files are allowed, and they take {needed} (raise LimitNOFILE of the unit \
             or `ulimit -Hn`, or lower connections_max)"
        );
    }
    fit
}

/// How many connections have their descriptors below a limit; never none.
fn fitting(granted: u64) -> usize {
    let room = granted.saturating_sub(OWN) / OF_ONE_CONNECTION;
    usize::try_from(room).unwrap_or(usize::MAX).max(1)
}

/// Raises the soft limit to `needed`, as far as the hard one allows, and returns what it is then.
fn raise_limit(needed: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(u64::MAX);
    let most = limit.maximum.unwrap_or(u64::MAX).min(needed);
    if now >= most {
        return now;
    }
    let raised = Rlimit {
        current: Some(most),
        ..limit
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => most,
        Err(error) => {
            tracing::warn!(%error, "the limit on open files could not be raised");
            now
        }
    }
}

#[cfg(test)]
mod tests;
