//! Secrets: the key is in `Authorization` towards the service and nowhere else, prompts and answers are
//! nowhere at all, and the process's memory cannot be read by others and is wiped.
//!
//! Promise: each search is shown to find a planted secret, and each closed door is shown open without
//! its defence.

mod credential;
mod decoded;
mod memory;
mod processes;
pub mod search;
mod story;
