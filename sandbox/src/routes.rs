//! One file per family of routes; each handler reads as its clause of the interface.

pub mod agent;
pub mod auto_metrics;
pub mod chat;
mod completion;
pub mod embeddings;
pub mod models;
pub mod playground;
mod streaming;
