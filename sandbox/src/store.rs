//! What outlives the process: documents by table and id, in one file of the state directory.
//!
//! The interface's sets, runs and endpoints are resources that a client comes back for, so they must
//! survive a restart. Without a directory the same store lives in memory.
//!
//! | what | file |
//! |---|---|
//! | why it can fail | `error` |
//! | the owner of the directory and its file | `directory` |
//! | the open file, opened again after an I/O error | `place` |
//! | documents: put, found, removed, several at once | `documents` |

mod directory;
mod documents;
mod error;
mod place;

pub use documents::{Batch, Store, Table, Written};
pub use error::StoreError;
