//! Errors that a test wants of the next writes and syncs below a state directory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// After so many bytes, this error.
type Fault = (usize, i32);

static WRITES: LazyLock<Mutex<HashMap<PathBuf, Vec<Fault>>>> = LazyLock::new(Mutex::default);

static SYNCS: LazyLock<Mutex<HashMap<PathBuf, Vec<i32>>>> = LazyLock::new(Mutex::default);

/// The next write of a journal below `state` writes `keep` bytes and then fails with `errno`.
pub fn plan_write(state: PathBuf, keep: usize, errno: i32) {
    let mut faults = WRITES.lock().unwrap();
    faults.entry(state).or_default().push((keep, errno));
}

/// The next sync of a journal below `state` fails with `errno`.
pub fn plan_sync(state: PathBuf, errno: i32) {
    SYNCS.lock().unwrap().entry(state).or_default().push(errno);
}

/// Called before each write.
pub fn fail_write(path: &Path, file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let state = path.parent().and_then(Path::parent).unwrap();
    let fault = {
        let mut faults = WRITES.lock().unwrap();
        faults
            .get_mut(state)
            .filter(|faults| !faults.is_empty())
            .map(|faults| faults.remove(0))
    };
    let Some((keep, errno)) = fault else {
        return Ok(());
    };
    file.write_all(&bytes[..keep.min(bytes.len())])?;
    Err(io::Error::from_raw_os_error(errno))
}

/// Called before each sync of a segment.
pub fn fail_sync(path: &Path) -> io::Result<()> {
    let state = path.parent().and_then(Path::parent).unwrap();
    let mut faults = SYNCS.lock().unwrap();
    match faults.get_mut(state).filter(|faults| !faults.is_empty()) {
        Some(faults) => Err(io::Error::from_raw_os_error(faults.remove(0))),
        None => Ok(()),
    }
}
