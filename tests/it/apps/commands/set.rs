//! `bursar app set`: other caps, the same token, and what was spent counts on.

use std::path::Path;

use serde_json::Value;

use super::{Place, ask, said};
use crate::support::daemon::{Daemon, command};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Origin, Step, Wire, chat};

/// One paid request of the app, something new each time: its status.
async fn buy(daemon: &Daemon, token: &str, number: &mut u32) -> u16 {
    *number += 1;
    let mut wire = daemon.connect().await;
    let shown = super::bearer(token);
    let body = chat(&format!("number {number}"));
    wire.send(request(
        "POST",
        super::CHAT,
        &[("Authorization", &shown)],
        &body,
    ))
    .await;
    wire.answer().await.status
}

async fn cap(place: &Place) -> Value {
    let state = place.state();
    let output = command(&["caps", "--json", "--state-dir", &state]).output();
    let output = output.await.expect("it ends");
    let view: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    view["caps"].clone()
}

#[tokio::test]
async fn caps_are_set_with_the_same_token_and_nothing_spent_is_forgotten() {
    let origin = Origin::always(Step::Answer(billed(60))).await;
    let place = Place::new();
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    let add = [
        "add",
        "nightly",
        "--cap-day-usd",
        "0.0001",
        "--request-floor-usd",
        "0",
    ];
    let token = place.done(&add).await;
    let (token, mut number) = (token.trim_end(), 0);
    for wanted in [200, 200, 402] {
        assert_eq!(buy(&daemon, token, &mut number).await, wanted);
    }

    let shown = place
        .done(&["set", "nightly", "--cap-day-usd", "0.0002"])
        .await;
    assert!(shown.contains("$0.000200"), "{shown}");
    for wanted in [200, 200, 402] {
        assert_eq!(buy(&daemon, token, &mut number).await, wanted);
    }
    let caps = cap(&place).await;
    assert_eq!(caps[0]["spent_micro_usd"], 240, "{caps}");
    assert_eq!(caps[0]["limit_micro_usd"], 200, "{caps}");

    // A lower cap applies at once, and `none` removes it.
    place
        .done(&[
            "set",
            "nightly",
            "--cap-day-usd",
            "none",
            "--cap-hour-usd",
            "0.0003",
        ])
        .await;
    assert_eq!(buy(&daemon, token, &mut number).await, 200);
    assert_eq!(buy(&daemon, token, &mut number).await, 402);
    place
        .done(&["set", "nightly", "--cap-hour-usd", "none"])
        .await;
    assert_eq!(buy(&daemon, token, &mut number).await, 200);
    assert_eq!(cap(&place).await, serde_json::json!([]));

    // Without a daemon, and known to the next one.
    daemon.terminate().await;
    let alone = place.app(&[
        "set",
        "nightly",
        "--cap-month-usd",
        "0",
        "--request-floor-usd",
        "0.5",
        "--session-cap-usd",
        "2",
        "--session-requests-max",
        "500",
    ]);
    let alone = alone.await;
    assert!(alone.status.success(), "{}", said(&alone));
    assert!(
        said(&alone).contains("in force from its next start"),
        "{}",
        said(&alone)
    );
    let daemon = Daemon::start(&origin.url(), Path::new(&place.state()), &[]).await;
    assert_eq!(ask(&daemon, token).await.code(), Some("cap_reached"));
    let listed: Value = serde_json::from_str(&place.done(&["list", "--json"]).await).expect("JSON");
    let app = &listed["apps"][0];
    assert_eq!(app["cap_month_micro_usd"], 0, "{app}");
    assert_eq!(app["request_floor_micro_usd"], 500_000, "{app}");
    assert_eq!(app["session_cap_micro_usd"], 2_000_000, "{app}");
    assert_eq!(app["session_requests_max"], 500, "{app}");
    place
        .done(&["set", "nightly", "--session-requests-max", "none"])
        .await;
    let caps: Value =
        serde_json::from_str(&daemon.admin_page("/api/caps").await.text()).expect("JSON");
    let of_sessions = &caps["sessions"][0];
    assert_eq!(of_sessions["session_cap_micro_usd"], 2_000_000, "{caps}");
    assert_eq!(of_sessions["session_requests_max"], Value::Null, "{caps}");
    assert_eq!(app["cap_day_micro_usd"], Value::Null, "{app}");
    daemon.terminate().await;
}

