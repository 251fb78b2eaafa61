//! What a request's body says, and the body as it is sent.
//!
//! Promise: a body is sent as it came but for a model alias (`[models] aliases`) and, with `[streams]
//! agent_receipts = "exact"`, an agent turn's wish for a stream (rule I8). The same request is
//! prepared in the same way each time, so that its retry has the same bytes (rule I6).

use bytes::Bytes;
use http::HeaderValue;
use http::header::ACCEPT;
use pingora::http::RequestHeader;

use super::request::Request;
use crate::config::AgentReceipts;
use crate::protocol::Operation;
use crate::protocol::body::{RequestPeek, replace_model, without_stream};
use crate::protocol::routes::BodyForm;
use crate::proxy::door::buffer::RequestBody;
use crate::proxy::upstream::exchange::WHOLE_BYTES_MAX;
use crate::proxy::upstream::heads::HeadError;

/// The body as it is sent, and what was read of it.
pub struct Prepared {
    pub body: Bytes,
    /// Of the app's own body.
    pub peek: RequestPeek,
    /// The model that the app asked for, when it is not the interface's and no alias is set for it.
    pub foreign_model: Option<String>,
    /// The app wants a stream and the service is asked for a whole turn.
    pub made_stream: bool,
}

/// Largest turn that is made into a stream: the most that the interface names of any answer.
const MADE_STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads what rules need from the body, and makes the edits that the config asks for.
pub fn prepare(request: &Request<'_>, body: &mut RequestBody) -> Prepared {
    let prepared = edited(request, body);
    // One copy is kept and covered by the budget: of an edited body the app's own goes.
    body.becomes(prepared.body.clone());
    prepared
}

fn edited(request: &Request<'_>, body: &RequestBody) -> Prepared {
    let route = &request.admitted.route;
    let reads = matches!(route.body, BodyForm::Json | BodyForm::Any) && route.is_metered();
    let peek = if reads {
        body.peek()
    } else {
        RequestPeek::default()
    };
    let prepared = with_alias(request, body, peek);
    let agent_receipts = request
        .app
        .agent_receipts
        .unwrap_or(request.settings.config.streams.agent_receipts);
    let wants_price =
        route.operation == Operation::AgentTurn && agent_receipts == AgentReceipts::Exact;
    match wants_price
        .then(|| without_stream(&prepared.body))
        .flatten()
    {
        Some(whole) => Prepared {
            body: Bytes::from(whole),
            made_stream: true,
            ..prepared
        },
        None => prepared,
    }
}

fn with_alias(request: &Request<'_>, body: &RequestBody, peek: RequestPeek) -> Prepared {
    if !request.admitted.route.auto_model {
        return Prepared {
            body: body.bytes().clone(),
            peek,
            foreign_model: None,
            made_stream: false,
        };
    }
    let alias = peek
        .model
        .as_deref()
        .and_then(|model| request.settings.config.models.aliases.target(model));
    match (alias, peek.model_span.clone()) {
        (Some(alias), Some(span)) => Prepared {
            body: Bytes::from(replace_model(body.bytes(), span, alias)),
            peek,
            foreign_model: None,
            made_stream: false,
        },
        _ => Prepared {
            body: body.bytes().clone(),
            foreign_model: peek.model.clone().filter(|model| model != "auto"),
            peek,
            made_stream: false,
        },
    }
}

// === impl Prepared ===

impl Prepared {
    /// The head that goes with the body: a request for a whole turn does not take events alone.
    pub fn head(&self, mut head: RequestHeader) -> Result<RequestHeader, HeadError> {
        if self.made_stream {
            let json = HeaderValue::from_static("application/json");
            head.insert_header(ACCEPT, json).map_err(|_| HeadError)?;
        }
        Ok(head)
    }

    /// An answer that is not a stream is read whole up to this size. One that is to become a stream
    /// has to be.
    pub fn whole_bytes_max(&self) -> usize {
        if self.made_stream {
            MADE_STREAM_BYTES_MAX
        } else {
            WHOLE_BYTES_MAX
        }
    }
}
