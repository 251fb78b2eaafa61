//! The metrics documents against a list of requests written by hand.

use super::*;
use crate::{
    endpoints::traffic::{Observation, RequestOutcome},
    money::MicroUsd,
};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// When, how long, tokens in and out, billed, baseline.
const SERVED: &[(&str, u64, u64, u64, u64, u64)] = &[
    ("2026-05-30T22:00:00Z", 9_000, 1, 1, 1, 1),
    ("2026-05-30T23:10:00Z", 100, 10, 20, 5, 50),
    ("2026-05-30T23:50:00Z", 300, 30, 40, 7, 90),
    ("2026-05-31T11:59:59Z", 200, 50, 60, 11, 130),
    ("2026-05-31T12:00:00Z", 400, 70, 80, 13, 5),
];
const FAILED: &[(&str, u16)] = &[
    ("2026-05-30T23:30:00Z", 503),
    ("2026-05-31T12:00:01Z", 503),
    ("2026-05-31T12:00:02Z", 502),
];
const JUDGED: &[(&str, f64)] = &[
    ("2026-05-30T23:10:00Z", 1.0),
    ("2026-05-30T23:50:00Z", 0.0),
    ("2026-05-31T12:00:00Z", 0.8),
];
const NOW: &str = "2026-05-31T12:30:00Z";

fn hand_made() -> (Endpoint, Traffic) {
    let amount = |n| MicroUsd::new(n).unwrap();
    let mut traffic = Traffic::default();
    for (when, took_ms, prompt_tokens, completion_tokens, billed, baseline) in SERVED {
        traffic.observe(&Observation {
            at: at(when),
            took_ms: *took_ms,
            outcome: RequestOutcome::Served {
                prompt_tokens: *prompt_tokens,
                completion_tokens: *completion_tokens,
                billed: amount(*billed),
                baseline: amount(*baseline),
            },
        });
    }
    for (when, status) in FAILED {
        traffic.observe(&Observation {
            at: at(when),
            took_ms: 1,
            outcome: RequestOutcome::Failed(*status),
        });
    }
    for (when, score) in JUDGED {
        traffic.judge(at(when), *score);
    }
    let since = at("2026-05-30T00:00:00Z");
    let endpoint = Endpoint::deploying("u".to_owned(), "o", "mine".to_owned(), "t", since);
    let endpoint = endpoint.into_live(since);
    let endpoint = endpoint.stopped(at("2026-05-31T12:00:00Z")).unwrap();
    let endpoint = endpoint.started(at("2026-05-31T12:10:00Z"), 300_000);
    (endpoint.unwrap(), traffic)
}

fn document(metric: Metric, query: &str) -> Value {
    let (endpoint, traffic) = hand_made();
    let window = Window::read(query, at(NOW)).unwrap();
    metric.document(&endpoint, &traffic, window, at(NOW))
}

// Window 23:00 to 12:30: all but the first request.
const WINDOW: &str = "from=2026-05-30T23:00:00Z";

// Interface, Other endpoint routes: "performance (p50/p95/p99 latency)"
#[test]
fn performance_contains_the_percentiles_of_answered_requests() {
    let document = document(Metric::Performance, WINDOW);

    assert_eq!(
        (
            &document["p50_ms"],
            &document["p95_ms"],
            &document["p99_ms"]
        ),
        (&json!(200), &json!(400), &json!(400))
    );
    assert_eq!(document["requests"], 4);
    let hourly = document["hourly"].as_array().unwrap();
    assert_eq!(hourly.len(), 3);
    assert_eq!(hourly[0]["hour"], "2026-05-30T23:00:00Z");
    assert_eq!(
        (&hourly[0]["p50_ms"], &hourly[0]["p95_ms"]),
        (&json!(100), &json!(300))
    );
}

// Interface, Other endpoint routes: "uptime (availability)"
#[test]
fn uptime_is_the_share_of_the_time_it_was_meant_to_serve() {
    let document = document(Metric::Uptime, "window=1h");

    // 11:30 to 12:00 live, to 12:10 stopped, to 12:15 starting, to 12:30 live.
    assert_eq!(document["live_s"], 45.0 * 60.0);
    assert_eq!(document["stopped_s"], 600.0);
    assert_eq!(document["starting_s"], 300.0);
    assert_eq!(document["availability"], 0.9);
    assert_eq!(document["status"], "live");
}