#[tokio::test]
async fn what_cannot_be_set_says_why_and_changes_nothing() {
    let place = Place::new();
    let (config, file) = (place.path("config.toml"), place.path("token"));
    std::fs::write(&file, "first-token-0123456789abcdef0123456789").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, mode).expect("a mode");
    let text = "\n[[app]]\nname = \"team\"\ntoken_file = \"token\"\n";
    std::fs::write(&config, text).expect("a file");
    let with_config = ["--config", config.as_str()];
    place
        .done(&["add", "nightly", "--cap-hour-usd", "1", "--config", &config])
        .await;

    // Where no daemon reads the token's file, it is there all the same.
    let listed = place.done(&["list", "--json", "--config", &config]).await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["apps"][0]["name"], "team");
    assert_eq!(listed["apps"][0]["token"], true, "{listed}");

    let mut running = None;
    for _ in 0..2 {
        for (arguments, code, parts) in [
            (
                &["set", "team", "--cap-day-usd", "5"][..],
                1,
                &["config.toml:2", "systemctl reload bursar"][..],
            ),
            (
                &["set", "nobody", "--cap-day-usd", "5"],
                1,
                &["there is no app \"nobody\""],
            ),
            (
                &["set", "default", "--cap-day-usd", "5"],
                1,
                &["it is declared, not added"],
            ),
            (
                &["set", "nightly", "--cap-day-usd", "0.5"],
                1,
                &["the cap of the hour"],
            ),
            (&["set", "nightly"], 2, &["nothing to set", "--cap-day-usd"]),
            (
                &["set", "nightly", "--cap-day-usd", "-1"],
                2,
                &["dollars, 0 or more", "or none"],
            ),
            (
                &["set", "nightly", "--cap-day-usd", "much"],
                2,
                &["dollars, 0 or more"],
            ),
            (
                &["add", "more", "--cap-day-usd", "-1"],
                2,
                &["dollars, 0 or more"],
            ),
        ] {
            let output = place.app(&[arguments, &with_config].concat()).await;
            let said = said(&output);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            for part in parts {
                assert!(said.contains(part), "{arguments:?}: {said}");
            }
        }
        if running.is_none() {
            let state = place.state();
            let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&state), &with_config);
            running = Some(daemon.await);
        }
    }
    let listed = place.done(&["list", "--json", "--config", &config]).await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["apps"].as_array().map(Vec::len), Some(2));
    assert_eq!(listed["apps"][1]["cap_hour_micro_usd"], 1_000_000);
    assert_eq!(listed["apps"][1]["cap_day_micro_usd"], Value::Null);
    running.expect("a daemon").terminate().await;
}

/// A command that is killed, or hangs up, leaves no app without its cap.
#[tokio::test]
async fn a_change_whose_command_has_gone_is_made_whole_or_not_at_all() {
    let place = Place::new();
    let daemon = Daemon::start("http://127.0.0.1:9", Path::new(&place.state()), &[]).await;
    let socket = Path::new(&place.state()).join("admin.sock");
    let typed = [("Content-Type", "application/json")];
    for number in 0..20 {
        let body = format!("{{\"name\":\"app-{number}\",\"cap_day_micro_usd\":{number}}}");
        let mut wire = Wire::unix(&socket).await;
        wire.send(request("POST", "/api/apps/add", &typed, &body))
            .await;
        drop(wire);
    }
    // One more change, which completed. Every app in the list has its cap by now.
    place.done(&["add", "last", "--cap-day-usd", "1"]).await;
    let listed = place.done(&["list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let caps = cap(&place).await;
    let limits: Vec<(&Value, &Value)> = caps
        .as_array()
        .expect("a list")
        .iter()
        .map(|cap| (&cap["scope"], &cap["limit_micro_usd"]))
        .collect();
    for app in listed["apps"].as_array().expect("a list") {
        let wanted = (&app["name"], &app["cap_day_micro_usd"]);
        assert!(limits.contains(&wanted), "{wanted:?} is not in {limits:?}");
    }
    daemon.terminate().await;
}
