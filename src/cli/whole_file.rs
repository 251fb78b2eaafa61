//! A file that is there whole or not at all: written beside its place, flushed, then renamed.
//!
//! Promise: only its owner may read it (0600), from its first byte on; what stood in its place stays until
//! the new one is whole. What a kill leaves beside it, which may hold a key, is taken away by the next run
//! for the same file; of two at a time one is refused.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::error::CliError;
use super::output::remark;

/// The end of the name that a file in the making has.
const NEXT: &str = ".bursar-next";

/// How often the place of a file in the making is looked at: others may leave it at the same time.
const LOOKS: u32 = 16;

/// A file in the making, locked as long as it is made, beside its place; gone when it is dropped before [`Self::keep`].
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
        name.push(NEXT);
        let next = path.with_file_name(name);
        let file = begin(&next).map_err(|error| cannot_write(path, &error))?;
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

/// A new file, locked. One without a lock was left by a kill.
fn begin(next: &Path) -> io::Result<File> {
    for _ in 0..LOOKS {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(next);
        let is_new = made.is_ok();
        let file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match left(next) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                left => left?,
            },
            made => made?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another bursar is writing it"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The process that had the lock before may have put it in its place, or taken it away.
        let is_same = |there: Metadata| -> io::Result<bool> {
            let here = file.metadata()?;
            Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
        };
        let is_there = match std::fs::symlink_metadata(next) {
            Ok(there) => is_same(there)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        match (is_there, is_new) {
            (true, true) => return Ok(file),
            (true, false) => std::fs::remove_file(next)?,
            (false, _) => {}
        }
    }
    Err(io::Error::other("others are writing it"))
}

/// Looked at, never written to: it may be another user's.
fn left(next: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(next, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!(
            "{} is in the way",
            next.display()
        ))),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
