//! The attempts of one request, from the first to the last: when the next one is made, and what its end is when
//! no more is made.
//!
//! | doing | event | what follows |
//! |---|---|---|
//! | – | the key may be sent | send |
//! | – | what an adopted key stands for may have run, and the key may not be sent any more | refused: outcome unknown |
//! | sending | the attempt ended without an answer | wait, or the attempt's own end, by the table of [`super::retry`] |
//! | waiting | too many requests wait already | refused; what may have run, or need not wait, waits all the same |
//! | waiting | waited, and the answer is wanted | queue, where the route needs a place; else ask for leave |
//! | queueing | a place came, and the answer is wanted | ask for leave |
//! | queueing | no place came in time, or the app left | the last attempt's end |
//! | queueing | bursar is stopping | refused; where an attempt may have run, the last attempt's end |
//! | waiting, queueing | the app was frozen, or its run ended | refused |
//! | waiting, queueing, asking | it came to its end, and the answer is not wanted any more | the last attempt's end |
//! | asking | the app is frozen, or its run has ended | refused |
//! | asking | a limit is reached | refused; a purchase that may have run is charged already, and goes on |
//! | asking | nothing forbids it | send; under a key that may not be sent any more, the last attempt's end |
//!
//! Promise: pure. The loop of `dispatch` and the model check carry out the same actions.

use std::time::Duration;

use super::retry::{Ending, Next, Repeat, Retries};
use crate::proxy::refuse::{Code, Refusal};

/// Where the attempts of one request stand.
#[derive(Debug)]
pub struct RetryLoop {
    /// Its attempts need places at the service.
    queues: bool,
    doing: LoopState,
}

#[derive(Clone, Copy, Debug)]
enum LoopState {
    Sending,
    Waiting(Repeat),
    Queueing(Repeat),
    Asking(Repeat),
}

/// What the caller has to do, and answer with an [`AttemptEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptAction {
    /// Makes an attempt: [`AttemptEvent::Ended`]. An answer for the app ends the loop.
    Send(Option<Repeat>),
    /// Waits as one of the requests that may wait, or beyond their number: [`AttemptEvent::Waited`],
    /// [`AttemptEvent::Crowded`] or [`AttemptEvent::Halted`].
    Wait {
        wait: Duration,
        beyond: bool,
    },
    /// Waits for a place at the service, for an app that is there as long as it is: any of the events from
    /// [`AttemptEvent::Placed`] on, or [`AttemptEvent::Halted`].
    Queue {
        while_here: bool,
    },
    /// Asks whether the app may spend: [`AttemptEvent::Leave`].
    Ask,
    /// As the last attempt ended. `exhausted`: the table allows another, and none is left.
    EndAsLast {
        exhausted: bool,
    },
    Refuse(Refusal),
}

#[derive(Clone, Debug)]
pub enum AttemptEvent {
    Ended(Ending),
    /// Too many requests wait already.
    Crowded(Refusal),
    Waited,
    /// An operator froze the app, or its run ended, during a wait.
    Halted(Refusal),
    /// What forbids another attempt.
    Leave {
        halt: Option<Refusal>,
        limit: Option<Refusal>,
    },
    Placed,
    NoPlace,
    /// bursar is stopping, and gives no places any more.
    QueueClosed,
    AppLeft,
}

/// The clock, the key and the app as they are when an event comes.
#[derive(Clone, Copy, Debug)]
pub struct AttemptView {
    /// Monotonic.
    pub now: Duration,
    /// The jitter of the next wait, in parts of 2³².
    pub share: u32,
    /// The age of the key allows that it is sent again (rule I6).
    pub may_repeat: bool,
    pub wanted: WantedBy,
}

/// Which app waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedBy {
    ItsApp,
    Follower,
    NoApp,
}

// === impl RetryLoop ===

impl RetryLoop {
    /// The first action. `may_begin`: the machine may have slept since an old key was taken over.
    pub fn begin(queues: bool, may_begin: bool) -> (Self, AttemptAction) {
        let doing = LoopState::Sending;
        let first = if may_begin {
            AttemptAction::Send(None)
        } else {
            AttemptAction::Refuse(Code::OutcomeUnknown.into())
        };
        (Self { queues, doing }, first)
    }

    /// What follows an event.
    pub fn on(
        &mut self,
        event: AttemptEvent,
        retries: &Retries,
        view: AttemptView,
    ) -> AttemptAction {
        match (self.doing, event) {
            (LoopState::Sending, AttemptEvent::Ended(ending)) => self.ended(&ending, retries, view),
            (LoopState::Waiting(repeat), AttemptEvent::Crowded(crowd)) => {
                if retries.may_have_run() || repeat.wait.is_zero() {
                    let wait = repeat.wait;
                    AttemptAction::Wait { wait, beyond: true }
                } else {
                    // Ask the app to retry no earlier than the service asked.
                    AttemptAction::Refuse(crowd.no_earlier_than(repeat.wait))
                }
            }
            (LoopState::Waiting(_) | LoopState::Queueing(_), AttemptEvent::Halted(halt)) => {
                AttemptAction::Refuse(halt)
            }
            (LoopState::Queueing(_), AttemptEvent::QueueClosed) if !retries.may_have_run() => {
                AttemptAction::Refuse(Code::ShuttingDown.into())
            }
            // Nothing is spent on an answer for no app.
            (_, AttemptEvent::Waited | AttemptEvent::Placed | AttemptEvent::Leave { .. })
                if view.wanted == WantedBy::NoApp =>
            {
                AttemptAction::EndAsLast { exhausted: false }
            }
            (LoopState::Waiting(repeat), AttemptEvent::Waited) if self.queues => {
                self.doing = LoopState::Queueing(repeat);
                AttemptAction::Queue {
                    while_here: view.wanted == WantedBy::ItsApp,
                }
            }
            (LoopState::Waiting(repeat), AttemptEvent::Waited)
            | (LoopState::Queueing(repeat), AttemptEvent::Placed) => {
                self.doing = LoopState::Asking(repeat);
                AttemptAction::Ask
            }
            (LoopState::Asking(repeat), AttemptEvent::Leave { halt, limit }) => {
                let limit = limit.filter(|_| !retries.is_charged());
                match halt.or(limit) {
                    Some(refusal) => AttemptAction::Refuse(refusal),
                    // The machine may have slept through the wait.
                    None if view.may_repeat => {
                        self.doing = LoopState::Sending;
                        AttemptAction::Send(Some(repeat))
                    }
                    None => AttemptAction::EndAsLast { exhausted: false },
                }
            }
            _ => AttemptAction::EndAsLast { exhausted: false },
        }
    }

    fn ended(&mut self, ending: &Ending, retries: &Retries, view: AttemptView) -> AttemptAction {
        match retries.next(ending, view.share, view.now, view.may_repeat) {
            Next::Repeat(repeat) => {
                self.doing = LoopState::Waiting(repeat);
                let wait = repeat.wait;
                AttemptAction::Wait {
                    wait,
                    beyond: false,
                }
            }
            Next::Exhausted => AttemptAction::EndAsLast { exhausted: true },
            Next::Stop => AttemptAction::EndAsLast { exhausted: false },
        }
    }
}

#[cfg(test)]
mod tests;
