//! A store whose disk is broken, for the tests of what writes to it.

use super::*;

// === impl StateFile ===

impl StateFile {
    /// From here on every use fails, until the file is put back.
    pub fn take_away(&self) -> Option<Database> {
        self.database.write().take()
    }

    pub fn put_back(&self, database: Option<Database>) {
        *self.database.write() = database;
    }
}
