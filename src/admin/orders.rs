//! Orders: freeze, thaw, raise a cap. They come by POST through a Unix socket, whose directory only its
//! owner may enter; the parameters stand behind the question mark.
//!
//! Promise: an order that was answered with 200 is on the disk and in force; one that is not understood
//! changes nothing.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::Admin;
use super::query::{self, QueryError};
use crate::caps::OrderError;

/// Why an order was not obeyed.
#[derive(Debug, thiserror::Error)]
pub enum Disobeyed {
    #[error("there is no such order; there are /api/freeze, /api/thaw and /api/caps/raise")]
    Unknown,
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("the state cannot be told: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the order failed; the log has the place")]
    Panicked,
}

// === impl Disobeyed ===

impl Disobeyed {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Query(_)
            | Self::Order(OrderError::NoCap { .. } | OrderError::NotRaised { .. }) => {
                StatusCode::BAD_REQUEST
            }
            Self::Order(OrderError::Ledger(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Json(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The paths that [`obey`] takes.
pub fn is_order(path: &str) -> bool {
    matches!(path, "/api/freeze" | "/api/thaw" | "/api/caps/raise")
}

/// Does as ordered; answers what [`crate::caps::Caps::view`] shows then.
pub async fn obey(admin: &Arc<Admin>, path: &str, asked: &str) -> Result<Value, Disobeyed> {
    let caps = Arc::clone(&admin.caps);
    let order: Box<dyn FnOnce() -> Result<(), OrderError> + Send> = match path {
        "/api/freeze" => {
            let asked = query::freeze(asked)?;
            Box::new(move || caps.freeze(asked.app.as_deref(), &asked.by))
        }
        "/api/thaw" => {
            let asked = query::freeze(asked)?;
            Box::new(move || caps.thaw(asked.app.as_deref(), &asked.by))
        }
        "/api/caps/raise" => {
            let asked = query::raise(asked)?;
            Box::new(move || caps.raise(asked.app.as_deref(), asked.period, asked.to))
        }
        _ => return Err(Disobeyed::Unknown),
    };
    // It waits for the disk.
    spawn_blocking(order)
        .await
        .map_err(|_| Disobeyed::Panicked)??;
    Ok(serde_json::to_value(admin.caps.view())?)
}
