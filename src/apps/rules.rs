//! The caps of all apps there are: declared, added, and the app of callers that are none.

use super::table::Table;
use crate::caps::Rules;
use crate::config;

pub(super) fn of(table: &Table, caps: &config::CapsTable) -> Rules {
    let known = table.known().iter().map(|known| &*known.app);
    Rules::new(caps, known.chain([&**table.default_app()])).of_all_apps()
}
