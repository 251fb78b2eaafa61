//! The limit of a run (`bursar exec --max-usd`): each paid request of the run asks for leave before its
//! intent is written.
//!
//! Promise: a request that waits for others of its run holds nothing at the service and ends with its
//! app; one that was refused was not sent. What a request was let go for is given back once, however it
//! ends.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::Request;
use super::spend::{self, NoPermit};
use super::turn::patience;
use crate::apps::runs::{Leave, Run, WAIT_MAX};
use crate::ledger::entry::{EntryId, InDoubt, KeyOrigin, State};
use crate::money::MicroUsd;
use crate::proxy::downstream::Downstream;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::OpenEntry;

/// A request on its way counts for its run until this has been told how it ended.
#[derive(Debug)]
pub struct RunHold {
    run: Arc<Run>,
    entry: EntryId,
    /// It is charged already.
    is_repeat: bool,
    is_told: bool,
}

impl Request<'_> {
    /// Waits until the run has room for the request, or has none any more. What it holds goes to the
    /// entry.
    pub(super) async fn leave_of_run(
        &self,
        downstream: &mut Downstream,
        entry: &mut OpenEntry,
    ) -> Result<(), NoPermit> {
        let Some(run) = &self.admitted.caller.run else {
            return Ok(());
        };
        if let Some(KeyOrigin::Adopted { from }) = entry.live.key.as_ref().map(|key| key.origin) {
            run.repeats(self.entry_id, from);
            entry.hold = Some(RunHold {
                run: Arc::clone(run),
                entry: self.entry_id,
                is_repeat: true,
                is_told: false,
            });
            return Ok(());
        }
        let refusal = match self.wait_for_run(run, downstream).await {
            Ok(hold) => {
                entry.hold = Some(hold);
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        entry.never_sent();
        let keep = match refusal {
            Some(refusal) => self.refuse(downstream, &refusal).await,
            None => {
                self.gateway.metrics.disconnect("waiting");
                false
            }
        };
        Err(NoPermit { keep })
    }

    /// An error without a refusal: the app has left.
    async fn wait_for_run(
        &self,
        run: &Arc<Run>,
        downstream: &mut Downstream,
    ) -> Result<RunHold, Option<Refusal>> {
        let of_all = self.settings.config.caps.request_floor;
        let floor = self.app.request_floor.unwrap_or(of_all);
        let until = Instant::now() + WAIT_MAX.min(patience(self.admitted));
        let mut moves = run.moves();
        let mut stop = self.gateway.stop_signal();
        loop {
            match run.ask(self.entry_id, floor) {
                Leave::Go => {
                    return Ok(RunHold {
                        run: Arc::clone(run),
                        entry: self.entry_id,
                        is_repeat: false,
                        is_told: false,
                    });
                }
                Leave::Reached { max, spent, held } => {
                    return Err(Some(reached(run, max, spent, held)));
                }
                Leave::Wait => {}
            }
            let moved = tokio::select! {
                moved = timeout_at(until, moves.changed()) => moved,
                // As between attempts, an end of input is enough: nothing is spent on the answer.
                () = downstream.left() => return Err(None),
                frozen = self.gateway.caps.stopped(&self.app.name) => {
                    return Err(Some(spend::refusal(&frozen)));
                }
                () = stop.wait() => return Err(Some(Refusal::new(Code::ShuttingDown))),
            };
            if moved.is_err() {
                return Err(Some(waited(run)));
            }
        }
    }
}

fn reached(run: &Run, max: MicroUsd, spent: MicroUsd, held: MicroUsd) -> Refusal {
    Refusal {
        detail: Cow::Owned(format!(
            "The run {} of {} has reached its limit of {max} (bursar exec --max-usd): {spent} billed, \
             {held} set aside for answers whose price is not known. Nothing was sent; a new run has a \
             new limit.",
            run.id, run.app
        )),
        ..Refusal::new(Code::CapReached)
    }
}

fn waited(run: &Run) -> Refusal {
    Refusal {
        detail: Cow::Owned(format!(
            "What is left of the limit of the run {} of {} (bursar exec --max-usd) is taken by its \
             requests on their way, and none ended in time. Nothing was sent.",
            run.id, run.app
        )),
        ..Refusal::new(Code::CapBusy)
    }
}

// === impl RunHold ===

impl RunHold {
    /// The run's limit was reached while its request waited for a place.
    pub fn over(&self) -> Option<Refusal> {
        let over = self.run.over().filter(|_| !self.is_repeat);
        let (max, spent, held) = over?;
        Some(reached(&self.run, max, spent, held))
    }

    /// Nothing of it was sent.
    pub fn give_back(mut self) {
        self.is_told = true;
        self.run.give_back(self.entry);
    }

    /// How it ended.
    pub fn ended(mut self, state: State, estimate: Option<MicroUsd>) {
        self.is_told = true;
        self.run.ended(self.entry, state, estimate);
    }
}

impl Drop for RunHold {
    fn drop(&mut self) {
        if !self.is_told {
            // Its outcome could not be written, or its task failed: it may have run.
            let reason = InDoubt::Crash;
            self.run.ended(self.entry, State::InDoubt { reason }, None);
        }
    }
}
