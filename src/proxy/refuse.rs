//! Every answer that bursar makes itself. One closed enum of codes, one place that maps a code to
//! status, text and headers; the same word stands in the answer, the log, the metric label and the
//! docs.
//!
//! Promise: both error shapes in one JSON body, so that every SDK prints the text; the text says
//! what to do; no secret and no byte of a request is echoed.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use crate::caps::{Refused, SharedWhy};
use crate::protocol::{Dialect, closed_set, translate};

closed_set! {
    /// Why bursar answered by itself.
    Code {
        HeadMalformed => "head_malformed",
        HeadTooLarge => "head_too_large",
        HeadTooSlow => "head_too_slow",
        HostRefused => "host_refused",
        OriginRefused => "origin_refused",
        SiteRefused => "site_refused",
        PreflightRefused => "preflight_refused",
        TokenMissing => "token_missing",
        TokenRefused => "token_refused",
        RunAwaited => "run_awaited",
        AppRemoved => "app_removed",
        RunEnded => "run_ended",
        ContentTypeRefused => "content_type_refused",
        ContentCodingRefused => "content_coding_refused",
        PathRefused => "path_refused",
        HeaderRefused => "header_refused",
        LengthRefused => "length_refused",
        MethodRefused => "method_refused",
        RouteUnknown => "route_unknown",
        ResponsesUnsupported => "responses_unsupported",
        CompletionsUnsupported => "completions_unsupported",
        MessagesElsewhere => "messages_elsewhere",
        CountTokensUnsupported => "count_tokens_unsupported",
        RealtimeUnsupported => "realtime_unsupported",
        BasePathMissing => "base_path_missing",
        BasePathDoubled => "base_path_doubled",
        OtherLane => "other_lane",
        ModelUnknown => "model_unknown",
        ResponsesBody => "responses_body",
        BodyTooLarge => "body_too_large",
        BodyTooSlow => "body_too_slow",
        BodyBroken => "body_broken",
        Untranslatable => "untranslatable",
        AnswerUntranslatable => "answer_untranslatable",
        TranslationChanged => "translation_changed",
        MemoryFull => "memory_full",
        ConnectionsFull => "connections_full",
        LedgerUnavailable => "ledger_unavailable",
        CapReached => "cap_reached",
        SessionCapReached => "session_cap_reached",
        FleetCapUnreachable => "fleet_cap_unreachable",
        CapBusy => "cap_busy",
        Frozen => "frozen",
        QueueFull => "queue_full",
        QueueTimeout => "queue_timeout",
        UpstreamRefusedKey => "upstream_refused_key",
        BalanceEmpty => "balance_empty",
        UpstreamUnreachable => "upstream_unreachable",
        UpstreamName => "upstream_name",
        UpstreamTls => "upstream_tls",
        UpstreamLoop => "upstream_loop",
        UpstreamTimeout => "upstream_timeout",
        UpstreamBroken => "upstream_broken",
        OutcomeUnknown => "outcome_unknown",
        Clarification => "clarification",
        ShuttingDown => "shutting_down",
        Internal => "internal",
    }
}

/// An answer of our own: what the app sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    /// What happened and what to do; for a person.
    pub detail: Cow<'static, str>,
    /// The member of the request's body that it is about, as a path.
    pub param: Option<String>,
    /// Methods for the `Allow` header of a 405.
    pub allow: Option<String>,
    /// Seconds for `Retry-After`, where this refusal knows them better than its code.
    pub retry_after_s: Option<u64>,
    /// How long the request waited for a place at the service, where it asked for one.
    pub queued: Option<Duration>,
}

// === impl Code ===

