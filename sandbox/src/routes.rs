//! One file per family of routes; each handler reads as its clause of the interface.

pub mod agent;
pub mod audio;
pub mod auto_metrics;
pub mod blobs;
pub mod chat;
mod chat_object;
mod chunks;
mod completion;
pub mod direct;
pub mod embeddings;
pub mod endpoints;
pub mod eval_runs;
pub mod eval_sets;
pub mod images;
mod in_path;
mod keyed;
pub mod models;
pub mod playground;
pub mod rerank;
pub mod roster;
mod seller;
mod streaming;
pub mod tasks;
