//! The writer's way through an outage: room for the outcomes of requests in flight on a full disk,
//! and entries that wait for the journal to be open again.
//!
//! Promise: what waits is let go only when it is durable or can never be written.

use super::Writer;
use crate::ledger::error::LedgerError;
use crate::ledger::later::OUTCOMES_MAX;
use crate::ledger::queue::{Answer, Command, Reply};
use crate::ledger::state::{KeyView, fold};

// === impl Writer ===

impl Writer {
    /// Writes what outlasted its request, before anything newer.
    pub(super) fn settle_waiting(&mut self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let waiting = self.shared.later.waiting();
        if waiting.is_empty() && self.unnoted.is_empty() {
            return false;
        }
        let mut commands = Vec::with_capacity(waiting.len());
        // Before the intents: one that takes a key over comes behind what was noted of it.
        let unnoted = self.unnoted.iter().cloned();
        commands.extend(unnoted.map(|(row, handover)| Command::Deliver(row, handover)));
        for entry in &waiting {
            commands.extend(entry.intent.clone().map(Command::IntendLate));
            commands.extend(entry.outcome.clone().map(Command::Settle));
        }
        let replies = self.commit_or_open_reserve(&commands.iter().collect::<Vec<_>>());
        if self.failure.is_some() {
            return true;
        }
        for (command, reply) in commands.iter().zip(&replies) {
            if let (Command::Settle(outcome), Err(error)) = (command, reply) {
                tracing::error!(entry = %outcome.id, %error, "an outcome could not be written");
            }
        }
        self.unnoted.clear();
        self.shared.later.forget(&waiting);
        tracing::info!(entries = waiting.len(), "wrote the entries that waited");
        true
    }

    /// What became of an answer is noted when it can be: nobody tells it again.
    pub(super) fn keep_notes(&mut self, commands: &[&Command], replies: &[Reply]) {
        for (command, reply) in commands.iter().zip(replies) {
            if let Command::Deliver(row, handover) = command
                && reply.as_ref().is_err_and(LedgerError::is_passing)
            {
                if self.unnoted.len() >= OUTCOMES_MAX {
                    tracing::warn!(entry = %row.id, "a delivery could not be noted");
                    continue;
                }
                self.unnoted.push((row.clone(), *handover));
            }
        }
    }

    /// `on_failure = "serve"`: what could not be written now waits in memory, and counts as written
    /// for who asked.
    pub(super) fn keep_for_later(&mut self, commands: &[&Command], replies: &mut [Reply]) {
        for (command, reply) in commands.iter().zip(replies) {
            if !reply.as_ref().is_err_and(LedgerError::is_passing) {
                continue;
            }
            let later = &self.shared.later;
            match command {
                Command::Intend(intent) => match later.push_intent(intent.clone()) {
                    Ok(()) => *reply = Ok(Answer::Intended),
                    Err(error) => {
                        // Not sent after all. Its line may have reached the file.
                        self.refused.insert(intent.id);
                        *reply = Err(error);
                    }
                },
                Command::Settle(outcome) => {
                    // What other entries of its key amount to is not known now.
                    let settlement = fold(outcome, Some(&KeyView::default()));
                    *reply = later
                        .push((**outcome).clone())
                        .map(|()| Answer::Settled(settlement));
                }
                Command::Deliver(row, handover) => later.tell_delivery(row.id, handover.delivered),
                Command::IntendLate(_)
                | Command::ReconcileRun { .. }
                | Command::Remember
                | Command::KeyCharged(..) => {}
            }
        }
    }

    pub(super) fn commit_or_open_reserve(&mut self, commands: &[&Command]) -> Vec<Reply> {
        let was_open = self.failure.is_none();
        let replies = self.commit(commands);
        if was_open && self.failure.as_ref().is_some_and(LedgerError::is_full) {
            // The reserve makes room for what was already sent; intents are refused.
            self.open_reserve();
            return self.commit(commands);
        }
        replies
    }

    /// Gives the reserve's room to the outcomes of requests in flight.
    pub(super) fn open_reserve(&mut self) {
        let new = if self.serves {
            "requests are sent all the same"
        } else {
            "no new metered requests until there is room"
        };
        tracing::error!("the disk is full: {new}");
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
            if !self.is_full
                && self.failure.is_none()
                && let Err(error) = self.end_what_died()
            {
                self.fail(error);
            }
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
