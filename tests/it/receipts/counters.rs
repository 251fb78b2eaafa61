//! The ledger's counts are on `/metrics` from the ledger alone: a restart takes nothing away (rule I10).

use super::*;
use crate::support::origin::json;

const BODY: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

/// The families that the ledger keeps beside money, and the value of each here.
const KEPT: [(&str, f64); 8] = [
    ("bursar_answers_total", 5.0),
    ("bursar_tokens_total", 35.0),
    ("bursar_receipts_total", 5.0),
    ("bursar_receipt_anomalies_total", 1.0),
    ("bursar_specialist_answers_total", 1.0),
    ("bursar_adopted_retries_total", 1.0),
    ("bursar_idempotent_replays_total", 1.0),
    ("bursar_clarifications_total", 1.0),
];

/// The samples of these families, in the order of the text.
fn kept(bursar: &Bursar) -> Vec<String> {
    let text = bursar.metrics_text();
    let is_kept = |line: &&str| KEPT.iter().any(|(family, _)| line.starts_with(family));
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_restart_keeps_every_counter_that_the_ledger_has() {
    let specialist = json(
        200,
        &[
            ("X-Service-Billed", "7"),
            ("X-Service-Served-By", "specialist"),
            ("X-Service-Specialist", "extract"),
            ("X-Service-Escalated", "false"),
        ],
        BODY,
    );
    let replay = json(
        200,
        &[("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")],
        BODY,
    );
    let question = json(
        200,
        &[
            ("X-Service-Billed", "0"),
            ("X-Service-Input-Required", "document"),
        ],
        BODY,
    );
    let second_amount = json(200, &[("X-Service-Billed", "9")], BODY);
    let adopted = json(200, &[("X-Service-Billed", "8")], BODY);
    let steps = [specialist, second_amount, replay, question].map(Step::Answer);
    let origin = Origin::start(steps).await;
    origin.push(Step::Close);
    origin.push(Step::Answer(adopted));
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    for _ in 0..3 {
        assert_eq!(ask_with_key(&bursar, "mine").await.status, 200);
    }
    assert_eq!(bursar.post(CHAT, &chat("which one?")).await.status, 200);
    assert_ne!(bursar.post(CHAT, &chat("again")).await.status, 200);
    assert_eq!(bursar.post(CHAT, &chat("again")).await.status, 200);
    bursar.settled(6).await;
    for (family, count) in KEPT {
        check_metric("before", &bursar, family, "", count);
    }
    let before = kept(&bursar);

    let bursar = bursar.restart(ONCE).await;

    assert_eq!(kept(&bursar), before);
    // And they continue from there.
    origin.push(Step::Answer(json(200, &[("X-Service-Billed", "5")], BODY)));
    assert_eq!(bursar.post(CHAT, &chat("more")).await.status, 200);
    check_metric("after", &bursar, "bursar_answers_total", "", 6.0);
}
