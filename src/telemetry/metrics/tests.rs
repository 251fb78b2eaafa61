mod page;

use std::sync::Arc;

use super::*;
use crate::ledger::entry::{Anomaly, InDoubt};
use crate::ledger::totals::{Compared, LineKey, LineSums, MicroUsdSum, ReceiptKind, Standing};
use crate::protocol::translate::Dropped;
use crate::protocol::{Dialect, Escalated, Lane, ServedBy};

const TURN: TimedAs = TimedAs {
    lane: Lane::Agent,
    operation: Operation::AgentTurn,
    stream: true,
};

fn line(app: &str, served_by: Option<ServedBy>) -> LineKey {
    LineKey {
        app: Arc::from(app),
        lane: Lane::Inference,
        operation: Operation::Chat,
        served_by,
    }
}

fn billed(micro_usd: u64) -> LineSums {
    LineSums {
        billed: MicroUsd::new(micro_usd).into(),
        ..LineSums::default()
    }
}

fn healthy() -> LedgerHealth {
    LedgerHealth {
        unavailable: None,
        last_commit_ms: Some(1_700_000_000_050),
        commits: 3,
        journal_bytes: 4096,
        index_lag_records: 0,
        heartbeat_age: Duration::ZERO,
        index_rebuilds: 0,
        quarantined: 0,
        keys_dropped: 0,
        is_adding_up: false,
        serves_unwritten: false,
        waiting: 0,
        dropped: 0,
    }
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|have| have == line)
}

/// Rule I10: a sum that is not whole yet is absent, and never lower than it was.
#[test]
fn i10_while_the_journal_is_added_up_its_counters_are_absent() {
    let metrics = Metrics::new().unwrap();
    let mut totals = Totals::default();
    totals.extend([(&line("agent", None), &billed(5))]);
    let health = LedgerHealth {
        is_adding_up: true,
        ..healthy()
    };

    let text = metrics.render(&totals, &health).unwrap();

    for name in [
        "bursar_billed_usd_total",
        "bursar_answers_total",
        "bursar_in_doubt_requests",
    ] {
        assert!(!text.contains(name), "{name}");
        assert!(metrics.render(&totals, &healthy()).unwrap().contains(name));
    }
    assert!(has_line(&text, "bursar_ledger_writable 1"));
}

#[test]
fn money_on_metrics_is_the_ledgers_to_the_last_digit() {
    let metrics = Metrics::new().unwrap();
    let mut totals = Totals::default();
    // 2^53 + 1 micro-USD cannot be held by an f64.
    totals.extend([(
        &line("agent", Some(ServedBy::Frontier)),
        &billed(9_007_199_254_740_993),
    )]);
    totals.extend([(&line("ci", None), &billed(1))]);
    let drained = LineSums {
        drained: MicroUsd::new(9_007_199_254_740_993).into(),
        ..LineSums::default()
    };
    totals.extend([(&line("ci", None), &drained)]);

    let text = metrics.render(&totals, &healthy()).unwrap();

    for line in [
        "bursar_billed_usd_total{app=\"agent\",lane=\"inference\",operation=\"chat\",\
         served_by=\"frontier\"} 9007199254.740993",
        "bursar_billed_usd_total{app=\"ci\",lane=\"inference\",operation=\"chat\",\
         served_by=\"unknown\"} 0.000001",
        "bursar_drained_usd_total 9007199254.740993",
    ] {
        assert!(has_line(&text, line), "{line}\n{text}");
    }
}

#[test]
fn apps_past_the_limit_are_one_series_and_no_money_is_lost() {
    let metrics = Metrics::new().unwrap();
    let mut totals = Totals::default();
    for app in 0..APPS_MAX + 3 {
        totals.extend([(&line(&format!("app-{app:03}"), None), &billed(5))]);
    }

    let text = metrics.render(&totals, &healthy()).unwrap();

    let other = "bursar_billed_usd_total{app=\"other\",lane=\"inference\",operation=\"chat\",\
                 served_by=\"unknown\"} 0.000015";
    assert!(has_line(&text, other), "{text}");
    let series = text
        .lines()
        .filter(|line| line.starts_with("bursar_billed_usd_total{"));
    assert_eq!(series.count(), APPS_MAX + 1);
}

