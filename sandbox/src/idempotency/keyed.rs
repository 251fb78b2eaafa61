//! A run's hold on the binding of its key.
//!
//! Promise: a run touches the binding it began with and no other, whatever became of the key since.

use super::{Binding, KeyId, Keys, Outcome, kept};
use std::sync::Arc;

#[derive(Debug)]
pub struct Keyed {
    pub keys: Arc<Keys>,
    pub id: KeyId,
    /// The binding it runs for. After a reset the key may have another, which is none of its business.
    pub n: u64,
}

// === impl Keyed ===

impl Keyed {
    /// Does something to the binding, when it is still there.
    pub fn with<T>(&self, work: impl FnOnce(&mut Binding) -> T) -> Option<T> {
        let mut bindings = self.keys.bindings.lock();
        let binding = bindings.get_mut(&self.id);
        binding.filter(|binding| binding.n == self.n).map(work)
    }

    pub fn end(&self, outcome: Option<Outcome>) {
        let (id, keep) = (&self.id, &self.keys.keep);
        let mut bindings = self.keys.bindings.lock();
        let found = bindings.get_mut(id);
        let Some(binding) = found.filter(|binding| binding.n == self.n) else {
            return;
        };
        binding.running = binding.running.saturating_sub(1);
        match (outcome, &binding.outcome) {
            // What is stored stays: a repeat that ran beside it changes nothing.
            (Some(outcome), Outcome::None | Outcome::Bound) => binding.outcome = outcome,
            // A run that broke after its debit: a repeat must not be billed again.
            (None, Outcome::None) if binding.running == 0 && binding.billed.is_some() => {
                binding.outcome = Outcome::Bound;
            }
            // Assumed (key-after-failure): a key with which nothing succeeded is free for any body.
            (None, Outcome::None) if binding.running == 0 => {
                bindings.remove(id);
                return;
            }
            _ => {}
        }
        if keep.is_on() && binding.is_told() {
            keep.push(kept::change(id, binding));
        }
        binding.ended.send_replace(());
    }
}
