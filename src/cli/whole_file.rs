//! A file that is there whole or not at all: written beside its place, flushed, then renamed.
//!
//! Promise: only its owner may read it (0600), from its first byte on; what stood in its place stays until
//! the new one is whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{CliError, remark};

/// A file in the making beside its place; gone when it is dropped before [`Self::keep`].
pub struct WholeFile {
    file: File,
    next: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

// === impl WholeFile ===

impl WholeFile {
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let mut name = path
            .file_name()
            .ok_or_else(|| CliError::usage(format_args!("{} names no file", path.display())))?
            .to_owned();
        name.push(format!(".{}.next", std::process::id()));
        let next = path.with_file_name(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&next)
            .map_err(|error| cannot_write(path, &error))?;
        Ok(Self {
            file,
            next,
            path: path.to_owned(),
            is_kept: false,
        })
    }

    /// What is written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file where it belongs.
    pub fn keep(mut self) -> Result<(), CliError> {
        self.file
            .sync_all()
            .and_then(|()| std::fs::rename(&self.next, &self.path))
            .map_err(|error| cannot_write(&self.path, &error))?;
        self.is_kept = true;
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| cannot_write(directory, &error))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = std::fs::remove_file(&self.next)
        {
            remark(format_args!(
                "bursar: an unfinished file is left in {}: {error}",
                self.next.display()
            ));
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be written: {error}", path.display()))
}