#[test]
fn an_app_of_today_keeps_its_name_beside_any_number_of_removed_ones() {
    let metrics = Metrics::new().unwrap();
    metrics.name_apps(["web"]);
    let mut totals = Totals::default();
    for app in 0..APPS_MAX {
        totals.extend([(&line(&format!("job-{app:03}"), None), &billed(5))]);
    }
    totals.extend([(&line("web", None), &billed(7))]);

    let text = metrics.render(&totals, &healthy()).unwrap();

    let web = "bursar_billed_usd_total{app=\"web\",lane=\"inference\",operation=\"chat\",\
               served_by=\"unknown\"} 0.000007";
    assert!(has_line(&text, web), "{text}");
}

#[test]
fn what_is_not_known_is_counted_and_never_summed() {
    let metrics = Metrics::new().unwrap();
    let mut row = LineSums::default();
    row.in_doubt
        .insert(InDoubt::Crash, Standing { came: 3, left: 1 });
    row.unreported = Standing { came: 2, left: 0 };
    let mut totals = Totals::default();
    totals.extend([(&line("agent", None), &row)]);
    let mut speech = line("agent", None);
    speech.operation = Operation::Speech;
    let row = LineSums {
        audio_ms: 61_005,
        ..LineSums::default()
    };
    totals.extend([(&speech, &row)]);

    let text = metrics.render(&totals, &healthy()).unwrap();

    for line in [
        "bursar_in_doubt_requests{app=\"agent\",reason=\"crash\"} 2",
        "bursar_in_doubt_requests{app=\"agent\",reason=\"client_gone\"} 0",
        "bursar_unreported_requests{operation=\"chat\"} 2",
        "bursar_audio_seconds_total{operation=\"speech\"} 61.005",
        "bursar_journal_last_commit_timestamp_seconds 1700000000.050",
    ] {
        assert!(has_line(&text, line), "{line}\n{text}");
    }
}

#[test]
fn what_the_ledger_counts_is_its_own_figure_and_nothing_is_lost_by_a_second_process() {
    let mut totals = Totals::default();
    let mut row = LineSums {
        prompt_tokens: 12,
        clarifications: 2,
        replays: 3,
        adopted: 4,
        ..LineSums::default()
    };
    row.answers.insert(Escalated::Unknown, 5);
    totals.extend([(&line("agent", None), &row)]);
    let mut stream = line("agent", None);
    stream.operation = Operation::Embeddings;
    totals.extend([(&stream, &row)]);
    totals.globals.receipts.insert(ReceiptKind::Sse, 6);
    totals
        .globals
        .anomalies
        .insert(Anomaly::SecondAmountForKey, 7);
    totals.globals.specialists.insert("extract".to_owned(), 8);

    let texts = [(); 2].map(|()| Metrics::new().unwrap().render(&totals, &healthy()).unwrap());

    for text in &texts {
        for line in [
            "bursar_answers_total{app=\"agent\",escalated=\"unknown\",lane=\"inference\",\
             served_by=\"unknown\"} 10",
            "bursar_tokens_total{lane=\"inference\",type=\"input\"} 24",
            "bursar_clarifications_total 4",
            "bursar_idempotent_replays_total 6",
            "bursar_adopted_retries_total 8",
            "bursar_receipts_total{source=\"sse\"} 6",
            "bursar_receipts_total{source=\"missing\"} 0",
            "bursar_receipt_anomalies_total{kind=\"second_amount_for_key\"} 7",
            "bursar_specialist_answers_total{category=\"extract\"} 8",
            "bursar_tokens_total{lane=\"inference\",type=\"output\"} 0",
        ] {
            assert!(has_line(text, line), "{line}\n{text}");
        }
    }
}

