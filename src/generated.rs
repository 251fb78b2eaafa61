//! Pages of `docs/` that are written from the code, for the tests that hold them equal to it.
//!
//! Promise: a page that differs fails its test, which names the command that writes it again.

use std::path::Path;

/// Fails where `docs/PAGE` is not this text. With `BURSAR_WRITE_DOCS=1` the page is written.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, which the program never reads"
)]
pub fn must_be(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(page);
    if std::env::var_os("BURSAR_WRITE_DOCS").is_some() {
        std::fs::write(&path, text).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/{page} is not what the code says; write it again: make docs"
    );
}

/// A cell of a table: one line, without the table's own sign.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
