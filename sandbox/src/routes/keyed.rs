//! What embeddings, rerank and both image routes share in a purchase: work that uses the processor, a price known
//! beforehand, and `X-Service-Billed` alone for a receipt.
//!
//! Promise: the work runs beside the socket's threads.

use crate::{
    billing::Charged,
    error::ServiceError,
    fingerprint::Fingerprint,
    idempotency::WhileRunning,
    money::MicroUsd,
    purchase::{Goods, JsonAnswer, Keeps, Order, WorkResult},
    receipt, spec,
};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

/// A well-formed request: what it costs, and how to execute it.
pub struct Job<Work> {
    pub price: MicroUsd,
    pub keeps: Keeps,
    /// The assumption that the shape of the answer depends on.
    pub assumed: &'static str,
    pub work: Work,
}

// === impl Job ===

impl<Work> Job<Work>
where
    Work: FnOnce() -> Result<Value, ServiceError> + Send + 'static,
{
    pub fn order(
        self,
        fingerprint: Fingerprint,
    ) -> Order<impl Future<Output = Result<WorkResult, ServiceError>>> {
        Order {
            fingerprint,
            while_running: WhileRunning::Wait,
            keeps: self.keeps,
            work: self.run(),
        }
    }

    async fn run(self) -> Result<WorkResult, ServiceError> {
        let (price, assumed, work) = (self.price, self.assumed, self.work);
        let made = tokio::task::spawn_blocking(move || {
            serde_json::to_vec(&work()?).map_err(|_| ServiceError::Internal)
        });
        let body = made.await.map_err(|error| {
            tracing::error!(%error, "the work broke");
            ServiceError::Internal
        })??;
        let answer = Box::new(move |charged: &Charged| {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            receipt::set(&mut headers, spec::BILLED, &charged.shown.to_string());
            Ok(JsonAnswer::of_bytes(headers, &[assumed], body))
        });
        Ok(WorkResult::Whole(Goods { price, answer }))
    }
}
