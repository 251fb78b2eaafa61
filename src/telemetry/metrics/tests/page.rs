//! Every family of `/metrics` as a page, `docs/metrics.md`, read from the text that Prometheus reads: all that
//! can happen has happened once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::*;
use crate::caps::{CapView, CapsView, FrozenView, Period, SharedCapView};
use crate::config::{ALL_APPS, App, TagValue};
use crate::generated::{cell, must_be};

const HEAD: &str = "\
# Metrics

Written from the code (`src/telemetry/metrics.rs` and the files beside it) by `make docs`; a test holds the two equal.

`GET /metrics` on the admin listener (`127.0.0.1:8328`) needs no token and costs nothing: Prometheus scrapes it as it
is. [grafana/](../grafana/README.md) has a dashboard, alerts and a scrape configuration, and
[runbook.md](runbook.md) says what to do when one fires.

* **Money** is an exact decimal of the ledger's integers. What is counted \"over the whole life of the ledger\" is read from
  the ledger at each scrape: it survives restarts, upgrades and kills, so `sum(bursar_billed_usd_total)` is the
  ledger's sum, to the micro-dollar. All other counters begin at 0 with the process, as `rate()` and `increase()` expect.
* **While a long journal is added up** after a start, the ledger's families are absent, not lower; see `/readyz`.
* **What is not known** has a gauge (`bursar_in_doubt_requests`, `bursar_unreported_requests`) and is in no sum. Estimates
  have families of their own.
* **Absent is not 0.** A limit, a cap, a freeze or a comparison that there is not has no sample. Label sets without `app`
  whose values are known are there from the start with 0.
* **Sums over apps** count nothing twice: what holds for all apps together is in `bursar_total_…`.
* **The first money of an app**, or of an operation, begins a series, and `increase()` does not see the value with which a
  series begins. As these counters never fall, what was spent in a range is also their difference: the dashboard's
  panel \"Spent in this range\" takes it, and with it series that began within the range on a bursar that was scraped before.
* **Savings** over a week, over the answers that reported both prices:
  `sum(increase(bursar_compared_frontier_usd_total[7d])) - sum(increase(bursar_compared_billed_usd_total[7d]))`.
* **Escalation**: streams do not report it (`escalated=\"unknown\"`); they do report `served_by`.

## Labels

A label means the same in every metric.

| label | meaning |
|---|---|
";

/// The one meaning of each label.
const LABELS: [(&str, &str); 27] = [
    (
        "app",
        "the app's name, for 64 apps, those of today first, and for 64 more that are added while bursar runs; `other`: further ones, and what is refused before its app is known",
    ),
    (
        "lane",
        "the surface of the service: `inference`, `agent`, `control`",
    ),
    (
        "cap",
        "a cap that many machines share, by its name in the fleet",
    ),
    ("operation", "what the request asks for, such as `chat`"),
    (
        "value",
        "a value of a tag, as [[app]] tag_metrics lists it; `other`: any that it does not list; `none`: without the tag",
    ),
    ("stream", "whether the answer is a stream"),
    (
        "status",
        "the HTTP status that the app got; 499: it had left",
    ),
    (
        "error",
        "a code of [errors.md](errors.md): bursar answered by itself",
    ),
    ("served_by", "the kind of model, as the answer reports it"),
    (
        "escalated",
        "whether a specialist's answer was followed by a frontier model's",
    ),
    ("result", "how it ended"),
    ("reason", "why"),
    ("cause", "what the breaker holds requests back for"),
    ("phase", "how far the answer was when its app left"),
    ("source", "where the price was found"),
    ("kind", "what contradicts what"),
    ("type", "`input` or `output` tokens"),
    (
        "spoken",
        "the dialect of a translated request: `responses`, `messages`, or `openai_audio`, which is OpenAI's form of the speech routes",
    ),
    (
        "member",
        "what was left out, by its name in [dialects.md](dialects.md) or [audio.md](audio.md)",
    ),
    (
        "category",
        "the specialist's, as the service names it; the first 32, then `other`",
    ),
    ("period", "a cap's window: `hour`, `day` or `month`"),
    ("version", "bursar's version"),
    (
        "commit",
        "that it was built from; empty where the build did not know it",
    ),
    ("rustc", "the compiler's version"),
    ("sandbox", "whether the sandbox is in the program"),
    ("route_version", "the service's route version"),
    (
        "connection",
        "to the service: `kept` from earlier requests, or `new`",
    ),
];

