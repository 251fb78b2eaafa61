use super::*;
use serde_json::json;

#[test]
fn the_table_shows_what_is_spent_held_reserved_left_and_the_worst_case() {
    let view = json!({
        "time_zone": "Europe/Berlin",
        "caps": [
            { "scope": "nightly", "period": "day", "limit_micro_usd": 7_000_000,
              "configured_micro_usd": 5_000_000, "spent_micro_usd": 1_250_000,
              "held_micro_usd": 30_000, "reserved_micro_usd": 20_000, "left_micro_usd": 5_700_000,
              "under_way": 1, "since_ms": 0, "refusals": 0, "worst_case_micro_usd": 7_050_000, "resets_at_ms": 1_774_821_600_000_u64 },
            { "scope": "all", "period": "hour", "limit_micro_usd": 1, "configured_micro_usd": 1,
              "spent_micro_usd": 0, "held_micro_usd": 0, "reserved_micro_usd": 0,
              "left_micro_usd": 1, "under_way": 0, "since_ms": 0, "refusals": 0, "worst_case_micro_usd": null, "resets_at_ms": 0 },
        ],
        "frozen": [{ "app": null, "since_ms": 1_774_786_200_000_u64, "by": "user 1000" }],
        "waiting": 2,
    });
    let text = report(
        &serde_json::from_value(view.clone()).unwrap(),
        &Look::unlimited(),
    );
    for part in [
        "FROZEN since 2026-03-29 14:10:00: all apps, by user 1000",
        "$7.000000 (raised)",
        "$1.250000",
        "$0.030000",
        "$5.700000",
        "$7.050000",
        "2026-03-30 00:00:00",
        "limit + one request",
        "2 requests wait",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(report(&CapsView::default(), &Look::unlimited()).contains("There is no cap."));

    let narrow = report(&serde_json::from_value(view).unwrap(), &Look::of_width(80));
    for line in narrow.lines() {
        assert!(line.chars().count() <= 80, "{narrow}");
    }
    for part in [
        "$7.000000",
        "$1.250000",
        "$0.030000",
        "$5.700000",
        "03-30 00:00:00",
    ] {
        assert!(narrow.contains(part), "{part:?} is not in\n{narrow}");
    }
}

#[test]
fn the_bound_of_a_shared_cap_has_its_figures_and_says_what_may_add_to_it() {
    let cap = |dearest: serde_json::Value, limit: serde_json::Value| {
        json!({
            "cap": "team", "period": "day", "time_zone": "UTC", "limit_micro_usd": limit, "charged_micro_usd": 9_000_000,
            "since_ms": 0, "resets_at_ms": 1, "state": "leased", "leased_micro_usd": 70_000, "spent_micro_usd": 20_000,
            "held_micro_usd": 0, "reserved_micro_usd": 0, "under_way": 0, "open_micro_usd": 50_000, "ends_in_ms": 9,
            "ahead_micro_usd": 0, "dearest_micro_usd": dearest, "refusals": 0,
        })
    };
    let told = |cap: serde_json::Value| {
        let view =
            json!({ "time_zone": "UTC", "caps": [], "frozen": [], "waiting": 0, "shared": [cap] });
        let view = serde_json::from_value(view).expect("a view");
        report(&view, &Look::unlimited())
    };
    let text = told(cap(json!(12_300), json!(25_000_000)));
    for part in [
        "worst case of team: $25.000000, and $0.012300, the dearest request known here, for each machine that spends of it",
        "more than four times the dearest known one",
        "what prices that come late are above what was held",
        "what a copy of a machine spends",
        "restored from a backup",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let text = told(cap(json!(null), json!(25_000_000)));
    assert!(
        text.contains("$25.000000, and one request for each"),
        "{text}"
    );
    let text = told(cap(json!(null), json!(null)));
    assert!(!text.contains("worst case of team"), "{text}");
}

#[test]
fn the_limits_of_sessions_stand_below_with_how_near_they_are() {
    let view = json!({
        "time_zone": null, "caps": [], "frozen": [], "waiting": 0,
        "sessions": [
            { "app": "agent", "session_cap_micro_usd": 2_000_000, "session_requests_max": 500,
              "sessions": 12, "overflow_micro_usd": null, "reached": 1, "most_spent_micro_usd": 2_010_000,
              "most_requests": 41 },
            { "app": "loop", "session_cap_micro_usd": null, "session_requests_max": 1,
              "sessions": 10_000, "overflow_micro_usd": 7_000_000, "reached": 0, "most_spent_micro_usd": 0,
              "most_requests": 1 },
        ],
    });
    let view: CapsView = serde_json::from_value(view).unwrap();
    let text = report(&view, &Look::unlimited());
    for part in [
        "each session of agent: at most $2.000000 and 500 requests; 12 sessions so far, the dearest $2.010000, the \
         longest 41 requests; 1 at the limit",
        "each session of loop: at most 1 request; 10000 sessions and an overflow of $7.000000 so far",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("There is no cap"), "{text}");
    let narrow = report(&view, &Look::of_width(80));
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80),
        "{narrow}"
    );
}
