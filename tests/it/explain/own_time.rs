//! One request has one time: what the log says of it, `explain` and the metrics say, too.

use serde_json::Value;

use super::{BODY, CHAT, run};
use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::{chunk, json, last_chunk, stream_head};
use crate::support::{Origin, Step, chat, chat_stream, eventually};

#[tokio::test]
async fn log_ledger_and_metrics_report_one_time() {
    let event = format!("data: \"{}\"\n\n", "x".repeat(100));
    let end = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
    let stream = [
        stream_head(),
        chunk(&event),
        chunk(end),
        // What the service still does is not on the way to the app.
        chunk(": bye\n\n"),
        last_chunk(),
    ];
    for (name, body, answer) in [
        (
            "json",
            chat("hi"),
            json(200, &[("X-Service-Billed", "7")], BODY),
        ),
        ("stream", chat_stream("hi"), stream.concat()),
        ("refused", chat("hi"), json(400, &[], r#"{"detail":"no"}"#)),
    ] {
        let origin = Origin::start([Step::Answer(answer)]).await;
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let state = state.to_str().expect("a path");
        let config = directory.path().join("config.toml");
        std::fs::write(&config, "[log]\nformat = \"json\"\n").expect("the config");
        let config = config.to_str().expect("a path");
        let url = origin.url();
        let mut arguments = run_arguments(&url, state);
        arguments.extend_from_slice(&["--config", config]);
        let log = directory.path().join("log");
        let mut daemon = command(&arguments);
        daemon.stderr(std::fs::File::create(&log).expect("a log"));
        let daemon = Daemon::launched(daemon).await.expect("it went on");
        let answer = daemon.connect().await.post(CHAT, &body).await;
        let id = answer.header("x-bursar-entry").expect("an id").to_owned();

        let logged = eventually("its line in the log", || async {
            let log = std::fs::read_to_string(&log).expect("a log");
            let lines = log.lines();
            let mut documents = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
            documents.find(|line| find(line, "own_us").is_some())
        })
        .await;
        let metrics = daemon.admin_page("/metrics").await.text();
        let sum = "bursar_overhead_seconds_sum{app=\"default\",lane=\"inference\",";
        let mut lines = metrics.lines().filter(|line| line.starts_with(sum));
        let counted = lines.find_map(|line| line.rsplit(' ').next());
        let counted: f64 = counted.expect("a sum").parse().expect("a number");
        daemon.terminate().await;
        let arguments = ["explain", "--json", "--state-dir", state, &id];
        let (printed, error, code) = run(&arguments).await;
        assert_eq!(code, Some(0), "{error}");
        let document: Value = serde_json::from_str(&printed).expect("JSON");
        for time in ["total_ms", "queue_ms", "first_byte_ms", "own_us"] {
            let (kept, logged) = (find(&document, time), find(&logged, time));
            assert_eq!(kept, logged, "{name}: {time} in ledger and log");
        }
        let own_us = find(&document, "own_us").expect("own time");
        let micros = own_us.as_f64().expect("a number");
        let apart = (counted * 1e6 - micros).abs();
        assert!(
            apart < 1.0,
            "{name}: {counted} s in the metrics, {own_us} us reported"
        );
    }
}

/// The value of the first member of this name, at any depth.
fn find(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Object(members) => members
            .get(name)
            .cloned()
            .or_else(|| members.values().find_map(|member| find(member, name))),
        Value::Array(items) => items.iter().find_map(|item| find(item, name)),
        _ => None,
    }
}