/// What is listed of a family's values, because they are a closed set that only this family has.
const LISTED: [&str; 9] = [
    "result",
    "reason",
    "cause",
    "phase",
    "source",
    "kind",
    "type",
    "escalated",
    "connection",
];

/// A heading, and the families below it by the beginning of their names.
const SECTIONS: [(&str, &[&str]); 10] = [
    (
        "Money",
        &[
            "bursar_billed_",
            "bursar_compared_",
            "bursar_frontier_",
            "bursar_drained_",
            "bursar_repeats_",
            "bursar_tag_",
        ],
    ),
    (
        "What has no price",
        &["bursar_in_doubt_", "bursar_unreported_", "bursar_audio_"],
    ),
    (
        "Caps and freezes",
        &["bursar_cap_", "bursar_total_", "bursar_frozen"],
    ),
    (
        "Requests and answers",
        &[
            "bursar_requests_",
            "bursar_refusals_",
            "bursar_translat",
            "bursar_answers_",
            "bursar_clarifications_",
            "bursar_specialist_",
            "bursar_tokens_",
            "bursar_receipt",
            "bursar_client_",
            "bursar_drains_",
            "bursar_inflight_",
        ],
    ),
    (
        "Retries",
        &[
            "bursar_retries_",
            "bursar_upstream_attempts_",
            "bursar_joined_",
            "bursar_adopted_",
            "bursar_idempotent_",
        ],
    ),
    (
        "Time",
        &[
            "bursar_request_duration_",
            "bursar_time_",
            "bursar_overhead_",
            "bursar_queue_wait_",
        ],
    ),
    (
        "Limits of the service",
        &[
            "bursar_queue_depth",
            "bursar_upstream_inflight_",
            "bursar_upstream_answers_",
            "bursar_request_body_",
            "bursar_concurrency_",
            "bursar_rate_",
            "bursar_breaker_",
        ],
    ),
    (
        "The ledger",
        &[
            "bursar_ledger_",
            "bursar_journal_",
            "bursar_index_",
            "bursar_keys_",
            "bursar_reconcil",
            "bursar_eval_",
        ],
    ),
    ("The fleet", &["bursar_fleet_"]),
    (
        "The process",
        &[
            "bursar_build_",
            "bursar_route_version_",
            "bursar_config_",
            "process_",
        ],
    ),
];

#[derive(Default)]
struct ListedFamily {
    help: String,
    kind: String,
    /// Label and values, in the order of the text.
    labels: Vec<(String, BTreeSet<String>)>,
    /// Of each series.
    buckets: Vec<String>,
}

/// Where everything has happened.
fn everything() -> String {
    let metrics = Metrics::new().unwrap();
    metrics.started(1);
    let key = "feature".parse().unwrap();
    let listed = TagValue {
        key,
        value: "search".to_owned(),
    };
    metrics.list_tags(&[App {
        tags: vec![key],
        tag_metrics: vec![listed],
        ..App::new("agent")
    }]);
    metrics.fleet.show(&FleetFigures {
        lines_behind: Some(0),
        heard_ms: Some(1),
        caught_up_ms: Some(1),
        ..FleetFigures::default()
    });
    metrics.request("agent", TURN, 200, &RequestTimes::default());
    for reason in [
        "not_sent",
        "no_head",
        "broken",
        "busy",
        "conflict",
        "transient",
    ] {
        metrics.retry("agent", reason);
    }
    metrics.refusal("agent", "cap_reached");
    let mut dropped = Dropped::default();
    dropped.add("top_k");
    metrics.translated(Dialect::Messages, &dropped);
    metrics.waited("agent", Duration::ZERO);
    metrics.route_version("r-1");
    metrics.traffic.show(0, 0, Some(8), Some(120));
    metrics.traffic.watch_bodies(|| 0);
    metrics.reloads.count(true, 1);
    metrics.evidence.differs(Difference {
        micro_usd: 0,
        unexplained: MicroUsdSum::default(),
        unbounded: MicroUsdSum::default(),
        at_ms: 1,
    });
    let mut row = billed(5);
    row.compared = Compared::one(MicroUsd::new(5), MicroUsd::new(9));
    for escalated in Escalated::ALL {
        row.answers.insert(*escalated, 1);
    }
    let mut totals = Totals::default();
    totals.extend([(&line("agent", None), &row)]);
    totals.globals.specialists.insert("extract".to_owned(), 8);
    let mut text = Exposition::after(metrics.render(&totals, &healthy()).unwrap());
    let cap = |scope: &str| CapView {
        scope: scope.to_owned(),
        period: Period::Day,
        limit: MicroUsd::new(1),
        configured: MicroUsd::new(1),
        spent: MicroUsdSum::default(),
        held: MicroUsdSum::default(),
        reserved: MicroUsdSum::default(),
        under_way: 0,
        left: MicroUsdSum::default(),
        worst_case: None,
        since_ms: 0,
        resets_at_ms: 1,
        refusals: 0,
    };
    let frozen = FrozenView {
        app: Some("agent".to_owned()),
        since_ms: 1,
        by: "test".to_owned(),
        fleet: false,
    };
    let shared = SharedCapView {
        cap: "team".to_owned(),
        period: None,
        time_zone: None,
        limit: None,
        charged: None,
        since_ms: None,
        resets_at_ms: None,
        state: "leased".to_owned(),
        leased: MicroUsd::new(1),
        spent: MicroUsdSum::default(),
        held: MicroUsdSum::default(),
        reserved: MicroUsdSum::default(),
        under_way: 0,
        open: MicroUsdSum::default(),
        ends_in_ms: Some(1),
        ahead: MicroUsdSum::default(),
        dearest: None,
        refusals: 0,
        reached: 0,
    };
    let view = CapsView {
        caps: vec![cap("agent"), cap(ALL_APPS)],
        shared: vec![shared],
        frozen: vec![frozen],
        ..CapsView::default()
    };
    caps::write(&mut text, &view);
    text.into_text()
}

