//! The journal's files: the state directory, segments of lines, how far they reach, and what is damaged.
//!
//! Lowest first: `state_dir`, `high_water`, `lines`, `segments`, `report`, `order`, `scan`,
//! `quarantine`, `reader`, `append`.

pub mod append;
#[cfg(test)]
pub mod faults;
pub mod high_water;
pub mod lines;
mod order;
pub mod quarantine;
pub mod reader;
pub mod report;
pub mod scan;
pub mod segments;
pub mod state_dir;