impl Code {
    /// The HTTP status of this refusal.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::HeadMalformed
            | Self::PathRefused
            | Self::HeaderRefused
            | Self::LengthRefused
            | Self::BodyBroken
            | Self::ResponsesBody
            | Self::Untranslatable
            // A repeat may be given the same. Measured: Codex asks 30 times behind a 502, and once behind a 400.
            | Self::AnswerUntranslatable => StatusCode::BAD_REQUEST,
            Self::TranslationChanged => StatusCode::CONFLICT,
            Self::TokenMissing | Self::TokenRefused | Self::AppRemoved | Self::RunEnded => {
                StatusCode::UNAUTHORIZED
            }
            Self::Clarification => StatusCode::UNPROCESSABLE_ENTITY,
            Self::HostRefused
            | Self::OriginRefused
            | Self::SiteRefused
            | Self::PreflightRefused
            | Self::Frozen => StatusCode::FORBIDDEN,
            Self::CapReached | Self::SessionCapReached | Self::FleetCapUnreachable => {
                StatusCode::PAYMENT_REQUIRED
            }
            Self::CapBusy => StatusCode::TOO_MANY_REQUESTS,
            Self::RouteUnknown
            | Self::ResponsesUnsupported
            | Self::CompletionsUnsupported
            | Self::MessagesElsewhere
            | Self::CountTokensUnsupported
            | Self::RealtimeUnsupported
            | Self::BasePathMissing
            | Self::BasePathDoubled
            | Self::OtherLane
            | Self::ModelUnknown => StatusCode::NOT_FOUND,
            Self::MethodRefused => StatusCode::METHOD_NOT_ALLOWED,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::HeadTooSlow | Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::QueueFull | Self::QueueTimeout => StatusCode::TOO_MANY_REQUESTS,
            Self::UpstreamRefusedKey => StatusCode::UNAUTHORIZED,
            Self::BalanceEmpty => StatusCode::PAYMENT_REQUIRED,
            Self::ContentTypeRefused | Self::ContentCodingRefused => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::MemoryFull
            | Self::ConnectionsFull
            | Self::LedgerUnavailable
            | Self::RunAwaited
            | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::UpstreamUnreachable
            | Self::UpstreamName
            | Self::UpstreamTls
            | Self::UpstreamBroken
            | Self::OutcomeUnknown => StatusCode::BAD_GATEWAY,
            Self::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::UpstreamLoop => StatusCode::LOOP_DETECTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Seconds for `Retry-After`, where waiting helps.
    pub const fn retry_after_s(self) -> Option<u32> {
        match self {
            Self::MemoryFull | Self::ConnectionsFull | Self::RunAwaited => Some(1),
            Self::LedgerUnavailable | Self::ShuttingDown | Self::CapBusy => Some(5),
            _ => None,
        }
    }

    /// Whether the app's own retry is worth anything. `None`: leave it to the app, because the
    /// retry would be recognised (joined or adopted) or because waiting helps.
    pub const fn should_retry(self) -> Option<bool> {
        match self {
            Self::MemoryFull
            | Self::ConnectionsFull
            | Self::RunAwaited
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::ShuttingDown
            | Self::CapBusy
            | Self::OutcomeUnknown
            | Self::UpstreamTimeout
            | Self::UpstreamBroken => None,
            _ => Some(false),
        }
    }

    /// Whether the connection ends with this refusal, although the request was read whole.
    pub const fn ends_connection(self) -> bool {
        // A request that is turned away because too many wait does not keep a connection from the others.
        matches!(self, Self::ShuttingDown | Self::QueueFull)
    }

