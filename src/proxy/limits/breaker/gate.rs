//! One gate of the breaker: open, closed for a while, or closed but for the one that asks.
//!
//! Promise: at most one probe is out at a time, and a probe that comes to nothing makes room for the
//! next at once.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
enum GateState {
    #[default]
    Open,
    /// No request passes before this.
    Closed { until: Duration },
    /// One has passed and has no answer yet. After the time, silence means that it was served.
    Probed {
        number: u64,
        until: Option<Duration>,
    },
}

#[derive(Debug, Default)]
pub struct Gate {
    state: GateState,
    probes: u64,
}

/// The right to ask for all.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe(u64);

// === impl Gate ===

impl Gate {
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, GateState::Open)
    }

    /// Lets a request pass, as a probe where the gate is closed; or says how long it is closed. With
    /// `silence`, a probe that was not refused for so long opens the gate.
    pub fn pass(
        &mut self,
        now: Duration,
        silence: Option<Duration>,
    ) -> Result<Option<Probe>, Duration> {
        if let Some(left) = self.closed_for(now) {
            return Err(left);
        }
        match self.state {
            GateState::Open => Ok(None),
            GateState::Probed { .. } => {
                self.state = GateState::Open;
                Ok(None)
            }
            GateState::Closed { .. } => {
                self.probes += 1;
                self.state = GateState::Probed {
                    number: self.probes,
                    until: silence.map(|silence| now.saturating_add(silence)),
                };
                Ok(Some(Probe(self.probes)))
            }
        }
    }

    /// How long it is closed; `None` where a request may pass.
    pub fn closed_for(&self, now: Duration) -> Option<Duration> {
        match self.state {
            GateState::Open => None,
            GateState::Probed { until: None, .. } => Some(Duration::ZERO),
            GateState::Closed { until }
            | GateState::Probed {
                until: Some(until), ..
            } => until.checked_sub(now).filter(|left| !left.is_zero()),
        }
    }

    /// It is open again whatever a probe is answered.
    pub fn reset(&mut self) {
        self.state = GateState::Open;
    }

    /// The answer to this probe decides.
    pub fn awaits(&self, probe: &Probe) -> bool {
        matches!(self.state, GateState::Probed { number, .. } if number == probe.0)
    }

    /// A refusal. `false` where a request that passed before the gate closed brings it: it adds nothing.
    pub fn close(&mut self, probe: Option<Probe>, until: Duration) -> bool {
        let is_new = match self.state {
            GateState::Open => true,
            GateState::Probed { .. } => probe.is_some_and(|probe| self.awaits(&probe)),
            GateState::Closed { .. } => false,
        };
        if is_new {
            self.state = GateState::Closed { until };
        }
        is_new
    }

    /// A probe was served.
    pub fn open(&mut self, probe: Probe) {
        if self.awaits(&probe) {
            self.state = GateState::Open;
        }
    }

    /// A probe came to nothing.
    pub fn unused(&mut self, probe: Probe, now: Duration) {
        if self.awaits(&probe) {
            self.state = GateState::Closed { until: now };
        }
    }
}
