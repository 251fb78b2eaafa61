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