    /// What to say where the place that refuses has nothing more exact.
    const fn text(self) -> &'static str {
        match self {
            Self::HeadMalformed => "The request head is not valid HTTP/1.1.",
            Self::HeadTooLarge => "The request head is too large: at most 64 KiB and 100 fields.",
            Self::HeadTooSlow => "The request head did not arrive in time.",
            Self::HostRefused => {
                "This Host name is not allowed here. Use localhost or 127.0.0.1, or list the name \
                 in [listen] allowed_hosts."
            }
            Self::OriginRefused => {
                "Web pages may not spend through bursar. If this page may, list its origin in \
                 [listen] allowed_origins."
            }
            Self::SiteRefused => {
                "A browser sent this request from another site. If that site may spend, list its \
                 origin in [listen] allowed_origins."
            }
            Self::PreflightRefused => {
                "Cross-origin requests are not allowed. If this page may spend, list its origin in \
                 [listen] allowed_origins."
            }
            Self::TokenMissing => {
                "bursar asks for a token here: set the app's token where the API key goes \
                 (OPENAI_API_KEY). `bursar app add NAME` makes one."
            }
            Self::TokenRefused => {
                "bursar does not know this token. It goes where the API key goes \
                 (OPENAI_API_KEY); `bursar app add NAME` makes one, and `bursar app rotate NAME` \
                 replaces a lost one."
            }
            Self::RunAwaited => {
                "The run of this token has not been resumed yet: bursar has just started, or the \
                 run's app was just removed. Nothing was sent; try again in a second."
            }
            Self::AppRemoved => "This app was removed. Nothing was sent.",
            Self::RunEnded => {
                "The run that this token was for has ended: its `bursar exec` is gone. Nothing was sent."
            }
            Self::ContentTypeRefused => "This route takes Content-Type: application/json.",
            Self::ContentCodingRefused => {
                "Request bodies are relayed as they are: send them without Content-Encoding."
            }
            Self::PathRefused => {
                "The path has a form that is not relayed (dot segments, escapes of / \\ . or NUL, \
                 doubled slashes, fragments)."
            }
            Self::HeaderRefused => "A header of this request cannot be relayed.",
            Self::LengthRefused => {
                "The body's length is not clear: send one Content-Length or Transfer-Encoding: \
                 chunked, not both."
            }
            Self::MethodRefused => "This route does not take this method.",
            Self::RouteUnknown => {
                "bursar does not relay this route. The base URL ends in /v1 or /agent/v1; routes \
                 of your own can be listed in [upstream] extra_routes."
            }
            Self::ResponsesUnsupported => {
                "The service has no /responses route. Use chat completions \
                 (client.chat.completions, or the chat model class of your framework)."
            }
            Self::CompletionsUnsupported => {
                "The service has no /completions route, which is the old form without messages. Use chat \
                 completions."
            }
            Self::MessagesElsewhere => {
                "Of Anthropic's Messages API POST /agent/v1/messages alone is answered: ANTHROPIC_BASE_URL is this \
                 address plus /agent."
            }
            Self::CountTokensUnsupported => {
                "Tokens are not counted beforehand: the service has no route for it, and bursar guesses none."
            }
            Self::RealtimeUnsupported => {
                "The service has no realtime route. Speech is /v1/audio/speech and /v1/audio/transcriptions."
            }
            Self::BasePathMissing => "The base URL lacks its path: it ends in /v1 or /agent/v1.",
            Self::BasePathDoubled => {
                "The base URL has its /v1 twice, or more than that in front of the route."
            }
            Self::OtherLane => "The service has this route on /v1 alone: the base URL ends in /v1.",
            Self::ModelUnknown => {
                "The list of models has none of this id: see /v1/models. Aliases are on it with [models] list = \
                 \"aliases\"."
            }
            Self::ResponsesBody => {
                "This is a body of the Responses API (`input`, no `messages`) on chat completions. Nothing was sent."
            }
            Self::BodyTooLarge => "The body is larger than 30 MB, the service's limit.",
            Self::BodyTooSlow => "The request body did not arrive in time.",
            Self::BodyBroken => "The request body ended early or its framing is broken.",
            Self::Untranslatable => {
                "The request cannot be translated to a chat completion (docs/dialects.md). Nothing was sent."
            }
            Self::AnswerUntranslatable => {
                "The service's answer cannot be given in this dialect. It was billed."
            }
            Self::TranslationChanged => {
                "This Idempotency-Key was used for this request, which is translated otherwise since: bursar or its \
                 [models] changed. The service would refuse it; use a new key, which is a purchase of its own."
            }
            Self::MemoryFull => {
                "Large requests take all the memory that there is for them on this machine; try again."
            }
            Self::ConnectionsFull => "Too many connections are open; try again.",
            Self::LedgerUnavailable => {
                "The ledger cannot be written, so nothing that costs money is sent. See \
                 `bursar doctor` and the daemon's log; free routes go on."
            }
            Self::CapReached => "A cap is reached. Nothing was sent. See `bursar caps`.",
            Self::SessionCapReached => {
                "The session has reached its cap. Nothing was sent; a new session has a cap of its own."
            }
            Self::FleetCapUnreachable => {
                "What this machine had of a cap that many machines share is used up, and the fleet's database \
                 grants no more now. Nothing was sent. See `bursar status`."
            }
            Self::CapBusy => {
                "Little is left below a cap, so requests go one at a time; try again later. See \
                 `bursar caps`."
            }
            Self::Frozen => "This app is frozen. Nothing was sent. `bursar thaw` ends it.",
            Self::QueueFull => {
                "Too many requests wait for the service already ([shaping] queue_max). This one was \
                 not sent; try again."
            }
            Self::QueueTimeout => {
                "The service's ceilings left no place for this request in time ([shaping] \
                 queue_wait_s, or the app's own timeout). It was not sent; try again."
            }
            Self::UpstreamRefusedKey => {
                "It does not take the organization's key. Nothing was sent for this request; bursar \
                 asks again in a few seconds, or at once when it reloads (SIGHUP) with another key."
            }
            Self::BalanceEmpty => {
                "The organization's balance is empty. Nothing was sent for this request; bursar asks \
                 again in a few seconds, or at once when it reloads (SIGHUP)."
            }
            Self::UpstreamUnreachable => {
                "The service cannot be reached. Nothing was sent or billed."
            }
            Self::UpstreamName => {
                "The service's name does not resolve. Nothing was sent or billed."
            }
            Self::UpstreamTls => {
                "The service's certificate was refused, so the key was not sent. Check [upstream] \
                 base_url and ca_file."
            }
            Self::UpstreamLoop => {
                "This request came back to the bursar that sent it: [upstream] base_url leads to bursar \
                 itself. Set it to the service's address. Nothing reached a service, or was billed."
            }
            Self::UpstreamTimeout => {
                "The service did not answer in time. It may have run: the entry is in doubt, and \
                 a retry of the same request uses the same key where the route has one."
            }
            Self::UpstreamBroken => {
                "The service's answer broke off. A retry of the same request uses the same key \
                 where the route has one."
            }
            Self::OutcomeUnknown => {
                "The request was sent and no answer came. It may have run: the entry is in doubt, \
                 and a retry of the same request uses the same key where the route has one."
            }
            Self::Clarification => {
                "The service asks for more input instead of answering (billed 0). This app takes \
                 that as an error (on_clarification)."
            }
            Self::ShuttingDown => "bursar is shutting down; try again.",
            Self::Internal => "bursar failed on this request; the log has the place.",
        }
    }
}

