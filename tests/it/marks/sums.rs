//! Sums by session, user and tag: from the command line, and on `/metrics`.

use serde_json::Value;

use crate::support::daemon::{Daemon, command};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Sandbox, Step, chat};

use super::{CHAT, SESSION, buy};

const APP: &str = "[[app]]\nname = \"default\"\nuser_header = \"X-End-User\"\n\
                   tags = [\"customer\", \"feature\"]\ntag_metrics = [\"customer=acme\"]\n";

async fn printed(bursar: &Bursar, arguments: &[&str]) -> String {
    let state = bursar.state_dir();
    let state = ["--state-dir", state.to_str().expect("a path")];
    let done = command(&[arguments, &state].concat())
        .output()
        .await
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{arguments:?}: {said}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// The words of each row and what was billed, with the total.
async fn spend(bursar: &Bursar, by: &str) -> (Vec<(String, u64)>, u64) {
    let text = printed(bursar, &["spend", "--json", "--by", by]).await;
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    let row = |row: &Value| {
        let word = row[by].as_str().expect("a word").to_owned();
        (word, row["billed_micro_usd"].as_u64().expect("an amount"))
    };
    let total = document["billed_micro_usd"].as_u64().expect("a total");
    (rows.iter().map(row).collect(), total)
}

async fn ledger() -> Bursar {
    let prices = [10, 20, 30, 40];
    let answers = prices.map(|price| Step::Answer(billed(price)));
    let origin = Origin::start(answers).await;
    let bursar = Bursar::with(&origin.url(), APP).await;
    let marks = [
        vec![
            ("X-End-User", "ann"),
            ("X-Bursar-Tags", "customer=acme,feature=rag"),
            ("session-id", SESSION),
        ],
        vec![("X-End-User", "bob"), ("X-Bursar-Tags", "customer=beta")],
        vec![("X-End-User", "ann"), ("session-id", SESSION)],
        vec![],
    ];
    for (number, marks) in marks.iter().enumerate() {
        buy(&bursar, CHAT, &chat(&number.to_string()), marks).await;
    }
    bursar
}

#[tokio::test]
async fn each_way_of_summing_adds_up_to_the_total() {
    let bursar = ledger().await;
    let entries = bursar.settled(4).await;
    let session = entries[0].session.expect("a session").to_string();
    for (by, wanted) in [
        ("user", vec![("ann", 40), ("bob", 20), ("none", 40)]),
        (
            "tag:customer",
            vec![("acme", 10), ("beta", 20), ("none", 70)],
        ),
        ("tag:feature", vec![("none", 90), ("rag", 10)]),
        ("tag:nobody_sends_it", vec![("none", 100)]),
        ("session", vec![(session.as_str(), 40), ("none", 60)]),
    ] {
        let (rows, total) = spend(&bursar, by).await;
        let rows: Vec<(&str, u64)> = rows
            .iter()
            .map(|(word, sum)| (word.as_str(), *sum))
            .collect();
        assert_eq!(rows, wanted, "{by}");
        assert_eq!(total, 100, "{by}");
    }
    let csv = printed(&bursar, &["spend", "--csv", "--by", "tag:customer,user"]).await;
    let mut lines = csv.lines();
    let head = lines.next().expect("a head");
    assert!(
        head.starts_with("tag:customer,user,requests,billed_micro_usd"),
        "{head}"
    );
    assert!(csv.contains("\nacme,ann,1,10,"), "{csv}");
    let text = printed(&bursar, &["spend", "--by", "tag:customer"]).await;
    assert!(
        text.contains("tag:customer") && text.contains("acme"),
        "{text}"
    );
}

#[tokio::test]
async fn a_session_is_found_by_its_id_and_explained() {
    let bursar = ledger().await;
    let entries = bursar.settled(4).await;
    let shown = entries[0].session.expect("a session").to_string();
    for text in [SESSION, &shown, "e2d73f0a"] {
        let lines = printed(&bursar, &["receipts", "--json", "--session", text]).await;
        assert_eq!(lines.lines().count(), 2, "{text}");
        let listed = printed(&bursar, &["receipts", "--session", text]).await;
        assert!(listed.contains("2 shown"), "{text}: {listed}");
        let explained = printed(&bursar, &["explain", "--session", text]).await;
        assert!(
            explained.contains("billed $0.000040 in 2 requests"),
            "{text}: {explained}"
        );
        assert!(
            explained.contains(&format!("{shown} of default")),
            "{explained}"
        );
    }
    let one = entries[0].id.to_string();
    let explained = printed(&bursar, &["explain", &one]).await;
    for part in [shown.as_str(), "ann", "customer=acme,feature=rag"] {
        assert!(explained.contains(part), "{part:?} is not in {explained}");
    }
}

#[tokio::test]
async fn metrics_have_the_values_that_are_listed_and_survive_a_restart() {
    let mut bursar = ledger().await;
    bursar.settled(4).await;
    for _ in 0..2 {
        let family = "bursar_tag_customer_billed_usd_total";
        for (value, usd) in [("acme", 0.00001), ("other", 0.00002), ("none", 0.00007)] {
            let labels = format!("value=\"{value}\"");
            assert_eq!(bursar.metric(family, &labels), usd, "{value}");
        }
        let text = bursar.metrics_text();
        assert!(!text.contains("bursar_tag_feature"), "it lists no value");
        assert!(!text.contains("\"ann\"") && !text.contains("\"beta\""));
        bursar = bursar.restart(APP).await;
    }
}

#[tokio::test]
async fn a_status_line_has_the_sum_of_its_session() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&sandbox.url(), &directory.path().join("state"), &[]).await;
    for headers in [vec![("X-Claude-Code-Session-Id", SESSION)], vec![]] {
        let mut wire = daemon.connect().await;
        let body = chat(&format!("what is {} + 1?", headers.len()));
        wire.send(request("POST", CHAT, &headers, &body)).await;
        assert_eq!(wire.answer().await.status, 200);
    }
    let of_session = sandbox.debits().await[0]["amount_micro_usd"].clone();
    for (asked, wanted) in [(SESSION, of_session.clone()), ("unheard-of", Value::Null)] {
        let line = daemon
            .admin_page(&format!("/api/line?session={asked}"))
            .await
            .json();
        assert_eq!(line["session_micro_usd"], wanted, "{line}");
    }
    let of_app = format!("/api/line?app=default&session={SESSION}");
    let line = daemon.admin_page(&of_app).await.json();
    assert_eq!(line["session_micro_usd"], of_session, "{line}");
    daemon.terminate().await;
}
