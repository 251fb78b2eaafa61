//! A request that came in, on its way to the service: what all its steps share.

use std::sync::Arc;
use std::time::Duration;

use crate::config::App;
use crate::ledger::entry::EntryId;
use crate::ledger::kept_key::KeptKey;
use crate::proxy::door::admit::Admitted;
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::guard::SpendGuard;
use crate::proxy::settings::Settings;
use crate::proxy::settle::Measured;

/// One request behind the door.
pub struct Request<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    /// The app that spends.
    pub app: Arc<App>,
    pub admitted: &'a Admitted,
    pub arrived: Duration,
    /// How long its app took to send its body.
    pub body_took: Duration,
    pub entry_id: EntryId,
    /// That it asks for, once its body was read.
    pub model: Option<String>,
    /// Under which it goes, as the ledger keeps it; from the claim on.
    pub key: Option<KeptKey>,
}

/// "else 10 minutes": the client default of the interface.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(600);

/// An app that says more is not believed: attempts are not begun for longer than this.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

/// Longest wait for room below a cap, or for an earlier answer's end.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

// === impl Request ===

impl Request<'_> {
    /// Monotonic time after which no wait and no attempt begins.
    pub fn deadline(&self) -> Duration {
        self.arrived.saturating_add(self.patience())
    }

    /// The app's announced patience, at most an hour, "less the larger of 1 s and 10 %", and never less than
    /// half of it; else 10 minutes.
    pub fn patience(&self) -> Duration {
        let announced = self.admitted.patience;
        announced.map_or(PATIENCE_DEFAULT, |announced| {
            let announced = announced.min(PATIENCE_MAX);
            // A request with a patience of one second would be left none to wait for a place.
            let margin = (announced / 10)
                .max(Duration::from_secs(1))
                .min(announced / 2);
            announced.saturating_sub(margin)
        })
    }

    /// Where its time went until now, of which it waited so long for a place. Of a request that is not sent no time
    /// is bursar's own.
    pub fn measured(&self, queued: Option<Duration>) -> Measured {
        Measured {
            total: self.gateway.clock.monotonic().saturating_sub(self.arrived),
            queue: queued.unwrap_or_default(),
            ..Measured::default()
        }
    }

    /// What stops it from spending.
    pub fn guard(&self) -> SpendGuard {
        SpendGuard {
            apps: Arc::clone(&self.gateway.apps),
            caps: Arc::clone(&self.gateway.caps),
            app: Arc::clone(&self.app.name),
            run: self.admitted.caller.run.clone(),
            session: self.admitted.app_session(),
        }
    }
}