// === impl Refusal ===

impl Refusal {
    pub fn new(code: Code) -> Self {
        Self {
            code,
            detail: Cow::Borrowed(code.text()),
            param: None,
            allow: None,
            retry_after_s: None,
            queued: None,
        }
    }

    /// The code's own text, preceded by what exactly was wrong.
    pub fn because(code: Code, what: impl Into<String>) -> Self {
        let mut detail: String = what.into();
        detail.push(' ');
        detail.push_str(code.text());
        Self::saying(code, detail)
    }

    /// A text of the place that refuses, instead of the code's own.
    pub fn saying(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            detail: Cow::Owned(what.into()),
            ..Self::new(code)
        }
    }

    /// The same, after a wait for a place at the service.
    pub fn having_waited(mut self, queued: Duration) -> Self {
        self.queued = Some(queued);
        self
    }

    /// The same, about this member of the request's body.
    pub fn about(mut self, param: String) -> Self {
        self.param = Some(param).filter(|param| !param.is_empty());
        self
    }

    /// The same, and a sentence more.
    pub fn and(mut self, more: &str) -> Self {
        let detail = self.detail.to_mut();
        detail.push(' ');
        detail.push_str(more);
        self
    }

    /// The same, worth another try after `wait`; in whole seconds, at least one.
    pub fn after(mut self, wait: Duration) -> Self {
        let begun = u64::from(wait.subsec_nanos() > 0);
        self.retry_after_s = Some(wait.as_secs().saturating_add(begun).max(1));
        self
    }

    /// The same, with another try no earlier than after this time.
    pub fn no_earlier_than(self, wait: Duration) -> Self {
        let asked = Duration::from_secs(self.retry_after_s.unwrap_or(0));
        self.after(wait.max(asked))
    }

    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// As [`Code::should_retry`]; but where no attempt was made for a service that could not be
    /// reached a moment ago, waiting helps, and the app may.
    pub const fn should_retry(&self) -> Option<bool> {
        match (self.code, self.retry_after_s) {
            (Code::UpstreamUnreachable | Code::UpstreamName | Code::UpstreamTimeout, Some(_)) => {
                None
            }
            (code, _) => code.should_retry(),
        }
    }

    /// `{"detail": …, "error": {"message", "type", "code"}}`, or the dialect's own form of it.
    pub fn body(&self, dialect: Dialect) -> Bytes {
        let body = json!({
            "detail": self.detail,
            "error": {
                "message": self.detail,
                "type": "bursar_error",
                "param": self.param,
                "code": self.code.as_str(),
            },
        });
        let body = body.to_string();
        match translate::error(dialect, self.status().as_u16(), body.as_bytes()) {
            Some(translated) => Bytes::from(translated),
            None => Bytes::from(body),
        }
    }

    /// The same as an SSE event, for a stream that breaks after its head went out. All SDK parsers
    /// raise it as an error; `{"detail": …}` they would hand to the app as a chunk.
    pub fn event(&self) -> Bytes {
        let event = json!({
            "error": {
                "message": self.detail,
                "type": "bursar_error",
                "param": null,
                "code": self.code.as_str(),
            },
        });
        Bytes::from(format!("data: {event}\n\n"))
    }

    /// The event behind bytes that may end inside of another one.
    pub fn event_behind(&self, ends_in_newline: bool) -> Bytes {
        if ends_in_newline {
            return self.event();
        }
        let end = Bytes::from_static(b"\n\n");
        Bytes::from([end, self.event()].concat())
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

/// The answer to a request that may not spend.
impl From<&Refused> for Refusal {
    fn from(refused: &Refused) -> Self {
        let code = match refused {
            Refused::Reached(_) | Refused::RunReached(_) => Code::CapReached,
            Refused::SessionReached(_) => Code::SessionCapReached,
            Refused::Frozen(_) => Code::Frozen,
            Refused::Removed(_) => Code::AppRemoved,
            Refused::Crowded(_) | Refused::Late(_) => Code::CapBusy,
            Refused::Shared(refusal) => match refusal.why {
                SharedWhy::Reached | SharedWhy::Share => Code::CapReached,
                SharedWhy::Busy => Code::CapBusy,
                SharedWhy::Away | SharedWhy::Paused | SharedWhy::NoCap => Code::FleetCapUnreachable,
            },
        };
        Self::saying(code, refused.to_string())
    }
}

#[cfg(test)]
mod tests;
