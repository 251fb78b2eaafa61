//! "500 requests at once … through a sandbox that enforces its ceilings".

use bursar::apps::AppAdd;
use bursar_sandbox::Options;
use serde_json::json;

use super::*;
use crate::support::{Sandbox, chat_stream};

const REQUESTS: usize = 500;

/// The sandbox's ceiling on requests in flight. It answers 429 above it.
const PLACES: usize = 16;

/// Five apps, of which the first sends six in ten.
fn app_no(n: usize) -> usize {
    (n % 10).saturating_sub(5)
}

fn tokens(bursar: &Bursar) -> Vec<String> {
    let add = |app_no: usize| {
        let new = AppAdd {
            name: format!("app-{app_no}"),
            ..AppAdd::default()
        };
        let token = bursar.apps.add(&new, 1).expect("the app is added");
        format!("Bearer {}", token.reveal())
    };
    (0..5).map(add).collect()
}

#[tokio::test]
async fn five_hundred_at_once_see_no_429_and_are_billed_once() {
    let sandbox = Sandbox::with(Options {
        in_flight_max: PLACES,
        per_minute_max: 100_000,
        ..Options::default()
    })
    .await;
    let config = format!(
        "[shaping]\nin_flight = {PLACES}\nper_minute = 100000\n[ledger]\ndurability = \"process\"\n"
    );
    let bursar = Bursar::with(&sandbox.url(), &config).await;
    // Long enough for all places to be taken.
    let slow = json!({"times": REQUESTS, "fault": {"delay_ms": 40}});
    sandbox.control("/sandbox/faults", slow).await;
    let tokens = tokens(&bursar);
    let mut wires = Vec::new();
    for _ in 0..REQUESTS {
        wires.push(bursar.connect().await);
    }
    let tokens = &tokens;
    let runs = wires
        .into_iter()
        .enumerate()
        .map(|(n, mut wire)| async move {
            let prompt = format!("What is {n} plus {n}?");
            let (path, body) = match n % 3 {
                0 => (CHAT, chat(&prompt)),
                1 => (CHAT, chat_stream(&prompt)),
                _ => ("/agent/v1/chat/completions", chat(&prompt)),
            };
            let token = [("Authorization", tokens[app_no(n)].as_str())];
            wire.send(request("POST", path, &token, &body)).await;
            wire.answer().await
        });
    let answers = futures_util::future::join_all(runs).await;
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let limits = sandbox.get("/sandbox/limits").await;
    let highest = limits["in_flight_highest"].as_u64().expect("a number");
    assert!(highest >= 12, "hardly anybody had to wait: {limits}");
    let refused = bursar.metric("bursar_upstream_attempts_total", "result=\"429\"");
    assert!(refused < 0.5, "{refused}");
    let entries = bursar.settled(REQUESTS).await;
    let queue_ms = |id: &str| {
        let entry = entries.iter().find(|entry| entry.id.0.to_string() == id);
        entry
            .and_then(|entry| entry.timings)
            .expect("timings")
            .queue_ms
    };
    let mut waited = 0;
    for answer in &answers {
        let queue_wait_ms: u64 = answer.header("x-bursar-queue-ms").unwrap().parse().unwrap();
        assert_eq!(
            queue_wait_ms,
            queue_ms(answer.header("x-bursar-entry").unwrap())
        );
        waited += usize::from(queue_wait_ms > 0);
    }
    assert!(waited > REQUESTS / 2, "{waited} waited");
    assert_eq!(bursar.billed(), sandbox.debited().await);
    // In turn, the four with 50 each are through after about 250; one after the other it would be 500.
    let count = |of: usize| {
        let name = format!("app-{of}");
        entries.iter().filter(|entry| *entry.app == *name).count()
    };
    assert_eq!([0, 1, 2, 3, 4].map(count), [300, 50, 50, 50, 50]);
    // Within an app first come, first served: ids follow the order of arrival, and the ledger lists
    // intents in the order of sending.
    for app_no in 0..5 {
        let name = format!("app-{app_no}");
        let of_app = entries.iter().filter(|entry| *entry.app == *name);
        let mut as_let_go: Vec<_> = of_app.map(|entry| (entry.at_ms, entry.id)).collect();
        // Within a millisecond the order is not known.
        as_let_go.sort_unstable();
        assert!(
            as_let_go.is_sorted_by_key(|(_, id)| *id),
            "{name} was not served in order"
        );
    }
    let last = entries.iter().rposition(|entry| *entry.app != *"app-0");
    assert!(last < Some(400), "the last of the small ones was {last:?}");
}
