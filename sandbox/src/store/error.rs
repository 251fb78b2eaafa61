//! Why the state cannot be read or written.
//!
//! Promise: the text names the state directory or the kind of document, and no document's content.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the sandbox's state cannot be read or written: {0}")]
    Database(Box<redb::Error>),
    #[error("the sandbox's state directory: {0}")]
    Directory(std::io::Error),
    #[error("the sandbox's state directory {}: {why}", path.display())]
    UnsafeDirectory { path: PathBuf, why: String },
    /// A document that this release cannot read.
    #[error("the sandbox's state holds a document of {table} that cannot be read: {source}")]
    Document {
        table: &'static str,
        source: serde_json::Error,
    },
}

pub type Result<T> = std::result::Result<T, StoreError>;

// === impl StoreError ===

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error.into()))
    }
}
