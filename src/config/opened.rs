//! Opening what the configuration names: a file, or a pipe without a name (`<(pass show key)`).
//!
//! Why: a start that opens a named pipe waits until a process writes to it, perhaps for ever, and a device is
//! nothing to read a key from. systemd would end such a start without the reason.
//!
//! Where no file is named, the known places are looked at.
//!
//! Promise: opening never waits, and the error for what is no file names its kind.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fcntl_setfl, fstatfs, open};

use super::env::{Env, HOME, XDG_CONFIG_HOME};

/// Where a package puts it.
const SYSTEM_FILE: &str = "/etc/bursar/config.toml";

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The file system of the kernel's own that pipes without a name are on (`PIPEFS_MAGIC`).
const PIPES_OWN: u64 = 0x5049_5045;

/// Opens `path` for reading. A pipe's reads wait for its writer, which is there: a command that asks for a
/// passphrase takes its time.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    // Without it the opening itself waits.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    let what = if kind.is_file() {
        return Ok(file);
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else if kind.is_fifo() && is_without_name(&file)? {
        fcntl_setfl(&file, OFlags::empty())?;
        return Ok(file);
    } else if kind.is_fifo() {
        "a named pipe (FIFO), and reading it may wait for ever"
    } else {
        "no file"
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {what}; give a file, or a command's output: <(COMMAND)"),
    ))
}

/// The folder of the user's own configuration, and of the key of the user's own service (`systemd/user/`).
pub fn users_folder(env: &Env) -> Option<PathBuf> {
    let home = || Some(env.path(HOME)?.join(".config"));
    let folder = env.path(XDG_CONFIG_HOME).or_else(home)?;
    Some(folder.join("bursar"))
}

/// The configuration file that is meant where none is named: the user's own, else the system's. A file that is there
/// and cannot be read is meant all the same.
pub(super) fn known_place(env: &Env) -> Option<PathBuf> {
    first_there(env, Path::new(SYSTEM_FILE))
}

fn first_there(env: &Env, system: &Path) -> Option<PathBuf> {
    let own = users_folder(env).map(|folder| folder.join("config.toml"));
    let mut known = own.into_iter().chain([system.to_owned()]);
    known.find(|path| path.symlink_metadata().is_ok())
}

/// The text of a configuration file.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_to_read(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned())
}

/// One that the shell made, as against a file of the kind.
fn is_without_name(pipe: &File) -> io::Result<bool> {
    let on = u64::try_from(fstatfs(pipe)?.f_type);
    Ok(on.is_ok_and(|on| on == PIPES_OWN))
}

#[cfg(test)]
mod tests;
