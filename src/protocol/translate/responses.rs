//! The Responses dialect (`POST /v1/responses`): translated to one chat completion and back.
//!
//! Why: Codex CLI speaks nothing else, and the Agents SDK, pydantic-ai, n8n and the Vercel SDK speak it unless
//! they are told otherwise. `docs/dialects.md` lists clause by clause what is translated, refused and left out.
//!
//! ```text
//! request::translate   the app's body      → a chat completion's body, and a Turn
//! answer::translate    the service's body  → the Response document
//! events::of           the document        → the event stream that says the same
//! live::Live           the service's stream → that event stream while it comes
//! memory               what was given out, for `previous_response_id` and `item_reference`
//! error                a refusal or failure → the dialect's error body
//! ```
//!
//! Promise: texts, arguments and numbers are carried as they came; the events are a function of the document, so a
//! repeat may ask for either form of one purchase.

pub mod answer;
pub mod error;
pub mod events;
mod items;
mod json;
pub mod live;
pub mod memory;
pub mod request;
mod tools;
mod tree;
mod turn;

pub use turn::Turn;

#[cfg(test)]
mod tests;
