//! The door: who may come in, over real sockets.

use crate::support::{Bursar, Sandbox, chat};

#[tokio::test]
async fn a_json_call_is_relayed_and_its_receipt_is_in_the_ledger() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let answer = bursar
        .post("/v1/chat/completions", &chat("What is 2 + 3?"))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let billed: u64 = answer
        .header("x-service-billed")
        .expect("a receipt")
        .parse()
        .expect("an amount");
    let entries = bursar.settled(1).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0].billed_micro_usd.map(|billed| billed.get()),
        Some(billed)
    );
    assert_eq!(
        answer.header("x-bursar-entry"),
        Some(entries[0].id.0.to_string().as_str())
    );
    assert_eq!(sandbox.debited().await, billed);
}