// Interface, Other endpoint routes: "cost (per-endpoint spend and savings versus a frontier baseline; …)"
#[test]
fn cost_is_what_was_billed_and_saved() {
    let document = document(Metric::Cost, WINDOW);

    assert_eq!(document["spend_micro_usd"], 36);
    assert_eq!(document["frontier_baseline_micro_usd"], 275);
    assert_eq!(document["savings_micro_usd"], 239);
    let daily = document["daily"].as_array().unwrap();
    assert_eq!(daily.len(), 2);
    assert_eq!(daily[1]["day"], "2026-05-31");
    assert_eq!(daily[1]["spend_micro_usd"], 24);
    assert_eq!(daily[1]["savings_micro_usd"], 111);
}

// Interface, Other endpoint routes: "quality (judge-window scores)"
#[test]
fn quality_is_the_mean_score_by_window() {
    let all = document(Metric::Quality, WINDOW);
    assert_eq!(all["score"], 0.6);
    assert_eq!(all["judged"], 3);
    assert_eq!(all["hourly"][0]["score"], 0.5);
    assert_eq!(all["hourly"][2]["score"], 0.8);
    assert_eq!(all["hourly"][1]["score"], Value::Null, "nothing judged");

    let nothing = document(
        Metric::Quality,
        "from=2026-05-31T01:00:00Z&to=2026-05-31T02:00:00Z",
    );
    assert_eq!(nothing["score"], Value::Null);
}

// Interface, Other endpoint routes: "activity (usage stats)"
#[test]
fn activity_counts_requests_tokens_and_errors() {
    let document = document(Metric::Activity, WINDOW);

    assert_eq!(
        (
            &document["requests"],
            &document["succeeded"],
            &document["errors"]
        ),
        (&json!(7), &json!(4), &json!(3))
    );
    assert_eq!(document["errors_by_status"], json!({"502": 1, "503": 2}));
    assert_eq!(
        (
            &document["prompt_tokens"],
            &document["completion_tokens"],
            &document["total_tokens"]
        ),
        (&json!(160), &json!(200), &json!(360))
    );
    assert_eq!(document["daily"][0]["requests"], 3);
    assert_eq!(document["hourly"][2]["errors"], 2);
}

// Interface, Other endpoint routes: "Each accepts arbitrary query parameters passed through to the query string"
#[test]
fn a_query_says_the_window_and_what_it_does_not_say_is_left_to_the_default() {
    let now = at(NOW);
    let day = Window::read("", now).unwrap();
    assert_eq!(day.to, now);
    assert_eq!(day.from, at("2026-05-30T12:30:00Z"));
    let table = [
        ("window=7d", "2026-05-24T12:30:00Z", NOW),
        ("window=90", "2026-05-31T12:28:30Z", NOW),
        ("window=15m&bucket=x", "2026-05-31T12:15:00Z", NOW),
        ("window=900d", "2026-04-30T12:30:00Z", NOW),
        ("bucket=%F0%9F&&=&a&window", "2026-05-30T12:30:00Z", NOW),
        (
            "from=2026-05-31T02:00:00%2B02:00",
            "2026-05-31T00:00:00Z",
            NOW,
        ),
        ("from=1780185600", "2026-05-31T00:00:00Z", NOW),
        (
            "to=2026-05-31T10%3A00%3A00Z&window=1h",
            "2026-05-31T09:00:00Z",
            "2026-05-31T10:00:00Z",
        ),
        ("from=2026-06-30T00:00:00Z", NOW, NOW),
        (
            "from=2026-05-31T11:00:00Z&to=2026-07-01T00:00:00Z",
            "2026-05-31T11:00:00Z",
            NOW,
        ),
    ];
    for (query, from, to) in table {
        let window = Window {
            from: at(from),
            to: at(to),
        };
        assert_eq!(Window::read(query, now).unwrap(), window, "{query}");
    }
}

// Interface, Errors 422: validation failure
#[test]
fn a_window_that_cannot_be_read_is_refused_by_its_name() {
    for (query, name) in [
        ("window=zzz", "window"),
        ("window=-5m", "window"),
        ("window=0h", "window"),
        ("window=", "window"),
        ("window=99999999999999999d", "window"),
        ("from=never&window=1h", "from"),
        ("x=1&to=tomorrow", "to"),
    ] {
        let error = Window::read(query, at(NOW)).unwrap_err();
        assert_eq!(error.status(), 422, "{query}");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{name} must be")),
            "{query}: {text}"
        );
    }
}
