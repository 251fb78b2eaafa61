//! An app has series of its own on `/metrics` from its first request on, however many apps the ledger has seen.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::commands::{Place, ask};
use crate::support::daemon::Daemon;
use crate::support::origin::billed;
use crate::support::{Origin, Step, eventually};

/// As many as the ledger's apps have series for.
const APPS: usize = 64;

/// A configuration with an app of each token.
fn declared(place: &Place, tokens: &[String]) -> String {
    let lines = tokens.iter().enumerate().map(|(number, token)| {
        let file = place.path(&format!("token-{number}"));
        std::fs::write(&file, token).expect("a file");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, mode).expect("a mode");
        format!("[[app]]\nname = \"job-{number}\"\ntoken_file = {file:?}\n")
    });
    lines.collect()
}

#[tokio::test]
async fn an_app_that_is_added_beside_many_removed_ones_has_a_series_of_its_own() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::new();
    let state = place.state();
    let tokens: Vec<String> = (0..APPS).map(|number| format!("{number:032}")).collect();
    let config = place.path("config.toml");
    let limits = "[shaping]\nin_flight = 0\nper_minute = 0\n";
    std::fs::write(&config, format!("{limits}{}", declared(&place, &tokens))).expect("a file");
    let named = ["--config", config.as_str()];
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &named).await;
    for token in &tokens {
        assert_eq!(ask(&daemon, token).await.status, 200);
    }
    daemon.terminate().await;

    // All of them are gone, and the ledger has what they spent.
    std::fs::write(&config, limits).expect("a file");
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &named).await;
    let before = daemon.admin_page("/metrics").await.text();
    assert!(before.contains("app=\"job-63\""), "{before}");
    assert_eq!(ask(&daemon, "none").await.status, 200);
    let token = place.done(&["add", "web"]).await;
    assert_eq!(ask(&daemon, token.trim_end()).await.status, 200);

    // A request is counted when all of it is over, which its app does not wait for.
    for begin in [
        "bursar_billed_usd_total{app=\"default\",",
        "bursar_billed_usd_total{app=\"web\",",
        "bursar_requests_total{app=\"web\",",
        "bursar_request_duration_seconds_count{app=\"web\",",
    ] {
        eventually(begin, || async {
            let page = daemon.admin_page("/metrics").await.text();
            page.contains(begin).then_some(())
        })
        .await;
    }
    daemon.terminate().await;
}
