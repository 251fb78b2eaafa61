//! The Messages dialect (`POST /v1/messages`): translated to one chat completion and back.
//!
//! Why: Claude Code and every program built on Anthropic's SDKs speak it and nothing else.
//!
//! Promise: beside what [`super`] promises, a text is carried as it is spelled, escape for escape, and the input of a tool
//! is carried byte for byte in both directions. The list of what is translated, refused and left out is
//! docs/dialects.md.

pub mod answer;
pub mod error;
pub mod events;
pub mod models;
pub mod request;

mod json;
mod members;
mod tool_id;
mod turn;
mod usage;

pub use answer::translate as document;
pub use error::body as error;
pub use events::of as events;
pub use request::translate;
pub use turn::Turn;

#[cfg(test)]
mod tests;