#[test]
fn every_event_has_its_counter() {
    let metrics = Metrics::new().unwrap();

    metrics.request("agent", TURN, 200, &RequestTimes::default());
    metrics.attempt(Operation::Chat, "ok");
    metrics.retry("agent", "busy");
    metrics.refusal("agent", "cap_reached");
    metrics.joined();
    let mut dropped = Dropped::default();
    dropped.add("top_k");
    dropped.add("cache_control");
    dropped.add("cache_control");
    metrics.translated(Dialect::Messages, &dropped);
    metrics.repeats_avoided(MicroUsd::new(9_007_199_254), 2);
    metrics.drain("complete");
    metrics.disconnect("body");
    metrics.route_version("r-1");
    metrics.route_version("r-2");
    metrics.reloads.count(false, 1_700_000_000_500);
    metrics.evidence.eval_run_look("busy");
    let before = metrics.render(&Totals::default(), &healthy()).unwrap();
    assert!(!before.contains("\nbursar_reconcile_difference_usd "));
    metrics.evidence.reconciled(ComparisonResult::Unexplained);
    metrics.evidence.differs(Difference {
        micro_usd: -1_000_001,
        unexplained: MicroUsdSum::from_micro_usd(1_000_000),
        unbounded: MicroUsdSum::from_micro_usd(2_000_000),
        at_ms: 1_700_000_000_250,
    });
    let _in_flight = metrics.in_flight();
    drop(metrics.in_flight());
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    for line in [
        "bursar_requests_total{app=\"agent\",lane=\"agent\",operation=\"agent_turn\",status=\"200\",\
         stream=\"true\"} 1",
        "bursar_upstream_attempts_total{operation=\"chat\",result=\"ok\"} 1",
        "bursar_retries_total{app=\"agent\",reason=\"busy\"} 1",
        "bursar_refusals_total{app=\"agent\",error=\"cap_reached\"} 1",
        "bursar_joined_retries_total 1",
        "bursar_translated_requests_total{spoken=\"messages\"} 1",
        "bursar_translated_requests_total{spoken=\"responses\"} 0",
        "bursar_translated_requests_total{spoken=\"openai_audio\"} 0",
        "bursar_translation_dropped_total{member=\"cache_control\",spoken=\"messages\"} 2",
        "bursar_repeats_avoided_usd_estimate_total 18014.398508",
        "bursar_drained_usd_total 0.000000",
        "bursar_drains_total{result=\"complete\"} 1",
        "bursar_client_disconnects_total{phase=\"body\"} 1",
        "bursar_route_version_info{route_version=\"r-2\"} 1",
        "bursar_config_reloads_total{result=\"refused\"} 1",
        "bursar_config_last_reload_successful 0",
        "bursar_config_last_reload_timestamp_seconds 1700000000.500",
        "bursar_config_reloads_total{result=\"ok\"} 0",
        "bursar_eval_run_looks_total{result=\"busy\"} 1",
        "bursar_reconciliations_total{result=\"unexplained\"} 1",
        "bursar_reconciliations_total{result=\"failed\"} 0",
        "bursar_reconcile_difference_usd -1.000001",
        "bursar_reconcile_unexplained_usd 1.000000",
        "bursar_reconcile_unbounded_usd 2.000000",
        "bursar_reconcile_timestamp_seconds 1700000000.250",
        "bursar_config_keys_waiting_for_restart 0",
        "bursar_inflight_requests 1",
        "bursar_ledger_writable 1",
    ] {
        assert!(has_line(&text, line), "{line}\n{text}");
    }
    assert!(
        !text.contains("r-1"),
        "only the last route version is shown"
    );
}

#[test]
fn histograms_have_the_buckets_that_dashboards_ask_for() {
    let metrics = Metrics::new().unwrap();
    let times = RequestTimes {
        total: Duration::from_millis(1500),
        first_byte: Some(Duration::from_millis(40)),
        own: Duration::from_micros(300),
    };

    metrics.request("agent", TURN, 200, &times);
    metrics.journal_commit(Duration::from_micros(300));
    metrics.waited("agent", Duration::from_secs(45));
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    let long = "0.05 0.1 0.25 0.5 1 2 5 10 30 60 120 300 600 +Inf";
    let short = "0.00005 0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf";
    for (name, buckets, first_full) in [
        ("bursar_request_duration_seconds", long, "2"),
        ("bursar_time_to_first_byte_seconds", long, "0.05"),
        ("bursar_queue_wait_seconds", long, "60"),
        ("bursar_overhead_seconds", short, "0.0005"),
        ("bursar_journal_commit_seconds", short, "0.0005"),
    ] {
        let begin = format!("{name}_bucket{{");
        let lines = text.lines().filter(|line| line.starts_with(&begin));
        let bucket = |line: &str| {
            let (_, bucket) = line.rsplit_once("le=\"").expect("a bucket");
            let (le, count) = bucket.split_once("\"} ").expect("a count");
            (le.to_owned(), count != "0")
        };
        let found: Vec<_> = lines.map(bucket).collect();
        let names: Vec<_> = found.iter().map(|(le, _)| le.as_str()).collect();
        assert_eq!(names.join(" "), buckets, "{name}");
        let full = found.iter().find(|(_, is_full)| *is_full);
        assert_eq!(full.map(|(le, _)| le.as_str()), Some(first_full), "{name}");
    }
    let labels = "{app=\"agent\",lane=\"agent\",operation=\"agent_turn\",stream=\"true\"}";
    for name in ["request_duration", "time_to_first_byte", "overhead"] {
        let line = format!("bursar_{name}_seconds_count{labels} 1");
        assert!(has_line(&text, &line), "{line}\n{text}");
    }
}

