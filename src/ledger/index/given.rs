//! Up to where answers are known to have gone out: a start after a kill need not take those for
//! undelivered.
//!
//! Promise: told by the writer alone, when it had nothing to do for a while; lost, it casts doubt on
//! answers of the journal's last moments and never gives certainty.

use super::rows::{META, Meta, decode, encode};
use super::{Index, IndexError, guarded};

// === impl Index ===

impl Index {
    /// Remembers that the writer had nothing to do for a while after the record `seq`: the answers that
    /// were settled up to there have gone out, or were noted.
    pub fn note_given(&self, seq: u64) -> Result<(), IndexError> {
        guarded(|| {
            let _turn = self.turn.lock();
            if let Some(meta) = self.handle.db()?.get(META)? {
                let mut meta: Meta = decode(&meta)?;
                meta.given_seq = seq.min(meta.last_seq);
                self.handle.db()?.insert(META, encode(&meta)?)?;
            }
            Ok(())
        })
    }
}