fn families() -> BTreeMap<String, ListedFamily> {
    let mut families: BTreeMap<String, ListedFamily> = BTreeMap::new();
    let mut name = String::new();
    for line in everything().lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (of, help) = help.split_once(' ').unwrap();
            of.clone_into(&mut name);
            help.clone_into(&mut families.entry(name.clone()).or_default().help);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (_, kind) = kind.split_once(' ').unwrap();
            kind.clone_into(&mut families.get_mut(&name).unwrap().kind);
        } else {
            let family = families.get_mut(&name).unwrap();
            let (sample, _) = line.rsplit_once(' ').unwrap();
            let Some((_, labels)) = sample.split_once('{') else {
                continue;
            };
            for label in labels.trim_end_matches('}').split("\",") {
                let (label, value) = label.split_once("=\"").unwrap();
                let value = value.trim_end_matches('"').to_owned();
                match family.labels.iter_mut().find(|(name, _)| name == label) {
                    _ if label == "le" => family.buckets.push(value),
                    Some((_, values)) => drop(values.insert(value)),
                    None => family.labels.push((label.to_owned(), [value].into())),
                }
            }
        }
    }
    families
}

fn row(name: &str, family: &ListedFamily) -> String {
    let labels: Vec<String> = family
        .labels
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let mut help = cell(&family.help);
    for (label, values) in &family.labels {
        if LISTED.contains(&label.as_str()) {
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let _ = write!(help, " {label}: {}.", values.join(", "));
        }
    }
    if let Some(last) = family.buckets.iter().position(|le| le == "+Inf") {
        let _ = write!(help, " Buckets: {} s.", family.buckets[..last].join(", "));
    }
    let labels = match labels.is_empty() {
        true => "-".to_owned(),
        false => labels.join(", "),
    };
    format!("| `{name}` | {} | {labels} | {help} |\n", family.kind)
}

#[test]
fn the_page_of_metrics_lists_each_family_with_its_labels_and_meaning() {
    let mut families = families();
    let mut page = HEAD.to_owned();
    for (label, meaning) in LABELS {
        let _ = writeln!(page, "| `{label}` | {meaning} |");
        let is_used = |family: &ListedFamily| family.labels.iter().any(|(name, _)| name == label);
        assert!(families.values().any(is_used), "{label} is on no family");
    }
    for (name, family) in &families {
        for (label, _) in &family.labels {
            let is_known = LABELS.iter().any(|(known, _)| known == label);
            assert!(is_known, "{name} has a label without a meaning: {label}");
        }
    }
    for (title, begins) in SECTIONS {
        let _ = write!(
            page,
            "\n## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
        );
        for begin in begins {
            let is_its = |name: &String, _: &mut ListedFamily| name.starts_with(begin);
            let taken: Vec<_> = families.extract_if(.., is_its).collect();
            assert!(!taken.is_empty(), "no family begins with {begin}");
            for (name, family) in &taken {
                page.push_str(&row(name, family));
            }
        }
    }
    let left: Vec<_> = families.keys().collect();
    assert!(left.is_empty(), "in no section: {left:?}");
    must_be("metrics.md", &page);
}
