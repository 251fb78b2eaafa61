//! Secrets: the key stands in `Authorization` towards the service and nowhere else, prompts and answers
//! stand nowhere at all, and what the process remembers cannot be read by others and is wiped.
//!
//! Promise: each search is shown to find what is planted, and each closed door is shown open where the
//! defence is missing.

mod credential;
mod decoded;
mod memory;
mod processes;
mod search;
mod story;
