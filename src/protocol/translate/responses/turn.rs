//! What the answer's translation needs to know of its request, and the Response document around an answer.

use std::fmt;

use super::json::quote;
use super::memory::Item;
use super::tools::Names;

/// A request that was translated. It holds texts of the request and shows none of them.
pub struct Turn {
    asked: Asked,
}

/// What of a request its answer repeats or depends on.
pub(super) struct Asked {
    /// As the app named it, a JSON string.
    pub model: Option<String>,
    /// Members of the document that repeat the request, each behind a comma.
    pub echo: String,
    pub names: Names,
    /// All input up to here, to be remembered. `None`: the app asked not to store, or nothing may be kept.
    pub conversation: Option<Vec<Item>>,
}

/// How far an answer is, and how it ended.
pub(super) enum Phase<'a> {
    InProgress,
    Completed,
    Incomplete { reason: &'static str },
    Failed { code: &'a str, message: &'a str },
}

/// The members of the document that do not repeat the request.
pub(super) struct Reply<'a> {
    /// The entry's id.
    pub entry: &'a str,
    pub created_at: u64,
    pub phase: Phase<'a>,
    /// As the service named it, a JSON string; where the app named none.
    pub model: Option<&'a str>,
    /// A JSON array.
    pub output: &'a str,
    /// A JSON object.
    pub usage: Option<&'a str>,
}

// === impl Turn ===

impl Turn {
    /// All that a document takes from the request, in one order.
    pub fn asked(&self) -> String {
        let Asked {
            model,
            echo,
            names,
            conversation,
        } = &self.asked;
        format!(
            "{model:?} {echo} {} {}",
            names.sorted(),
            conversation.is_some()
        )
    }

    /// Bytes of what each document says of the request.
    pub fn echoed_bytes(&self) -> usize {
        self.asked.echo.len()
    }

    /// Bytes of what is kept of the request.
    pub fn kept_bytes(&self) -> usize {
        let items = self.asked.conversation.iter().flatten();
        let items: usize = items.map(|item| item.json().len()).sum();
        items.saturating_add(self.asked.echo.len())
    }

    pub(super) fn new(asked: Asked) -> Self {
        Self { asked }
    }

    pub(super) fn names(&self) -> &Names {
        &self.asked.names
    }

    /// All input up to here. `None`: it is not to be kept.
    pub(super) fn conversation(&self) -> Option<&[Item]> {
        self.asked.conversation.as_deref()
    }

    /// The Response document, on one line.
    pub(super) fn document(&self, reply: &Reply<'_>) -> String {
        let asked = &self.asked;
        let mut out = String::with_capacity(asked.echo.len() + reply.output.len() + 512);
        out.push_str("{\"id\":\"resp_");
        out.push_str(reply.entry);
        out.push_str("\",\"object\":\"response\",\"created_at\":");
        out.push_str(&reply.created_at.to_string());
        out.push_str(",\"status\":\"");
        out.push_str(reply.phase.status());
        // When the answer was complete is not known: the service names one time, its own.
        out.push_str("\",\"completed_at\":null,\"error\":");
        match &reply.phase {
            Phase::Failed { code, message } => {
                out.push_str("{\"code\":");
                quote(&mut out, code);
                out.push_str(",\"message\":");
                quote(&mut out, message);
                out.push('}');
            }
            _ => out.push_str("null"),
        }
        out.push_str(",\"incomplete_details\":");
        match &reply.phase {
            Phase::Incomplete { reason } => {
                out.push_str("{\"reason\":\"");
                out.push_str(reason);
                out.push_str("\"}");
            }
            _ => out.push_str("null"),
        }
        out.push_str(",\"model\":");
        let model = asked.model.as_deref().or(reply.model);
        out.push_str(model.unwrap_or("\"\""));
        out.push_str(",\"output\":");
        out.push_str(reply.output);
        out.push_str(",\"usage\":");
        out.push_str(reply.usage.unwrap_or("null"));
        out.push_str(&asked.echo);
        out.push('}');
        // Line ends stand between values only, and an event is one line.
        match memchr::memchr2(b'\n', b'\r', out.as_bytes()) {
            Some(_) => out.replace(['\n', '\r'], " "),
            None => out,
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.asked.conversation.as_ref().map(Vec::len);
        f.debug_struct("Turn")
            .field("echo_bytes", &self.asked.echo.len())
            .field("items_kept", &kept)
            .finish_non_exhaustive()
    }
}

// === impl Phase ===

impl Phase<'_> {
    fn status(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete { .. } => "incomplete",
            Self::Failed { .. } => "failed",
        }
    }
}
