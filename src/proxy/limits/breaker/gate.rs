//! One gate of the breaker: open, closed for a while, or closed but for the one that asks.
//!
//! Promise: at most one probe is out at a time, and a probe that comes to nothing makes room for the
//! next at once.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Open,
    /// Nobody passes before this.
    Closed { until: Duration },
    /// One has passed and has no answer yet. After the time, silence is good news.
    Probed {
        number: u64,
        until: Option<Duration>,
    },
}

#[derive(Debug, Default)]
pub struct Gate {
    state: State,
    probes: u64,
}

/// The right to ask for all.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe(u64);

// === impl Gate ===

impl Gate {
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// Lets somebody pass, as a probe where the gate is closed; or says how long it is closed. With
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
            State::Open => Ok(None),
            State::Probed { .. } => {
                self.state = State::Open;
                Ok(None)
            }
            State::Closed { .. } => {
                self.probes += 1;
                self.state = State::Probed {
                    number: self.probes,
                    until: silence.map(|silence| now.saturating_add(silence)),
                };
                Ok(Some(Probe(self.probes)))
            }
        }
    }

    /// How long it is closed; `None` where somebody may pass.
    pub fn closed_for(&self, now: Duration) -> Option<Duration> {
        match self.state {
            State::Open => None,
            State::Probed { until: None, .. } => Some(Duration::ZERO),
            State::Closed { until }
            | State::Probed {
                until: Some(until), ..
            } => until.checked_sub(now).filter(|left| !left.is_zero()),
        }
    }

    /// It is open again whatever a probe is answered.
    pub fn reset(&mut self) {
        self.state = State::Open;
    }

    /// The answer to this probe decides.
    pub fn awaits(&self, probe: &Probe) -> bool {
        matches!(self.state, State::Probed { number, .. } if number == probe.0)
    }

    /// Bad news. `false` where a request brings them that passed before it closed: they add nothing.
    pub fn close(&mut self, probe: Option<Probe>, until: Duration) -> bool {
        let is_news = match self.state {
            State::Open => true,
            State::Probed { .. } => probe.is_some_and(|probe| self.awaits(&probe)),
            State::Closed { .. } => false,
        };
        if is_news {
            self.state = State::Closed { until };
        }
        is_news
    }

    /// Good news of a probe.
    pub fn open(&mut self, probe: Probe) {
        if self.awaits(&probe) {
            self.state = State::Open;
        }
    }

    /// A probe came to nothing.
    pub fn unused(&mut self, probe: Probe, now: Duration) {
        if self.awaits(&probe) {
            self.state = State::Closed { until: now };
        }
    }
}
