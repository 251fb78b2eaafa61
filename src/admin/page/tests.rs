use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::admin::documents::{LedgerStatus, TrafficStatus, sample};
use crate::ledger::entry::InDoubt;
use crate::ledger::query::{GroupBy, SpendRow};
use crate::ledger::totals::{LineKey, LineSums, Standing};
use crate::money::MicroUsd;
use crate::protocol::{Lane, Operation};

/// 2026-01-31 08:00:00.
const NOW_MS: u64 = 1_769_846_400_000;

fn row(app: &str, day: &str, served_by: &str, billed: u64) -> SpendRow {
    let labels = [
        (GroupBy::App, app),
        (GroupBy::Day, day),
        (GroupBy::ServedBy, served_by),
    ];
    SpendRow {
        labels: labels.map(|(by, word)| (by, word.to_owned())).into(),
        requests: 1,
        billed_micro_usd: MicroUsd::new(billed).into(),
        ..SpendRow::default()
    }
}

fn document(rows: Vec<SpendRow>) -> Box<SpendDocument> {
    Box::new(SpendDocument {
        since: None,
        until: None,
        time_zone: "UTC".to_owned(),
        by: Vec::new(),
        total: SpendRow::default(),
        damaged: 0,
        rounded: false,
        sessions_since: None,
        rows,
    })
}

fn receipts(entries: &[serde_json::Value]) -> Result<ReceiptsDocument, String> {
    let receipts = entries
        .iter()
        .map(|others| EntryDocument(sample::entry(others)));
    Ok(ReceiptsDocument {
        receipts: receipts.collect(),
        last_seq: None,
        compacted_until_ms: None,
    })
}

fn figures(spend: SpendFigure) -> PageFigures {
    PageFigures {
        at_ms: NOW_MS,
        days: calendar::last_days(NOW_MS, DAYS, &TimeZone::UTC).expect("days"),
        spend,
        receipts: receipts(&[]),
        failed: receipts(&[]),
        in_doubt: receipts(&[]),
    }
}

/// The page with these figures, of a ledger without entries or of one that is being added up.
fn page(figures: Result<&PageFigures, &str>, totals: Option<&Totals>) -> String {
    let status = StatusDocument {
        proxy: vec!["127.0.0.1:8327".to_owned()],
        anonymous: true,
        upstream: "https://inference.example".to_owned(),
        traffic: TrafficStatus {
            waiting: 5,
            at_service: 4,
            in_flight_limit: Some(4),
            per_minute_limit: None,
            held_back_by: vec!["balance".to_owned()],
        },
        ledger: LedgerStatus {
            unavailable: Some("disk <full>\u{202e}\u{2028}".to_owned()),
            ..LedgerStatus::default()
        },
        ..StatusDocument::default()
    };
    render(&PageView {
        now_ms: NOW_MS,
        zone: &TimeZone::UTC,
        status: &status,
        ready: Err("the ledger cannot be written: disk <full>".to_owned()),
        caps: &CapsView::default(),
        totals,
        figures,
    })
}

