//! What outlives the process: documents by table and id, in one file of the state directory.
//!
//! The interface's sets, runs and endpoints are resources that a client comes back for; a service that
//! forgets them at a restart is none. Without a directory the same store lives in memory.
//!
//! | what | file |
//! |---|---|
//! | why it can fail | `error` |
//! | whose the directory and its file are | `directory` |
//! | the open file, opened again after an I/O error | `place` |
//! | documents: put, found, removed, several at once | `documents` |

mod directory;
mod documents;
mod error;
mod place;

pub use documents::{Batch, Store, Table, Written};
pub use error::StoreError;
