//! The state directory and its file: their owner and mode.
//!
//! The file holds every answer that a key replays, and rows and documents that may be private.
//! Promise: only this user can read the file, also in a directory that existed before; a directory in
//! which others could put another file in its place is refused, with a text that says what to do.

use super::error::{Result, StoreError};
use std::{
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The file in the state directory.
pub const FILE: &str = "sandbox.redb";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Write for the group and for everybody.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Makes the directory when it is missing, and the file ready to be opened.
pub fn ready(directory: &Path) -> Result<PathBuf> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(directory)
        .map_err(StoreError::Directory)?;
    let found = fs::metadata(directory).map_err(StoreError::Directory)?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS_MAY_WRITE != 0 {
        return Err(unsafe_directory(
            directory,
            format!(
                "its mode is {mode:04o}, others may write there; run: chmod 700 {}",
                directory.display()
            ),
        ));
    }
    let file = directory.join(FILE);
    create_whole(directory, &file)?;
    let own = fs::metadata(&file).map_err(StoreError::Directory)?;
    if own.uid() != found.uid() {
        return Err(unsafe_directory(
            directory,
            format!(
                "it belongs to user {}, and {FILE} to user {}",
                found.uid(),
                own.uid()
            ),
        ));
    }
    // A release before this one left it to the umask.
    fs::set_permissions(&file, Permissions::from_mode(FILE_MODE)).map_err(StoreError::Directory)?;
    Ok(file)
}

/// Makes the file under another name first: a kill while redb writes its first pages would leave one that
/// cannot be opened.
fn create_whole(directory: &Path, file: &Path) -> Result<()> {
    if file.try_exists().map_err(StoreError::Directory)? {
        return Ok(());
    }
    let half = directory.join(format!("{FILE}.new"));
    match fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::Directory(error));
        }
        _ => {}
    }
    // redb treats an empty file as a new one, and would itself create one with a mode that the
    // umask decides.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&half)
        .map_err(StoreError::Directory)?;
    drop(redb::Database::create(&half)?);
    fs::rename(half, file).map_err(StoreError::Directory)
}

fn unsafe_directory(directory: &Path, why: String) -> StoreError {
    StoreError::UnsafeDirectory {
        path: directory.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests;
