use std::sync::Arc;

use super::*;
use crate::ledger::entry::{Anomaly, InDoubt};
use crate::ledger::totals::{LineKey, LineSums, ReceiptKind, Standing};
use crate::money::MicroUsd;
use crate::protocol::{Escalated, ServedBy};

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
    totals.add_row(&line("agent", None), &billed(5));
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
    totals.add_row(
        &line("agent", Some(ServedBy::Frontier)),
        &billed(9_007_199_254_740_993),
    );
    totals.add_row(&line("ci", None), &billed(1));
    let drained = LineSums {
        drained: MicroUsd::new(9_007_199_254_740_993).into(),
        ..LineSums::default()
    };
    totals.add_row(&line("ci", None), &drained);

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
        totals.add_row(&line(&format!("app-{app:03}"), None), &billed(5));
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
fn what_is_not_known_is_counted_and_never_summed() {
    let metrics = Metrics::new().unwrap();
    let mut row = LineSums::default();
    row.in_doubt
        .insert(InDoubt::Crash, Standing { came: 3, left: 1 });
    row.unreported = Standing { came: 2, left: 0 };
    let mut totals = Totals::default();
    totals.add_row(&line("agent", None), &row);
    let mut speech = line("agent", None);
    speech.operation = Operation::Speech;
    let row = LineSums {
        audio_ms: 61_005,
        ..LineSums::default()
    };
    totals.add_row(&speech, &row);

    let text = metrics.render(&totals, &healthy()).unwrap();

    for line in [
        "bursar_in_doubt_requests{reason=\"crash\"} 2",
        "bursar_in_doubt_requests{reason=\"client_gone\"} 0",
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
    totals.add_row(&line("agent", None), &row);
    let mut stream = line("agent", None);
    stream.operation = Operation::Embeddings;
    totals.add_row(&stream, &row);
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
        ] {
            assert!(has_line(text, line), "{line}\n{text}");
        }
        assert!(
            !text.contains("type=\"output\""),
            "what was not reported is not counted"
        );
    }
}

#[test]
fn every_event_has_its_counter() {
    let metrics = Metrics::new().unwrap();

    metrics.request("agent", Lane::Agent, Operation::AgentTurn, true, 200);
    metrics.attempt(Operation::Chat, "ok");
    metrics.retry("busy");
    metrics.refusal("host_refused");
    metrics.joined();
    metrics.drain("complete");
    metrics.disconnect("body");
    metrics.route_version("r-1");
    metrics.route_version("r-2");
    metrics.reload(false);
    metrics.evidence.eval_run_look("busy");
    let before = metrics.render(&Totals::default(), &healthy()).unwrap();
    assert!(!before.contains("\nbursar_reconcile_difference_usd "));
    metrics.evidence.reconciled(Difference {
        micro_usd: -1_000_001,
        at_ms: 1_700_000_000_250,
    });
    let _in_flight = metrics.in_flight();
    drop(metrics.in_flight());
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    for line in [
        "bursar_requests_total{app=\"agent\",code=\"200\",lane=\"agent\",operation=\"agent_turn\",\
         stream=\"true\"} 1",
        "bursar_upstream_attempts_total{operation=\"chat\",result=\"ok\"} 1",
        "bursar_retries_total{reason=\"busy\"} 1",
        "bursar_refusals_total{code=\"host_refused\"} 1",
        "bursar_joined_retries_total 1",
        "bursar_drained_usd_total 0.000000",
        "bursar_drains_total{result=\"complete\"} 1",
        "bursar_client_disconnects_total{phase=\"body\"} 1",
        "bursar_route_version_info{version=\"r-2\"} 1",
        "bursar_config_reloads_total{result=\"refused\"} 1",
        "bursar_config_reloads_total{result=\"ok\"} 0",
        "bursar_eval_run_looks_total{result=\"busy\"} 1",
        "bursar_reconcile_difference_usd -1.000001",
        "bursar_reconcile_timestamp_seconds 1700000000.250",
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
fn histograms_reach_eleven_minutes_and_measure_microseconds() {
    let metrics = Metrics::new().unwrap();
    let millis = Duration::from_millis;

    metrics.timings(
        Lane::Inference,
        false,
        millis(5),
        Some(millis(4)),
        millis(1),
    );
    metrics.journal_commit(Duration::from_micros(300));
    let text = metrics.render(&Totals::default(), &healthy()).unwrap();

    for name in [
        "bursar_request_duration_seconds_bucket{lane=\"inference\",stream=\"false\",le=\"655.36\"} 1",
        "bursar_time_to_first_byte_seconds_bucket{lane=\"inference\",stream=\"false\",le=\"0.01\"} 1",
        "bursar_overhead_seconds_bucket{lane=\"inference\",le=\"655.36\"} 1",
        "bursar_journal_commit_seconds_bucket{le=\"0.0000390625\"} 0",
    ] {
        assert!(has_line(&text, name), "{name}\n{text}");
    }
}