#[test]
fn a_limit_that_is_not_set_is_absent_and_never_0() {
    let metrics = Metrics::new().unwrap();
    let limits = ["bursar_concurrency_limit", "bursar_rate_limit_per_minute"];
    let shown = |metrics: &Metrics| {
        let text = metrics.render(&Totals::default(), &healthy()).unwrap();
        limits.map(|name| {
            let mut lines = text.lines();
            let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map(str::to_owned)
        })
    };

    assert_eq!(shown(&metrics), [None, None]);
    metrics.traffic.show(0, 0, Some(8), Some(120));
    assert_eq!(
        shown(&metrics),
        [Some("8".to_owned()), Some("120".to_owned())]
    );
    metrics.traffic.show(0, 0, None, Some(0));
    assert_eq!(shown(&metrics), [None, Some("0".to_owned())]);
}

#[test]
fn what_the_fleet_lacks_is_absent_until_a_visit_has_shown_it() {
    let metrics = Metrics::new().unwrap();
    for (lines_behind, wanted) in [(None, None), (Some(3), Some("3"))] {
        metrics.fleet.show(&FleetFigures {
            lines_behind,
            ..FleetFigures::default()
        });
        let text = metrics.render(&Totals::default(), &healthy()).unwrap();
        let mut lines = text.lines();
        let shown = lines.find_map(|line| line.strip_prefix("bursar_fleet_lines_behind "));
        assert_eq!(shown, wanted, "{text}");
    }
}

/// Savings are compared over the same answers, whatever else was billed.
#[test]
fn what_is_compared_is_summed_over_the_answers_with_both_prices() {
    let metrics = Metrics::new().unwrap();
    let mut totals = Totals::default();
    let mut both = billed(5);
    both.would_have_cost = MicroUsd::new(9_007_199_254_740_993).into();
    both.compared = Compared::one(MicroUsd::new(5), MicroUsd::new(9_007_199_254_740_993));
    totals.extend([(&line("agent", None), &both)]);
    let mut image = line("agent", None);
    image.operation = Operation::ImageGeneration;
    totals.extend([(&image, &billed(1_000_000))]);

    let text = metrics.render(&totals, &healthy()).unwrap();

    let labels = "{app=\"agent\",lane=\"inference\",operation=\"chat\"}";
    for (name, usd) in [
        ("bursar_compared_billed_usd_total", "0.000005"),
        ("bursar_compared_frontier_usd_total", "9007199254.740993"),
    ] {
        let line = format!("{name}{labels} {usd}");
        assert!(has_line(&text, &line), "{line}\n{text}");
        let begin = format!("{name}{{");
        let series = text.lines().filter(|line| line.starts_with(&begin));
        assert_eq!(series.count(), 1, "an image has no second price\n{text}");
    }
}

/// A series that only appears with its first event hides that event from `increase()`.
#[test]
fn closed_label_sets_without_an_app_are_there_from_the_start() {
    let metrics = Metrics::new().unwrap();
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    for line in [
        "bursar_upstream_attempts_total{operation=\"embeddings\",result=\"429\"} 0",
        "bursar_drains_total{result=\"displaced\"} 0",
        "bursar_client_disconnects_total{phase=\"waiting\"} 0",
        "bursar_tokens_total{lane=\"agent\",type=\"output\"} 0",
        "bursar_receipts_total{source=\"missing\"} 0",
        "bursar_receipt_anomalies_total{kind=\"malformed\"} 0",
        "bursar_unreported_requests{operation=\"agent_turn\"} 0",
        "bursar_audio_seconds_total{operation=\"transcription\"} 0.000",
        "bursar_eval_run_looks_total{result=\"over\"} 0",
        "bursar_reconciliations_total{result=\"equal\"} 0",
        "bursar_breaker_open{cause=\"key\"} 0",
        "bursar_config_reloads_total{result=\"ok\"} 0",
    ] {
        assert!(has_line(&text, line), "{line}\n{text}");
    }
}

#[test]
fn the_process_is_shown_by_the_names_that_dashboards_for_processes_have() {
    let metrics = Metrics::new().unwrap();
    metrics.started(1_700_000_000_250);
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    assert!(has_line(&text, "process_start_time_seconds 1700000000.250"));
    for name in [
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_threads",
    ] {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value: f64 = value.expect(name).parse().expect(name);
        assert!(value > 0.0, "{name} {value}");
    }
}
