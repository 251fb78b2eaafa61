//! What fuzzing found worth keeping is checked again on every run, with the same checks
//! (`fuzz/src/checks`).

use std::fs;
use std::path::Path;

#[path = "../../fuzz/src/checks/config.rs"]
mod config;
#[path = "../../fuzz/src/checks/journal.rs"]
mod journal;
#[path = "../../fuzz/src/checks/messages.rs"]
mod messages;
#[path = "../../fuzz/src/checks/receipt.rs"]
mod receipt;
#[path = "../../fuzz/src/checks/responses.rs"]
pub mod responses;
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

#[test]
fn requests_and_answers_of_the_corpus_keep_every_text_in_the_responses_dialect() {
    replay("responses", responses::check);
}

#[test]
fn messages_of_the_corpus_say_the_same_in_both_forms() {
    replay("messages", messages::check);
}

#[test]
fn no_seed_is_lost() {
    let targets = [
        "sse",
        "receipt",
        "journal",
        "routes",
        "config",
        "responses",
        "messages",
    ];
    let counts = targets.map(|target| seeds(target).len());

    assert_eq!(counts, [119, 97, 101, 96, 97, 125, 89]);
}

/// Runs a check over every seed of a target.
fn replay(target: &str, check: fn(&[u8])) {
    for (name, seed) in seeds(target) {
        if let Err(panic) = std::panic::catch_unwind(|| check(&seed)) {
            eprintln!("the input is {name} of {target}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The seeds of a target with their names, as `scripts/seeds.py` packs them: a line each, the name, a
/// tab, and the bytes.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/corpus/{target}.seeds"));
    let text = fs::read_to_string(&file).expect("the corpus is in the repository");
    let seeds = text.lines().map(|line| {
        let (name, seed) = line.split_once('\t').expect("a name and a seed");
        (name.to_owned(), unescaped(seed))
    });
    seeds.collect()
}

/// `\\`, `\n`, `\r`, `\t` and `\xHH` denote a byte, everything else denotes itself.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next().expect("what is escaped") {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digits: String = rest.by_ref().take(2).map(char::from).collect();
                    u8::from_str_radix(&digits, 16).expect("two hexadecimal digits")
                }
                itself => itself,
            },
            byte => byte,
        });
    }
    bytes
}
