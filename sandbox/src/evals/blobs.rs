//! The bytes of documents and images: files of the state directory, or memory without one.
//!
//! Promise: what [`Blobs::put`] returned from is there after a kill -9 (with a directory), whole; the files
//! are this user's alone; a name comes from here, never from a client.

use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

const DIRECTORY: &str = "blobs";

#[derive(Debug)]
pub enum Blobs {
    Memory(Mutex<HashMap<String, Bytes>>),
    Directory(PathBuf),
}

// === impl Blobs ===

impl Blobs {
    pub fn open(state_dir: Option<&Path>) -> io::Result<Self> {
        let Some(state_dir) = state_dir else {
            return Ok(Self::Memory(Mutex::default()));
        };
        let directory = state_dir.join(DIRECTORY);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        Ok(Self::Directory(directory))
    }

    /// Stores the bytes; the name is an id of the sandbox's clock.
    pub async fn put(&self, name: &str, bytes: Bytes) -> io::Result<()> {
        match self {
            Self::Memory(all) => {
                all.lock().insert(name.to_owned(), bytes);
                Ok(())
            }
            Self::Directory(directory) => {
                let (directory, name) = (directory.clone(), name.to_owned());
                off_the_runtime(move || write(&directory, &name, &bytes)).await
            }
        }
    }

    /// `None` when there is no such blob.
    pub async fn get(&self, name: &str) -> io::Result<Option<Bytes>> {
        match self {
            Self::Memory(all) => Ok(all.lock().get(name).cloned()),
            Self::Directory(directory) => {
                let path = directory.join(name);
                let read = off_the_runtime(move || fs::read(path)).await;
                match read {
                    Ok(bytes) => Ok(Some(Bytes::from(bytes))),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Removes a blob; one that is not there is no error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Memory(all) => {
                all.lock().remove(name);
                Ok(())
            }
            Self::Directory(directory) => match fs::remove_file(directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Removes every blob that `kept` does not name: what a kill left behind.
    pub fn sweep(&self, kept: &BTreeSet<String>) -> io::Result<()> {
        match self {
            Self::Memory(all) => {
                all.lock().retain(|name, _| kept.contains(name));
                Ok(())
            }
            Self::Directory(directory) => {
                for entry in fs::read_dir(directory)? {
                    let entry = entry?;
                    if !entry
                        .file_name()
                        .to_str()
                        .is_some_and(|name| kept.contains(name))
                    {
                        fs::remove_file(entry.path())?;
                    }
                }
                Ok(())
            }
        }
    }
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// Under another name first, so that a kill leaves a whole file or none.
fn write(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = directory.join(format!("{name}.part"));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, directory.join(name))?;
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
