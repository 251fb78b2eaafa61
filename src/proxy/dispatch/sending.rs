//! What a request's attempts are made of, the same for all of them, and what follows from that alone.
//!
//! Promise: nothing here changes while the attempts are made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use pingora::http::ResponseHeader;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use crate::protocol::receipt::Receipt;
use crate::protocol::receipt::lines::ReceiptLines;
use crate::protocol::routes::Route;
use crate::proxy::client_watch::ClientWatch;
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::guard::SpendGuard;
use crate::proxy::limits::waiters::WaiterGuard;
use crate::proxy::purchase::attempts::AttemptEvent;
use crate::proxy::quoted::{self, Private};
use crate::proxy::refuse::Refusal;
use crate::proxy::settings::Settings;
use crate::proxy::upstream::heads;
use crate::proxy::upstream::outgoing::Outgoing;

/// What is sent, by what, and for whom.
pub struct Sending<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    pub route: &'a Route,
    pub outgoing: &'a Outgoing,
    pub app: Arc<str>,
    /// `None` for what costs nothing.
    pub guard: Option<SpendGuard>,
}

// === impl Sending ===

impl Sending<'_> {
    /// On the monotonic clock.
    pub(super) fn now(&self) -> Duration {
        self.gateway.clock.monotonic()
    }

    pub(super) fn since(&self, before: Duration) -> Duration {
        self.now().saturating_sub(before)
    }

    /// The service is asked for a head alone; not so for one whose app is, where something is made of the body.
    pub(super) fn is_for_head(&self) -> bool {
        self.outgoing.header.method == Method::HEAD
    }

    pub(super) fn waiter(&self, beyond: bool) -> Result<WaiterGuard, Refusal> {
        if beyond {
            return Ok(self.gateway.waiters.enter_again(&self.app));
        }
        self.gateway.among_waiters(&self.app)
    }

    /// Resolves when an operator freezes the app, or its run ends; pends for ever for what costs nothing.
    pub(super) async fn halted(&self) -> Refusal {
        match &self.guard {
            Some(guard) => guard.halted().await,
            None => std::future::pending().await,
        }
    }

    /// What forbids the next attempt.
    pub(super) fn leave(&self, app: &ClientWatch<'_>) -> AttemptEvent {
        let guard = self.guard.as_ref();
        let limit = match app.purchase() {
            Some(purchase) => {
                let over = self.gateway.caps.over(purchase.entry);
                over.map(|over| Refusal::from(&over))
            }
            None => guard.and_then(SpendGuard::holds),
        };
        let halt = guard.and_then(SpendGuard::halts);
        AttemptEvent::Leave { halt, limit }
    }

    /// Memory for a large answer that is read whole.
    pub(super) fn room_for(
        &self,
        head: &ResponseHeader,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        let Outgoing {
            whole_bytes_max,
            whole_copies,
            echoed_bytes,
            ..
        } = self.outgoing;
        let announced = heads::content_length(&head.headers);
        let announced = announced.and_then(|length| usize::try_from(length).ok());
        let mib = announced
            .map_or(*whole_bytes_max, |length| length.min(*whole_bytes_max))
            .saturating_mul(*whole_copies)
            .saturating_add(*echoed_bytes)
            .div_ceil(1024 * 1024);
        self.gateway.room_for(mib)
    }

    pub(super) fn receipt_lines(&self, head: Option<&ResponseHeader>) -> Vec<String> {
        let Some(head) = head.filter(|_| self.route.is_metered()) else {
            return Vec::new();
        };
        let Settings { names, key, .. } = &*self.settings;
        ReceiptLines::of_headers(names, &heads::without_key(&head.headers, key)).into_vec()
    }

    /// The price in the head of a broken answer.
    pub(super) fn broken_receipt(&self, headers: &HeaderMap) -> Receipt {
        let Settings { names, key, .. } = &*self.settings;
        Receipt::from_broken_head(names, &heads::without_key(headers, key))
    }

    /// What the service says of a request that it refuses, where the log is to have it.
    pub(super) async fn quoted(&self, app: &ClientWatch<'_>, said: &Bytes) -> Option<String> {
        if !self.settings.config.log.service_detail {
            return None;
        }
        let Outgoing { header, body, .. } = self.outgoing;
        let private = Private::of(header, body, &app.downstream().head().headers);
        quoted::service_detail(&self.settings.key, said, private).await
    }
}
