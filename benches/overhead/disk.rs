//! What one durable write costs here: bursar makes two of them for each request, shared by all
//! that wait at the time.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::nanoseconds;
use crate::numbers::Spread;

const WRITES: usize = 200;
const WRITE_BYTES: usize = 4096;

/// A slow disk must not take the whole run.
const LONGEST: Duration = Duration::from_secs(3);

/// Appends 4 KiB and waits for the disk, again and again.
pub fn fdatasync_cost(directory: &Path) -> io::Result<Spread> {
    let path = directory.join("fdatasync");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [b'x'; WRITE_BYTES];
    let began = Instant::now();
    let mut took = Vec::new();
    while took.len() < WRITES && began.elapsed() < LONGEST {
        let write = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        took.push(nanoseconds(write.elapsed()));
    }
    std::fs::remove_file(&path)?;
    Ok(Spread::of(took))
}
