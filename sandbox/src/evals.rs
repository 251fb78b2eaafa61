//! Evals: labelled rows, and runs that score `auto` and frontier models on them.
//!
//! Interface, What the service does: "the caller supplies labeled rows and a one-sentence prompt. The
//! service scores `auto` and optional frontier baselines on the same rows."
//!
//! | what | file |
//! |---|---|
//! | a JSONL file becomes rows | `rows` |
//! | the task, and whether the prompt is about the rows | `tasks`, `agreement` |
//! | sets, per organization | `sets` |
//! | documents of rows: bytes, kinds, and the signed way in | `blobs`, `media`, `documents`, `uploads` |
//! | what is stored, and what holds for all of it | `records`, `stored` |
//! | a run and its life | `runs`, `work` |
//! | a row becomes a request, an answer becomes a score | `ask`, `results` |
//!
//! Promise: a set, a run, a document is in the store before its answer is given; what one organization has
//! does not exist for another.

mod agreement;
mod ask;
mod blobs;
pub mod documents;
mod hear;
mod media;
mod records;
mod results;
mod rows;
pub mod runs;
pub mod sets;
mod stored;
pub mod tasks;
pub mod uploads;
pub mod work;

pub use records::DocumentPlace;
pub use runs::NewRun;
pub use sets::NewSet;
pub use stored::{EvalParts, Evals};
pub use uploads::SignedUrl;
pub use work::resume;

#[cfg(test)]
mod tests;
