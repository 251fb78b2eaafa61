//! The tables put into a document: what stands between two marks is replaced, everything else stays.

use std::fs;
use std::io;
use std::path::Path;

/// `part`: the word in the marks.
pub fn write(path: &Path, part: &str, text: &str) -> io::Result<()> {
    let old = fs::read_to_string(path)?;
    let begin = format!("<!-- {part}: begin -->");
    let end = format!("<!-- {part}: end -->");
    let parts = old.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let (before, after) = parts
        .ok_or_else(|| io::Error::other(format!("{} has no marks of {part}", path.display())))?;
    fs::write(path, format!("{before}{begin}\n{text}\n{end}{after}"))
}
