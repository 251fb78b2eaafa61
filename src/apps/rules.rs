//! The caps of all apps there are: declared, added, and whoever is none.

use super::Apps;
use crate::caps::Rules;
use crate::config;

// === impl Apps ===

impl Apps {
    /// As the apps are now.
    pub fn cap_rules(&self, caps: &config::Caps) -> Rules {
        let table = self.table();
        let known = table.known().iter().map(|known| &*known.app);
        Rules::new(caps, known.chain([&**table.default_app()]))
    }
}
