//! The few fields of JSON bodies that rules need, read in one pass that skips the rest; and the two
//! edits that bursar may make to a body (model alias, `error` beside `detail`).
//!
//! Promise: reading never fails and never changes a byte: what cannot be read is not told. An edit
//! leaves every other byte as it was (rule I8).

mod answer;
mod edit;
mod field;
mod request;

pub use answer::{AnswerPeek, RunPeek};
pub use edit::{add_error_object, add_error_object_with_hint, replace_model};
pub use request::RequestPeek;

#[cfg(test)]
mod tests;
