//! The writer's way through an outage: room for the outcomes of requests in flight on a full disk,
//! and outcomes that waited for the journal to be open again.
//!
//! Promise: an outcome that waits is let go only when it is durable or can never be written.

use super::Writer;
use crate::ledger::error::LedgerError;
use crate::ledger::queue::{Command, Reply};

// === impl Writer ===

impl Writer {
    /// Writes the outcomes that outlasted their requests, before anything newer.
    pub(super) fn settle_waiting(&mut self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let outcomes = self.shared.later.waiting();
        if outcomes.is_empty() {
            return false;
        }
        let settle = |outcome| Command::Settle(Box::new(outcome));
        let commands: Vec<Command> = outcomes.into_iter().map(settle).collect();
        let replies = self.commit_or_open_reserve(&commands.iter().collect::<Vec<_>>());
        if self.failure.is_some() {
            return true;
        }
        for (command, reply) in commands.iter().zip(&replies) {
            if let (Command::Settle(outcome), Err(error)) = (command, reply) {
                tracing::error!(entry = %outcome.id, %error, "an outcome could not be written");
            }
        }
        self.shared.later.forget(replies.len());
        tracing::info!(outcomes = replies.len(), "wrote the outcomes that waited");
        true
    }

    pub(super) fn commit_or_open_reserve(&mut self, commands: &[&Command]) -> Vec<Reply> {
        let replies = self.commit(commands);
        if self.failure.as_ref().is_some_and(LedgerError::is_full) {
            // The reserve makes room for what was already sent; intents are refused.
            self.open_reserve();
            return self.commit(commands);
        }
        replies
    }

    /// Gives the reserve's room to the outcomes of requests in flight.
    pub(super) fn open_reserve(&mut self) {
        tracing::error!("the disk is full: no new metered requests until there is room");
        self.is_full = true;
        if let Err(error) = self.directory.drop_reserve() {
            tracing::error!(%error, "the reserve cannot be used");
        }
        self.reload();
    }

    /// While the disk is full: sets the reserve aside again when there is room for it.
    pub(super) fn make_room(&mut self) -> bool {
        let is_due = self.is_full && self.may_try();
        if is_due {
            self.make_reserve();
        }
        is_due
    }

    pub(super) fn make_reserve(&mut self) {
        self.tried_at = self.options.clock.monotonic();
        match self.directory.make_reserve() {
            Ok(()) => self.is_full = false,
            Err(error) if error.is_full() => self.is_full = true,
            Err(error) => tracing::warn!(%error, "no room could be set aside for a full disk"),
        }
    }
}
