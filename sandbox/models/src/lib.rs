//! An imitation of models: it answers from its prompt without a learned model.
//!
//! A prompt, a schema, tools and a seed become a draft; a text becomes a picture, a sound or a vector. The
//! methods are those of a small extractive writer: sentences chosen by the words they share, facts found by
//! their form, a schema filled field by field. Skill belongs to a configured model server; what stands here gives
//! shapes, lengths and repeatable answers that depend on the prompt.
//! Promise: pure. No network, no clock, no state, no type of the service; equal arguments give equal answers on
//! every machine.
//!
//! Lowest first; a module reaches those above it in this table only:
//!
//! | what | modules |
//! |---|---|
//! | chance, tokens, letters of print, words of a text, kinds of work | `rng`, `tokens`, `font`, `text`, `category`, `vision` |
//! | what a fact looks like, vectors, sound | `facts`, `embedding`, `speech` |
//! | what a model can do, what it shows of itself, what it reads of a page | `skill`, `logprobs`, `pattern`, `page` |
//! | the prompt, taken apart | `prompt`, `drawing`, `talk`, `arithmetic` < `given`, `minutes`, `summary` |
//! | one kind of work each | `code`, `form`, `label`, `sql`, `translation` < `answering` < `relevance` |
//! | all work of one prompt | `reader` < `schema`, `prose` < `tools` |
//! | the door | `draft` |

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::print_stdout
    )
)]

mod answering;
mod arithmetic;
pub mod category;
mod code;
pub mod draft;
pub mod drawing;
pub mod embedding;
mod facts;
mod font;
mod form;
pub mod given;
mod label;
pub mod logprobs;
mod minutes;
pub mod page;
mod pattern;
pub mod prompt;
mod prose;
mod reader;
mod relevance;
pub mod rng;
pub mod schema;
pub mod skill;
pub mod speech;
mod sql;
mod summary;
mod talk;
pub mod text;
pub mod tokens;
pub mod tools;
mod translation;
mod vision;