/// The page without its tags, so that what stands beside each other is.
fn words(page: &str) -> String {
    let main = page.split("<main").nth(1).expect("main");
    let mut text = String::new();
    let mut is_tag = true;
    for character in main.chars() {
        match character {
            '<' => {
                is_tag = true;
                text.push(' ');
            }
            '>' if is_tag => is_tag = false,
            other if !is_tag => text.push(other),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_was_billed_stands_by_window_and_app_and_what_is_not_known_beside_it() {
    let both = SpendRow {
        compared: 1,
        compared_billed_micro_usd: MicroUsd::new(40).into(),
        compared_would_have_cost_micro_usd: MicroUsd::new(100).into(),
        ..row("web", "2026-01-31", "specialist", 40)
    };
    let rows = vec![
        both,
        row("web", "2026-01-25", "frontier", 300),
        row("web", "2026-01-24", "frontier", 1_000),
        row("nightly", "2026-01-02", "unknown", 5_000_000),
        SpendRow {
            in_doubt: 1,
            ..row("nightly", "2026-01-31", "unknown", 0)
        },
    ];
    let page = page(
        Ok(&figures(SpendFigure::Whole(document(rows)))),
        Some(&Totals::default()),
    );

    let words = words(&page);
    for part in [
        "Billed, as far as known $0.000040 $0.000340 $5.001340 $0.000000",
        "Requests 2 3 5 0",
        "Price in doubt 1 1 1 0",
        "Answered by a frontier model 0 % 0 of 1 answers 50 % 1 of 2 answers 67 % 2 of 3 answers not known",
        "Saved against a frontier model $0.000060 over 1 answer",
        "In all",
        // The one that was billed most first.
        "nightly $0.000000 $0.000000 $5.000000 2 1 not known",
        "web $0.000040 $0.000340 $0.001340 3 0 67 %",
        "As of 2026-01-31 08:00:00. Times and days: UTC (UTC+00:00).",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let at = |part: &str| words.find(part).expect("an app's row");
    assert!(at("nightly $") < at("web $"));
    assert!(
        page.contains(
            "Billed by day, 2026-01-02 to 2026-01-31; the most was $5.000000 on 2026-01-02"
        )
    );
    assert_eq!(page.matches("<g><title>").count(), usize::from(DAYS));
}

#[test]
fn the_page_says_how_the_daemon_is_and_escapes_what_is_not_its_own() {
    let page = page(
        Ok(&figures(SpendFigure::Whole(document(Vec::new())))),
        Some(&Totals::default()),
    );
    let words = words(&page);
    for part in [
        "may spend every process of this machine",
        "requests in flight 4 of 4",
        "waiting for a place 5",
        "new requests are held back yes: balance",
        "No request in the last 30 days.",
        "No price is in doubt.",
        "Last receipts None.",
        "disk &lt;full&gt;",
        "&gt;\\u{202e}\\u{2028}",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!page.contains("most in a minute"), "there is no such limit");
    assert!(!page.contains('\u{202e}') && !page.contains('\u{2028}'));
    assert!(!page.contains("<full>"));
}

#[test]
fn receipts_failures_and_doubts_link_to_the_page_of_their_entry_and_foreign_text_stays_text() {
    let hostile = "<script>alert(1)</script>\"'\u{202e}";
    let attempt =
        json!({"end": "refused", "status": 503, "wait_ms": 0, "took_ms": 1, "cause": hostile});
    let failed = json!({"state": "failed", "billed_micro_usd": null, "attempts": [attempt]});
    let entry = sample::entry(&json!({}));
    let read = PageFigures {
        receipts: receipts(&[json!({"model": hostile, "app": hostile})]),
        failed: receipts(&[failed]),
        in_doubt: receipts(&[]),
        ..figures(SpendFigure::Whole(document(vec![row(
            hostile,
            "2026-01-31",
            "none",
            1,
        )])))
    };
    let page = page(Ok(&read), Some(&Totals::default()));

    for section in ["receipts", "errors"] {
        let link = format!("<a href=\"/explain/{0}\" id=\"{section}-{0}\">", entry.id);
        assert!(page.contains(&link), "{link}");
    }
    assert_eq!(page.matches("<script").count(), 1, "its own");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;\\u{202e}"));
    assert!(words(&page).contains("503, failed at the service"));
    if let Some(key) = &entry.key {
        assert!(!page.contains(key.as_str()), "the key");
    }
}

#[test]
fn every_doubt_stands_with_its_reason_in_words() {
    let line = LineKey {
        app: "web".into(),
        lane: Lane::Inference,
        operation: Operation::Chat,
        served_by: None,
    };
    let mut totals = Totals::default();
    let standing = Standing { came: 3, left: 1 };
    totals.extend([(
        &line,
        &LineSums {
            requests: 3,
            in_doubt: BTreeMap::from([(InDoubt::StreamDrop, standing)]),
            ..LineSums::default()
        },
    )]);
    let page = page(
        Ok(&figures(SpendFigure::Whole(document(Vec::new())))),
        Some(&totals),
    );
    let part = "stream drop 2 The answer broke off before its receipt came.";
    assert!(words(&page).contains(part), "{}", words(&page));
}

#[test]
fn without_whole_sums_the_page_says_so_and_shows_the_rest() {
    let rebuilding = figures(SpendFigure::BeingAddedUp);
    let late = "The ledger is still being read for this page";
    for (figures, parts) in [
        (
            Ok(&rebuilding),
            [
                "The totals are not whole yet",
                "not whole yet",
                "Last receipts",
            ],
        ),
        (
            Err(late),
            ["The totals are not whole yet", late, "not whole yet"],
        ),
    ] {
        let page = page(figures, None);
        for part in parts.into_iter().chain(["At the service", "may spend"]) {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(
            !page.contains("$0.000000"),
            "what is not known is not 0: {page}"
        );
    }
    let unread = figures(SpendFigure::Unread("a <reason>".to_owned()));
    let page = page(Ok(&unread), Some(&Totals::default()));
    assert!(page.contains("cannot be read: a &lt;reason&gt;"));
}

#[test]
fn the_page_has_a_bound_and_the_apps_beyond_it_are_one_row() {
    let apps = (0..200).map(|at| row(&format!("app-{at:03}"), "2026-01-31", "none", 1_000 + at));
    let rows: Vec<SpendRow> = apps.collect();
    let page = page(
        Ok(&figures(SpendFigure::Whole(document(rows)))),
        Some(&Totals::default()),
    );
    let words = words(&page);
    assert!(
        words.contains("app-199 ") && !words.contains("app-100 "),
        "{words}"
    );
    assert!(words.contains("180 more $0.196110"), "{words}");
    assert!(page.len() < 100_000, "{} bytes", page.len());
}

/// A bar is as long as its day's share of the highest, and one of a micro-dollar is still seen.
#[test]
fn the_parts_of_a_bar_make_its_length() {
    let rows = vec![
        row("web", "2026-01-30", "none", 750),
        row("nightly", "2026-01-30", "none", 250),
        row("web", "2026-01-31", "none", 1),
    ];
    let page = page(
        Ok(&figures(SpendFigure::Whole(document(rows)))),
        Some(&Totals::default()),
    );
    for part in [
        "class=\"c0\" x=\"562\" y=\"24\" width=\"16\" height=\"72\"",
        "class=\"c1\" x=\"562\" y=\"0\" width=\"16\" height=\"24\"",
        "class=\"c0\" x=\"582\" y=\"95\" width=\"16\" height=\"1\"",
        "<title>2026-01-30: $0.001000</title>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn the_policy_has_the_hashes_of_the_script_and_the_style_and_no_others() {
    let page = page(Err("none"), None);
    let of = |tag: &str| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let inside = page.split(&open).nth(1).expect(tag);
        let inside = inside.split(&close).next().expect(tag);
        let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
        let sha_256 = suite.tls13().expect("TLS 1.3").common.hash_provider;
        STANDARD.encode(sha_256.hash(inside.as_bytes()).as_ref())
    };
    for (tag, directive) in [("script", "script-src"), ("style", "style-src")] {
        let wanted = format!("; {directive} 'sha256-{}';", of(tag));
        assert!(POLICY.contains(&wanted), "wanted in POLICY: {wanted}");
    }
    for none in ["unsafe", "http", "*", "data:"] {
        assert!(!POLICY.contains(none), "{none}");
    }
    assert!(!page.contains(" style="), "inline");
}

#[test]
fn an_entrys_page_has_what_explain_prints_and_no_key() {
    let explained = json!({
        "found_by": "id", "purchase": null, "candidates": [], "more": false,
        "entries": [explained()],
    });
    let explanation: crate::admin::explain::Explanation =
        serde_json::from_value(explained).expect("an explanation");
    let html = entry::render(&explanation.without_keys(), NOW_MS, &TimeZone::UTC).expect("a page");
    let id = sample::entry(&json!({})).id;
    for part in [
        format!("<h1>Entry {id}</h1>"),
        "a &lt;b&gt; reason".to_owned(),
        "not shown on a port".to_owned(),
    ] {
        assert!(html.contains(&part), "{part}: {html}");
    }
    assert!(!html.contains("<script"));
    let none = crate::admin::explain::Explanation::new(&Default::default());
    assert!(entry::render(&none, NOW_MS, &TimeZone::UTC).is_none());
    assert!(entry::missing().contains("No such entry"));
}

fn explained() -> serde_json::Value {
    let mut members = sample::members();
    members.remove("was");
    for (name, value) in [
        ("why", json!("a <b> reason")),
        ("what_would_settle", json!(null)),
        ("odd", json!([])),
    ] {
        members.insert(name.to_owned(), value);
    }
    members.into()
}

#[test]
fn figures_that_took_long_are_good_for_longer() {
    let read = Ok(figures(SpendFigure::BeingAddedUp));
    for (took_ms, good_ms) in [
        (0, 2_000),
        (50, 2_000),
        (500, 10_000),
        (600_000, 12_000_000),
    ] {
        let good = figures_good_for(&read, Duration::from_millis(took_ms));
        assert_eq!(good, Duration::from_millis(good_ms), "{took_ms}");
    }
    let failed = Err("busy".to_owned());
    assert_eq!(
        figures_good_for(&failed, Duration::from_secs(9)),
        Duration::ZERO
    );
}
