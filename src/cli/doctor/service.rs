//! The service, asked once with a free GET: by the running daemon, which has the key, or by this command.
//!
//! Promise: one question, which costs nothing and shows the service's clock, too; the key goes where the daemon's requests go, and nowhere else.

use http::StatusCode;

use crate::admin::reconcile::Reconciliation;
use crate::cli::client::Client;
use crate::cli::daemon::{Question, ask};
use crate::cli::error::CliError;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::proxy;
use crate::proxy::own_call::{self, OwnCallError};

/// What became of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceProbe {
    /// It answered, and took the key. With its clock, where it showed one.
    Took(Option<Clocks>),
    /// It answered, and refuses the key.
    Refuses(String),
    /// It answered something that shows nothing of the key.
    Answered(String),
    /// There was no answer.
    Unreached(String),
    /// It was not asked, and why.
    Unasked(String),
    /// There is no key to ask it with: what the configuration says.
    NoKey(String),
}

/// Both clocks at one moment, Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub service_ms: u64,
    pub own_ms: u64,
}

/// Has the daemon ask: its key, its network and its authorities are those that count.
pub async fn by_daemon(client: &Client) -> ServiceProbe {
    let asked: Result<Reconciliation, CliError> =
        ask(client, &Question::new("/api/reconcile")).await;
    match asked {
        Ok(compared) => ServiceProbe::Took(compared.service_clock_ms.map(|service_ms| Clocks {
            service_ms,
            own_ms: compared.until_ms,
        })),
        Err(CliError::Failed(words)) => as_said(words),
        Err(error) => ServiceProbe::Unasked(error.to_string()),
    }
}

/// What the daemon says of a question that led to no figure. Words of another release are not known.
fn as_said(words: String) -> ServiceProbe {
    let says = |part: &str| words.contains(part);
    if says(own_call::KEY_REFUSED) {
        return ServiceProbe::Refuses(words);
    }
    // The document came, and lacks the figure that is compared.
    if says("/v1/auto/metrics is ") || says("/v1/auto/metrics has ") {
        return ServiceProbe::Took(None);
    }
    if says("the service answered") {
        return ServiceProbe::Answered(words);
    }
    if says("the service was not reached") || says("the service did not answer") {
        return ServiceProbe::Unreached(words);
    }
    ServiceProbe::Unasked(words)
}

/// Asks for the service's models with the configured key.
pub async fn by_itself(config: Config) -> ServiceProbe {
    let authorities = match proxy::authorities(&config) {
        Ok(authorities) => authorities,
        Err(error) => return ServiceProbe::Unasked(error.to_string()),
    };
    let clock = SystemClock::shared();
    let answered = own_call::models(config, authorities, &clock).await;
    let answer = match answered {
        Ok(answer) => answer,
        Err(error @ OwnCallError::Head) => return ServiceProbe::Unasked(error.to_string()),
        Err(error) => return ServiceProbe::Unreached(error.to_string()),
    };
    match answer.status {
        status if status.is_success() => {
            let own_ms = clock.wall_ms();
            let service_ms = answer.date_ms();
            ServiceProbe::Took(service_ms.map(|service_ms| Clocks { service_ms, own_ms }))
        }
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            ServiceProbe::Refuses(format!(
                "the service answered {}: {}",
                status.as_u16(),
                own_call::KEY_REFUSED
            ))
        }
        status => ServiceProbe::Answered(format!(
            "the service answered {} to GET /v1/models",
            status.as_u16()
        )),
    }
}

#[cfg(test)]
mod tests;
