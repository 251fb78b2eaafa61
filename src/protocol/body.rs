//! The few fields of JSON bodies that rules need, read in one pass that skips the rest; and the
//! edits that bursar may make to a body (model alias, `error` beside `detail`, `cost` in
//! `usage`, and a turn that is requested whole and delivered as a stream).
//!
//! Promise: reading never fails and never changes a byte; an unreadable field counts as missing. An
//! edit leaves every other byte as it was (rule I8).

mod answer;
mod chunks;
mod detail;
mod edit;
mod field;
mod hash;
mod json_field_scanner;
mod request;
mod skeleton;
mod unstream;

pub use answer::{AnswerPeek, RunPeek};
pub use chunks::as_event_stream;
pub use detail::detail;
pub use edit::{
    add_error_object, add_error_object_with_hint, add_usage_cost, priced_chunk, replace_model,
};
pub use hash::hash_json;
pub use json_field_scanner::JsonFieldScanner;
pub use request::RequestPeek;
pub use skeleton::Skeleton;
pub use unstream::without_stream;

#[cfg(test)]
mod tests;
