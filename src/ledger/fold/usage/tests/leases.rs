//! What leases of shared caps came to, over kills and older bursars.

use super::*;
use crate::ledger::entry::LeaseId;

fn lease() -> LeaseId {
    LeaseId(uuid::Uuid::from_u128(9))
}

async fn begin_on_lease(bench: &Bench, ledger: &Ledger) -> EntryId {
    let id = ledger.new_entry_id();
    let intent = Intent {
        reserved: Some(MicroUsd::new(50)),
        leases: [lease()].into_iter().collect(),
        ..intent(id, bench.now_ms(), Some(&id.to_string()))
    };
    ledger.intend(intent).await.unwrap();
    id
}

async fn buy_on_lease(bench: &Bench, ledger: &Ledger, receipt: Receipt) {
    let id = begin_on_lease(bench, ledger).await;
    let outcome = ended(id, AttemptEnd::Answered, receipt);
    ledger.settle(outcome).await.unwrap();
}

/// Billed and held.
fn of_lease(usage: &CapUsage) -> (u128, u128) {
    let charge = usage.leases.charged(lease());
    (charge.billed.get(), charge.held.now())
}

#[tokio::test]
async fn what_a_lease_came_to_is_known_after_a_kill_and_after_an_older_bursar() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy_on_lease(&bench, &ledger, billed(30)).await;
    buy_on_lease(&bench, &ledger, Receipt::default()).await;
    bench.buy(&ledger, 50, billed(7)).await;
    assert_eq!(of_lease(&bench.usage(&ledger)), (30, 50));
    let open = begin_on_lease(&bench, &ledger).await;
    let from_files = read(&bench.state_dir(), bench.now_ms()).unwrap();
    assert_eq!(of_lease(&from_files), (30, 100), "one is under way");
    kill_after_next(&ledger);
    let outcome = ended(open, AttemptEnd::Answered, billed(12));
    ledger.settle(outcome).await.unwrap();
    drop(ledger);
    let ledger = bench.open();
    assert_eq!(of_lease(&bench.usage(&ledger)), (42, 50));
    // Died before it ended: what is held for it is on the lease that its intent names.
    begin_on_lease(&bench, &ledger).await;
    drop(ledger);
    let ledger = bench.open();
    assert_eq!(of_lease(&bench.usage(&ledger)), (42, 100));
    ledger.close().await;

    let path = bench.state_dir().join("usage");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut body: serde_json::Value = serde_json::from_str(&text).unwrap();
    let members = body.as_object_mut().unwrap();
    assert!(members.remove("leases").is_some());
    members.remove("kind");
    members.remove("crc");
    let rest = serde_json::to_string(&body).unwrap();
    let mut older = format!(r#"{{"kind":"usage",{}"#, &rest[1..rest.len() - 1]).into_bytes();
    seal(0, &mut older);
    std::fs::write(&path, older).unwrap();
    let ledger = bench.open();
    assert_eq!(of_lease(&bench.usage(&ledger)), (42, 100));
    buy_on_lease(&bench, &ledger, billed(1)).await;
    assert_eq!(of_lease(&bench.usage(&ledger)), (43, 100));
}
