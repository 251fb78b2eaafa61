//! The one debit of a request.
//!
//! Interface, Metering: "debit once per request or turn, however many internal model calls are made"; "a
//! request or turn that fails bills nothing".
//! Promise: this is the only caller of [`crate::books::Books::debit`] and [`crate::books::Books::enter`], and it is reached only after the work succeeded.

use crate::{
    books::Books,
    clock::Clock,
    error::ServiceError,
    fingerprint::Fingerprint,
    idempotency::{Claim, RunPermit},
    inbound::Inbound,
    keep::{Debit, Keep},
    money::MicroUsd,
    settings::RepeatBilled,
    spec,
};
use std::sync::Arc;

/// What the receipt shows, and whether it rests on an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    pub shown: MicroUsd,
    pub free_repeat: bool,
}

/// What turns finished work into a debit.
#[derive(Clone, Debug)]
pub struct Billing {
    books: Arc<Books>,
    clock: Clock,
    keep: Keep,
}

// === impl Billing ===

impl Billing {
    pub fn new(books: Arc<Books>, clock: Clock, keep: Keep) -> Self {
        Self { books, clock, keep }
    }

    /// Interface: an empty balance returns 402.
    ///
    /// Assumed (free-repeat-empty-balance): not for a repeat that would not be billed again.
    pub fn check_balance(&self, org: &str, run: &RunPermit) -> Result<(), ServiceError> {
        if run.is_free() {
            return Ok(());
        }
        self.books.check_balance(org)
    }

    /// Debits `price`, unless this run's key was billed before.
    pub fn charge(
        &self,
        inbound: &Inbound,
        run: &RunPermit,
        fingerprint: &Fingerprint,
        price: MicroUsd,
        stream: bool,
        repeat_billed: RepeatBilled,
    ) -> Result<Charged, ServiceError> {
        if let Claim::Billed(before) = run.claim(price) {
            self.books.count_free_repeat();
            // Assumed (repeat-billed): "is not billed a second time"; what its receipt shows is a setting.
            let shown = match repeat_billed {
                RepeatBilled::Zero => MicroUsd::ZERO,
                RepeatBilled::Same => before,
            };
            return Ok(Charged {
                shown,
                free_repeat: true,
            });
        }
        let debit = Debit {
            n: 0,
            org: inbound.org.clone(),
            key: inbound.key_text.clone(),
            route: inbound.path.clone(),
            amount_micro_usd: price,
            request_id: inbound.request_id.clone(),
            at: self.clock.now().to_string(),
            stream,
            body_fingerprint: fingerprint.to_hex(),
        };
        let entered = self
            .books
            .enter(debit, |change| run.charged(&self.keep, change));
        if let Err(error) = entered {
            // A repeat that runs beside this one must not be free for a debit that never was.
            run.unclaim();
            return Err(error);
        }
        tracing::debug!(request_id = %inbound.request_id, billed_micro_usd = price.get(), stream, "debited");
        Ok(Charged {
            shown: price,
            free_repeat: false,
        })
    }

    /// Debits one answer of an eval run; `id` identifies it in the books.
    pub fn charge_answer(
        &self,
        org: &str,
        id: String,
        body_fingerprint: &str,
        price: MicroUsd,
    ) -> Result<(), ServiceError> {
        self.books.debit(Debit {
            n: 0,
            org: org.to_owned(),
            key: None,
            route: spec::EVAL_RUNS.to_owned(),
            amount_micro_usd: price,
            request_id: id,
            at: self.clock.now().to_string(),
            stream: false,
            body_fingerprint: body_fingerprint.to_owned(),
        })
    }

    /// What an answer that was billed would have cost more at the frontier's list price.
    pub fn count_saving(&self, org: &str, list_price: MicroUsd, billed: MicroUsd) {
        if let Some(saved) = list_price.checked_sub(billed) {
            self.books.count_saving(org, self.clock.now(), saved.get());
        }
    }
}
