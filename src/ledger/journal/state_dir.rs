//! The ledger's directory: made, checked and locked before anything in it is read. It holds what an
//! organization spent and by which app, so no other user of the machine may read or swap it.
//!
//! Promise: 0700 and ours, files 0600, no link is followed, and one daemon at a time.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ledger::error::LedgerError;
use crate::ledger::fingerprint::unhex;

/// Mode of every directory.
const DIR_MODE: u32 = 0o700;

/// Mode of every file.
const FILE_MODE: u32 = 0o600;

/// Room kept for the outcomes of requests in flight when the disk fills up. 8 MiB are about ten
/// thousand outcomes, far above what can be in flight.
const RESERVE_BYTES: u64 = 8 << 20;

const LOCK: &str = "lock";
const IDENTITY: &str = "identity.json";
const RESERVE: &str = "reserve";

/// A directory that was checked. Files in it are opened relative to its descriptor, so that a
/// directory swapped under us is not followed.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// The lock on a ledger, held as long as this lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// A child that this process makes at this moment has the descriptor until it starts its program: closing it
    /// here would leave the lock to it.
    fn drop(&mut self) {
        rustix::fs::flock(&self.file, FlockOperation::Unlock).ok();
    }
}

/// The identity of this ledger. Its secret makes fingerprints reveal nothing to a reader of the disk.
#[derive(Clone)]
pub struct Identity {
    pub ledger: Uuid,
    pub fingerprint_secret: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct IdentityFile {
    format: u32,
    ledger: String,
    fingerprint_secret: String,
    /// CRC-32C of the two: a flipped bit would forget every undelivered request in silence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc: Option<String>,
}

// === impl Directory ===

impl Directory {
    /// Opens the state directory, creating it when it is missing.
    pub fn open_or_create(path: &Path) -> Result<Self, LedgerError> {
        match std::fs::symlink_metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::DirBuilder::new()
                .recursive(true)
                .mode(DIR_MODE)
                .create(path)
                .map_err(|error| LedgerError::io(path, error))?,
            Err(error) => return Err(LedgerError::io(path, error)),
        }
        Self::open(path)
    }

