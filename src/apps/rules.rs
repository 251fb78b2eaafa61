//! The caps of all apps there are: declared, added, and whoever is none.

use super::{Apps, Table};
use crate::caps::Rules;
use crate::config;

// === impl Apps ===

impl Apps {
    /// As the apps are now.
    pub fn cap_rules(&self, caps: &config::Caps) -> Rules {
        of(&self.table(), caps)
    }
}

pub(super) fn of(table: &Table, caps: &config::Caps) -> Rules {
    let known = table.known().iter().map(|known| &*known.app);
    Rules::new(caps, known.chain([&**table.default_app()])).of_all_apps()
}
