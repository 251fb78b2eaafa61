//! Waiting for the service while watching the app: all that awaits upstream does it through
//! [`ClientWatch`], so that a leaving app is noticed at once, may be followed, and never cancels
//! what was paid for.
//!
//! Promise: only bursar's own shutdown ends a wait early. What is there already is taken without asking for
//! anything else.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::downstream::Downstream;
use super::life::CutSignal;
use crate::ledger::entry::Stage;
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::attempts::WantedBy;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::shared::Purchase;

/// The app's side during dispatch and relay.
pub struct ClientWatch<'a> {
    gateway: &'a Arc<Gateway>,
    downstream: &'a mut Downstream,
    purchase: Option<Arc<Purchase>>,
    /// What the app was waiting for, for the counter of those that left.
    stage: Stage,
    departure: Departure,
    cut: CutSignal,
}

/// Whether the app left before it had all that it waits for.
#[derive(Clone, Copy, Debug)]
enum Departure {
    NotYet,
    /// How far the answer was, and when that was on the monotonic clock.
    At(Stage, Duration),
    /// It has all that it waits for: that it leaves now is no loss.
    Served,
}

/// How often a connection is looked at whose end of input is only suspicion: the runtime reports no
/// more of it.
const BROKEN_LOOK: Duration = Duration::from_millis(100);

/// bursar is shutting down and its time is up.
#[derive(Debug)]
pub struct Cut;

// === impl ClientWatch ===

impl<'a> ClientWatch<'a> {
    pub fn new(
        gateway: &'a Arc<Gateway>,
        downstream: &'a mut Downstream,
        purchase: Option<Arc<Purchase>>,
    ) -> Self {
        Self {
            gateway,
            downstream,
            purchase,
            stage: Stage::Waiting,
            departure: Departure::NotYet,
            cut: gateway.life.cut_signal(),
        }
    }

    /// Of a metered request; no request follows a free one.
    pub fn purchase(&self) -> Option<&Arc<Purchase>> {
        self.purchase.as_ref()
    }

    /// The app's connection.
    pub fn downstream(&self) -> &Downstream {
        self.downstream
    }

    /// The same, to be written to.
    pub fn downstream_mut(&mut self) -> &mut Downstream {
        self.downstream
    }

    /// How far the answer is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The answer has come so far.
    pub fn reaches(&mut self, stage: Stage) {
        self.stage = stage;
    }

    /// How far the answer was when the app left, and when that was on the monotonic clock.
    pub fn left(&self) -> Option<(Stage, Duration)> {
        match self.departure {
            Departure::At(stage, at) => Some((stage, at)),
            Departure::NotYet | Departure::Served => None,
        }
    }

    /// The app has left, and no other has taken its place.
    pub fn is_alone(&self) -> bool {
        self.downstream.presence() != Presence::Here && !self.is_followed()
    }

    fn is_followed(&self) -> bool {
        let purchase = self.purchase.as_ref();
        purchase.is_some_and(|purchase| purchase.is_followed())
    }

    /// Awaits something of the service's. It is pinned by the caller: these futures are large.
    pub async fn attend<F: Future + Unpin>(&mut self, mut future: F) -> Result<F::Output, Cut> {
        let cut = &mut self.cut;
        if self.downstream.presence() == Presence::Here {
            tokio::select! {
                biased;
                output = &mut future => return Ok(output),
                () = self.downstream.left() => {}
                () = cut.wait() => return Err(Cut),
            }
            self.notice();
        }
        tokio::select! {
            biased;
            output = &mut future => Ok(output),
            () = self.cut.wait() => Err(Cut),
        }
    }

    /// The same where it is only worth waiting as long as the app is there: `None` when it left.
    /// What was awaited must bear to be dropped.
    pub async fn attend_while_here<F: Future + Unpin>(
        &mut self,
        future: F,
    ) -> Result<Option<F::Output>, Cut> {
        // A service that is always ready would put off the stop without end.
        if self.cut.is_given() {
            return Err(Cut);
        }
        let cut = &mut self.cut;
        tokio::select! {
            biased;
            output = future => return Ok(Some(output)),
            () = self.downstream.left() => {}
            () = cut.wait() => return Err(Cut),
        }
        self.notice();
        Ok(None)
    }

    /// The same for an app whose input has ended, as long as its connection is not broken: `None` when
    /// that shows. A refusal of what was written before may arrive behind the end of input.
    pub async fn attend_unless_broken<F: Future + Unpin>(
        &mut self,
        mut future: F,
    ) -> Result<Option<F::Output>, Cut> {
        if self.downstream.presence() == Presence::Gone {
            return self.attend(future).await.map(Some);
        }
        if self.cut.is_given() {
            return Err(Cut);
        }
        let mut looks = tokio::time::interval(BROKEN_LOOK);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return Ok(Some(output)),
                _ = looks.tick() => {
                    if self.downstream.look() == Presence::Gone {
                        self.notice();
                        return Ok(None);
                    }
                }
                () = self.cut.wait() => return Err(Cut),
            }
        }
    }

    /// Which app waits for the answer.
    pub fn wanted(&mut self) -> WantedBy {
        if self.look() == Presence::Here {
            WantedBy::ItsApp
        } else if self.is_followed() {
            WantedBy::Follower
        } else {
            WantedBy::NoApp
        }
    }

    /// Looks once whether the app is there, and reports to the table when it is not.
    pub fn look(&mut self) -> Presence {
        let presence = self.downstream.look();
        self.seen(presence)
    }

    /// The same by [`Downstream::look_closely`].
    pub fn look_closely(&mut self) -> Presence {
        let presence = self.downstream.look_closely();
        self.seen(presence)
    }

    fn seen(&mut self, presence: Presence) -> Presence {
        if presence != Presence::Here {
            self.notice();
        }
        presence
    }

    /// The app has its answer's end mark: openai-python leaves as soon as it has read it.
    pub fn satisfied(&mut self) {
        if let Departure::NotYet = self.departure {
            self.departure = Departure::Served;
        }
    }

    /// The app has left, or a write to it failed.
    pub fn notice(&mut self) {
        if let Departure::NotYet = self.departure {
            self.departure = Departure::At(self.stage, self.gateway.clock.monotonic());
            self.gateway.metrics.disconnect(self.stage.as_str());
        }
        if let Some(purchase) = &self.purchase {
            purchase.app_left();
        }
    }
}
