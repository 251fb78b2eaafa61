use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Level;

use super::*;

#[test]
fn other_crates_never_say_more_than_warnings() {
    let foreign = [
        "pingora_core::protocols::http",
        "h2::codec",
        "hyper_util::client",
        "rustls::client",
        "sled::pagecache",
    ];

    for level in LogLevel::ALL {
        let targets = targets(*level);
        for target in foreign {
            assert!(
                !targets.would_enable(target, &Level::INFO),
                "{target} at {level}"
            );
        }
        assert!(targets.would_enable("bursar::proxy", &Level::ERROR));
    }
}

#[test]
fn the_level_is_that_of_our_own_lines() {
    let targets = targets(LogLevel::Info);

    assert!(targets.would_enable("bursar::access", &Level::INFO));
    assert!(!targets.would_enable("bursar::access", &Level::DEBUG));
    assert!(targets.would_enable("pingora_core", &Level::WARN));
}

#[test]
fn an_error_level_silences_the_warnings_of_others() {
    assert!(!targets(LogLevel::Error).would_enable("h2", &Level::WARN));
}

/// What the lines of one thread said.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_is_logged_with_its_place_and_without_its_message() {
    let said = Said::default();
    let writer = said.clone();
    let lines = fmt::layer()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(lines);
    let before = panic::take_hook();
    log_panics();
    let ended = tracing::subscriber::with_default(subscriber, || {
        panic::catch_unwind(|| panic!("Bearer {}", "sk-in-a-message"))
    });
    panic::set_hook(before);

    assert!(ended.is_err());
    let said = String::from_utf8(said.0.lock().clone()).expect("text");
    assert!(said.contains("src/telemetry/tests.rs:"), "{said}");
    assert!(said.contains("a task panicked"), "{said}");
    assert!(!said.contains("sk-in-a-message"), "{said}");
}

#[test]
fn of_another_crates_line_only_its_place_is_logged() {
    let said = Said::default();
    let writer = said.clone();
    let lines = fmt::layer()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry()
        .with(lines.with_filter(filter_fn(is_own)))
        .with(Foreign);
    // A line that is written while another is taken in reaches the global subscriber only.
    tracing::subscriber::set_global_default(subscriber).expect("no other test sets it");
    tracing::warn!(target: "h2::codec", key = "sk-in-a-field", "sk-in-a-line");
    tracing::error!(target: "sled::pagecache", "sk-in-a-line");

    let said = String::from_utf8(said.0.lock().clone()).expect("text");
    assert!(
        said.contains("a library warns; its words are not shown by=\"h2::codec\""),
        "{said}"
    );
    assert!(said.contains("a library reports an error"), "{said}");
    assert!(!said.contains("sk-in"), "{said}");
}
