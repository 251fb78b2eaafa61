//! Orders about caps: freeze, thaw, raise. A kind of change ([`super::change`]).
//!
//! Promise: an order that was answered is on the disk and in force; one that is not understood changes
//! nothing.

use serde::{Deserialize, Serialize};

use super::body::{ChangeError, parse};
use crate::caps::{Caps, Period};
use crate::config::App;
use crate::money::MicroUsd;

/// Which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Freeze,
    Thaw,
    Raise,
}

/// The app that is frozen or thawed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeOrder {
    /// `None`: all apps.
    pub app: Option<String>,
    /// The person behind the order.
    pub by: String,
}

/// Which cap is raised to what, in its window of now.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaiseOrder {
    /// `None`: the cap of all apps together.
    pub app: Option<String>,
    pub period: Period,
    pub to_micro_usd: MicroUsd,
}

/// Longest name of the person behind an order, in characters.
const BY_CHARS_MAX: usize = 64;

// === impl Order ===

impl Order {
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "/api/freeze" => Some(Self::Freeze),
            "/api/thaw" => Some(Self::Thaw),
            "/api/caps/raise" => Some(Self::Raise),
            _ => None,
        }
    }
}

/// Carries an order out, on a thread that may block.
pub(super) fn carry_out(caps: &Caps, order: Order, body: &[u8]) -> Result<(), ChangeError> {
    let checked = |app: Option<String>| match &app {
        Some(name) if App::check_name(name).is_err() => Err(ChangeError::NoApp),
        _ => Ok(app),
    };
    match order {
        Order::Freeze | Order::Thaw => {
            let FreezeOrder { app, by } = parse(body)?;
            let app = checked(app)?;
            let shown = by.chars().filter(|letter| !letter.is_control());
            let by: String = shown.take(BY_CHARS_MAX).collect();
            match order {
                Order::Freeze => caps.freeze(app.as_deref(), &by)?,
                _ => caps.thaw(app.as_deref(), &by)?,
            }
        }
        Order::Raise => {
            let asked: RaiseOrder = parse(body)?;
            let app = checked(asked.app)?;
            caps.raise(app.as_deref(), asked.period, asked.to_micro_usd)?;
        }
    }
    Ok(())
}
