//! The sandbox through its socket, by promise. Only bytes cross: no type of the library but `Options`,
//! `Clock` and `serve` is used.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod agent;
mod agent_routes;
mod assumed;
mod auto_metrics;
mod catalog;
mod catalog_reasoner;
mod chat;
mod clauses;
mod clients;
mod conformance;
mod disconnect;
mod disk_full;
mod doors;
mod embeddings;
mod endpoint_inference;
mod endpoints;
mod endpoints_kept;
mod eval_documents;
mod eval_faults;
mod eval_restart;
mod eval_runs;
mod eval_sets;
mod eval_shapes;
mod eval_story;
mod eval_support;
mod faults;
mod golden;
mod idempotency;
mod image_edits;
mod images;
mod limits;
mod live_streams;
mod logprobs;
mod match_labels;
mod model_server;
mod openapi;
mod openapi_routes;
mod others;
mod own_models;
mod own_streams;
mod parallel;
mod refusals;
mod rerank;
mod scoring;
mod second_process;
mod speech;
mod state;
mod story;
mod streaming;
mod support;
mod tools;
