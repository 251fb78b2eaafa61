//! What fuzzing found worth keeping is checked again on every run, with the same checks
//! (`fuzz/src/checks`).

use std::fs;
use std::path::Path;

#[path = "../../fuzz/src/checks/config.rs"]
mod config;
#[path = "../../fuzz/src/checks/journal.rs"]
mod journal;
#[path = "../../fuzz/src/checks/receipt.rs"]
mod receipt;
#[path = "../../fuzz/src/checks/routes.rs"]
mod routes;
#[path = "../../fuzz/src/checks/sse.rs"]
mod sse;

#[test]
fn event_streams_of_the_corpus_are_scanned_and_held_as_a_plain_reading_says() {
    replay("sse", sse::check);
}

#[test]
fn receipts_of_the_corpus_are_read_by_the_grammar() {
    replay("receipt", receipt::check);
}

#[test]
fn journals_of_the_corpus_are_read_the_same_by_every_reader() {
    replay("journal", journal::check);
}

#[test]
fn heads_of_the_corpus_find_the_route_that_they_spell_or_none() {
    replay("routes", routes::check);
}

#[test]
fn configurations_of_the_corpus_are_taken_or_refused_in_words() {
    replay("config", config::check);
}

/// Runs a check over every file of a target's corpus.
fn replay(target: &str, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut count = 0;
    for file in fs::read_dir(&directory).expect("the corpus is in the repository") {
        let path = file.expect("a file").path();
        let bytes = fs::read(&path).expect("bytes");
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            eprintln!("the input is {}", path.display());
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    assert!(count >= 10, "{target}: only {count} inputs");
}