    /// Opens and checks an existing directory.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let refuse = |why: String| LedgerError::UnsafeDir {
            path: path.to_owned(),
            why,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            // With NOFOLLOW and DIRECTORY a link shows as either error.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(refuse(
                    "it is a link or a file; name the real directory".to_owned(),
                ));
            }
            Err(error) => return Err(LedgerError::io(path, error)),
        };
        let stat = rustix::fs::fstat(&descriptor).map_err(|error| LedgerError::io(path, error))?;
        let own = rustix::process::geteuid().as_raw();
        if stat.st_uid != own {
            return Err(refuse(format!(
                "it belongs to user {}, and this process runs as {own}",
                stat.st_uid
            )));
        }
        let mode = stat.st_mode & 0o777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!(
                "its mode is {mode:04o}, others may enter; run: chmod 700 {}",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            descriptor,
        })
    }

    /// Opens an existing directory only to read what is in it. Any user that the system lets in may read:
    /// an operator reads a service's ledger. Nothing is created.
    pub fn open_to_read(path: &Path) -> Result<Self, LedgerError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| LedgerError::io(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            descriptor,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory in this one, creating it when it is missing.
    pub fn child(&self, name: &str) -> Result<Self, LedgerError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(DIR_MODE)) {
            Ok(()) => self.sync()?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(LedgerError::io(&path, error)),
        }
        Self::open(&path)
    }

    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<File, LedgerError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(
            &self.descriptor,
            name,
            flags,
            Mode::from_raw_mode(FILE_MODE),
        )
        .map(File::from)
        .map_err(|error| LedgerError::io(&self.path.join(name), error))
    }

    /// The text of a small file; `None` when there is none.
    pub fn read(&self, name: &str) -> Result<Option<String>, LedgerError> {
        let mut file = match self.open_file(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| LedgerError::io(&self.path.join(name), error))?;
        // A damaged byte stays in it as a mark that no reader takes.
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Writes a whole small file so that a crash leaves the old one or the new one.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), LedgerError> {
        let next = format!("{name}.next");
        let path = self.path.join(&next);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = self.open_file(&next, flags)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|error| LedgerError::io(&path, error))?;
        rustix::fs::renameat(&self.descriptor, &next, &self.descriptor, name)
            .map_err(|error| LedgerError::io(&path, error))?;
        self.sync()
    }

    /// Gives a file another name, and takes that of whatever had it.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), LedgerError> {
        rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)
            .map_err(|error| LedgerError::io(&self.path.join(to), error))
    }

    pub fn remove(&self, name: &str) -> Result<(), LedgerError> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(LedgerError::io(&self.path.join(name), error)),
        }
    }

    /// Makes names durable: a new file's, or a renamed one's.
    pub fn sync(&self) -> Result<(), LedgerError> {
        rustix::fs::fsync(&self.descriptor).map_err(|error| LedgerError::io(&self.path, error))
    }

    /// The names in this directory, sorted.
    pub fn names(&self) -> Result<Vec<String>, LedgerError> {
        let read = |entry: io::Result<std::fs::DirEntry>| {
            entry.map(|entry| entry.file_name().into_string().ok())
        };
        let mut names: Vec<String> = std::fs::read_dir(&self.path)
            .and_then(|entries| entries.map(read).collect::<io::Result<Vec<_>>>())
            .map_err(|error| LedgerError::io(&self.path, error))?
            .into_iter()
            .flatten()
            .collect();
        names.sort();
        Ok(names)
    }

    /// Takes the lock; the error names the process that holds it.
    pub fn lock(&self) -> Result<Lock, LedgerError> {
        let path = self.path.join(LOCK);
        let mut file = self.open_file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // The holder may not have written its number yet: then it is not known.
                let _ = file.read_to_string(&mut holder);
                let pid = holder.trim().parse().unwrap_or(0);
                return Err(LedgerError::Locked { pid });
            }
            Err(error) => return Err(LedgerError::io(&path, error)),
        }
        // On a full disk the number cannot be written. The lock holds all the same.
        let _ = file
            .set_len(0)
            .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        Ok(Lock { file })
    }

    /// Takes the turn to change small files that another process changes, too; it ends with this value.
    /// `false`: another has it at this moment.
    pub fn take_turn(&self) -> Result<bool, LedgerError> {
        match rustix::fs::flock(&self.descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(LedgerError::io(&self.path, error)),
        }
    }

    /// Whether a daemon has the lock. Takes nothing that a daemon starting now would miss for
    /// longer than this call.
    pub fn is_locked(&self) -> Result<bool, LedgerError> {
        let file = match self.open_file(LOCK, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(false),
            Err(error) => return Err(error),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(LedgerError::io(&self.path.join(LOCK), error)),
        }
    }

    /// The process that has the lock, where it is known.
    pub fn holder(&self) -> Option<u32> {
        if !self.is_locked().ok()? {
            return None;
        }
        let pid = self.read(LOCK).ok()??.trim().parse().ok()?;
        Some(pid).filter(|pid| *pid > 0)
    }

    /// The identity of this ledger, where one is stored. The inner `None`: its file is damaged.
    pub fn known_identity(&self) -> Result<Option<Option<Identity>>, LedgerError> {
        Ok(self.read(IDENTITY)?.map(|text| IdentityFile::parse(&text)))
    }

    /// Reads the identity of this ledger; `new` is stored when none is.
    pub fn identity(&self, new: impl FnOnce() -> Identity) -> Result<Identity, LedgerError> {
        if let Some(text) = self.read(IDENTITY)? {
            return IdentityFile::parse(&text).ok_or_else(|| LedgerError::ForeignFormat {
                path: self.path.join(IDENTITY),
                why: "it cannot be read as a ledger's identity; move it away, and the next start \
                      reads the ledger's id from the journal"
                    .to_owned(),
            });
        }
        let identity = new();
        let text = IdentityFile::print(&identity)
            .map_err(|error| LedgerError::io(&self.path.join(IDENTITY), error))?;
        self.replace(IDENTITY, text.as_bytes())?;
        Ok(identity)
    }

    /// Sets the reserve aside; `Ok` when it is there already.
    pub fn make_reserve(&self) -> Result<(), LedgerError> {
        let path = self.path.join(RESERVE);
        let file = self.open_file(RESERVE, OFlags::WRONLY | OFlags::CREATE)?;
        let outcome = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)
        {
            // Some file systems cannot set room aside. There the reserve is an empty promise, and
            // the journal's own error handling is all there is.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => return Ok(()),
            Err(error) => Err(LedgerError::io(&path, error)),
        };
        self.remove(RESERVE)?;
        outcome
    }

    pub fn drop_reserve(&self) -> Result<(), LedgerError> {
        self.remove(RESERVE)
    }
}

// === impl IdentityFile ===

impl IdentityFile {
    fn parse(text: &str) -> Option<Identity> {
        let file: Self = serde_json::from_str(text).ok()?;
        if file.crc.as_ref().is_some_and(|crc| *crc != file.sum()) {
            return None;
        }
        Some(Identity {
            ledger: Uuid::try_parse(&file.ledger)
                .ok()
                .filter(|_| file.format == 1)?,
            fingerprint_secret: unhex(&file.fingerprint_secret)?,
        })
    }

    fn print(identity: &Identity) -> serde_json::Result<String> {
        let mut file = Self {
            format: 1,
            ledger: identity.ledger.to_string(),
            fingerprint_secret: crate::ledger::entry::Fingerprint(identity.fingerprint_secret)
                .to_string(),
            crc: None,
        };
        file.crc = Some(file.sum());
        serde_json::to_string(&file)
    }

    fn sum(&self) -> String {
        let text = format!("{} {}", self.ledger, self.fingerprint_secret);
        format!("{:08x}", crc32c::crc32c(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
