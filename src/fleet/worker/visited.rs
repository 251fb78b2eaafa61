//! What a visit to the fleet's database came to, and what is logged of it.
//!
//! Promise: each trouble is logged once for its reason, and the end of all once.

use crate::calendar;
use crate::fleet::ship::{Shipped, Trouble};
use crate::telemetry::metrics::FleetFigures;

/// What a visit that reached the database came to.
pub struct Visited {
    pub lines: ShipOutcome,
    /// Why leases of shared caps are not up to date.
    pub lease_trouble: Option<Trouble>,
}

/// What became of the lines that the fleet lacked.
pub enum ShipOutcome {
    /// They were not the errand, which shows nothing of them.
    NotAsked,
    Shipped(Shipped),
    Stuck(Trouble),
}

/// Logs each trouble once, and the end of all. Whether this visit had none. Trouble with the lines stays until a visit
/// ships them: one that ships nothing comes to its end all the same.
pub fn note(reported: &mut FleetFigures, visited: Result<Visited, Trouble>) -> bool {
    const NO_LINES: &str = "the fleet gets no lines; requests go on";
    let (lines, trouble, so) = match visited {
        Ok(visited) => {
            let of_leases = |trouble| format!("shared caps cannot be leased: {trouble}");
            let trouble = visited.lease_trouble.map(of_leases);
            (visited.lines, trouble, "lines are shipped all the same")
        }
        Err(trouble) => {
            let trouble = Some(trouble.to_string());
            (ShipOutcome::NotAsked, trouble, NO_LINES)
        }
    };
    let is_heard = trouble.is_none() && !matches!(lines, ShipOutcome::Stuck(_));
    let ship_trouble = match lines {
        ShipOutcome::NotAsked => reported.ship_trouble.clone(),
        ShipOutcome::Shipped(_) => None,
        ShipOutcome::Stuck(trouble) => Some(trouble.to_string()),
    };
    let so = ship_trouble.as_ref().map_or(so, |_| NO_LINES);
    // What broke off the lines may then keep the next visit from coming there at all: it is one reason.
    let before = [reported.trouble.clone(), reported.ship_trouble.clone()];
    for now in [&trouble, &ship_trouble] {
        if let Some(trouble) = now.as_ref().filter(|_| !before.contains(now)) {
            let since = reported.heard_ms.and_then(calendar::rfc3339);
            tracing::warn!(trouble, since, "{so}");
        }
    }
    let had_trouble = reported.troubles().is_some();
    reported.trouble = trouble;
    reported.ship_trouble = ship_trouble;
    if had_trouble && reported.troubles().is_none() {
        tracing::info!("the fleet is reached again");
    }
    is_heard
}

#[cfg(test)]
mod tests;
