//! The bounds of evals, met by records that were written and not by hundreds of megabytes that were sent.

use super::{
    blobs::Blobs,
    records::{Created, Document, EvalRun, RunStatus},
    stored::{DOCUMENTS, RUNS, SETS},
    *,
};
use crate::{Options, money::MicroUsd, state::State, store::Written};
use bytes::Bytes;
use serde_json::json;

const ORG: &str = "org-1";
const MIB: u64 = 1024 * 1024;

fn new_set(rows: usize) -> NewSet {
    let row = json!({"input": {"question": "What?"}, "expected_output": {"answer": "A lamp"}});
    NewSet {
        items: Bytes::from(format!("{row}\n").repeat(rows)),
        prompt: "Answer the question from the document.".to_owned(),
        task_id: Some("document-questions".to_owned()),
        name: None,
    }
}

/// A document of so many bytes, of which only the record is there.
fn record(org: &str, set: &str, size: u64) -> Document {
    Document {
        org: org.to_owned(),
        eval_set_id: set.to_owned(),
        place: place(0),
        size,
        sha256: String::new(),
        blob: "elsewhere".to_owned(),
    }
}

fn place(idx: usize) -> DocumentPlace {
    DocumentPlace {
        idx,
        field_name: "document".to_owned(),
        mime: "application/pdf".to_owned(),
    }
}

// Assumed (eval-limits): 512 MiB of rows and documents in an organization.
#[tokio::test]
async fn rows_and_documents_of_an_organization_are_at_most_512_mib() {
    let state = State::new(&Options::default()).unwrap();
    let set = sets::create(&state.evals, ORG, &new_set(2)).await.unwrap();
    let rows: u64 = state.evals.stored_sets(ORG).unwrap()[0].row_bytes;
    assert!(rows > 0);
    let left = 512 * MIB - rows;
    // What another organization has takes no room of this one.
    for (org, id, size) in [("org-2", "es_x/0", 512 * MIB), (ORG, "es_y/0", left - 10)] {
        let document = record(org, "es_z", size);
        state.store.put(DOCUMENTS, id, &document).unwrap();
    }

    for (bytes, fits) in [(11, false), (10, true)] {
        let file = Bytes::from(vec![7; bytes]);
        let attached = documents::attach(&state.evals, ORG, &set, place(0), file).await;
        assert_eq!(attached.is_ok(), fits, "{bytes}: {attached:?}");
    }
    let announced = |size| uploads::announce(&state.evals, ORG, &set, place(1), Some(size));
    let full = announced(1).unwrap_err().to_string();
    assert!(full.contains("at most 512 MiB"), "{full}");
    assert!(sets::create(&state.evals, ORG, &new_set(1)).await.is_err());
    assert!(
        sets::create(&state.evals, "org-3", &new_set(1))
            .await
            .is_ok()
    );
    // What was refused left no bytes behind: the one document that was taken is the one blob.
    let Blobs::Memory(blobs) = &state.evals.blobs else {
        panic!("in memory");
    };
    assert_eq!(blobs.lock().len(), 1);
}

// Assumed (eval-limits): a document of the signed flow has at most 50 MiB.
#[tokio::test]
async fn a_document_has_at_most_50_mib() {
    let state = State::new(&Options::default()).unwrap();
    state.evals.listens_on("127.0.0.1:8329".parse().unwrap());
    let set = sets::create(&state.evals, ORG, &new_set(1)).await.unwrap();
    for (size, fits) in [
        (0, false),
        (1, true),
        (50 * MIB, true),
        (50 * MIB + 1, false),
    ] {
        let announced = uploads::announce(&state.evals, ORG, &set, place(0), Some(size));
        assert_eq!(announced.is_ok(), fits, "{size}: {announced:?}");
    }
}

// Assumed (eval-limits): of the runs that ended, 1,000 are kept for an organization; the oldest go first.
#[tokio::test]
async fn the_oldest_run_that_ended_goes_when_there_are_1000() {
    let state = State::new(&Options::default()).unwrap();
    let row =
        json!({"input": {"message": "It came late."}, "expected_output": {"reply": "Sorry."}});
    let request = NewSet {
        items: Bytes::from(row.to_string()),
        prompt: "Write a polite reply to the message.".to_owned(),
        task_id: None,
        name: None,
    };
    let set = sets::create(&state.evals, ORG, &request).await.unwrap();
    let ended = |org: &str, at: usize| EvalRun {
        id: format!("run_{org}_{at:04}"),
        org: org.to_owned(),
        eval_set_id: set.id.clone(),
        status: [RunStatus::Completed, RunStatus::Failed][at % 2],
        candidate_models: vec!["auto".to_owned()],
        error_detail: None,
        cost_micro_usd: MicroUsd::ZERO,
        results: Vec::new(),
        created: Created(i64::try_from(at).unwrap()),
        body_fingerprint: String::new(),
    };
    let mut written = vec![Written::new(RUNS, "run_org-2_0000", &ended("org-2", 0)).unwrap()];
    for at in 0..1_000 {
        let run = ended(ORG, at);
        written.push(Written::new(RUNS, &run.id, &run).unwrap());
    }
    state.store.put_all(&written).unwrap();
    let there = |org: &str, at: usize| state.evals.run(org, &format!("run_{org}_{at:04}")).is_ok();

    let wanted = || NewRun {
        eval_set_id: set.id.clone(),
        candidate_models: vec!["auto".to_owned()],
        body_fingerprint: String::new(),
    };
    let first = runs::create(&state.evals, ORG, wanted()).unwrap();

    assert_eq!(first.status, RunStatus::Queued);
    assert_eq!((there(ORG, 0), there(ORG, 1)), (false, true));
    assert!(there("org-2", 0), "another organization's stay");
    // A second one replaces nothing: the first has not ended, so 999 have.
    runs::create(&state.evals, ORG, wanted()).unwrap();
    assert_eq!((there(ORG, 1), there(ORG, 999)), (true, true));
}

// Assumed (eval-limits): 500 sets in an organization, then 422; another organization has room of its own.
#[tokio::test]
async fn an_organization_has_at_most_500_sets() {
    let state = State::new(&Options::default()).unwrap();
    let first = sets::create(&state.evals, ORG, &new_set(1)).await.unwrap();
    let stored: serde_json::Value = state.store.get(SETS, &first.id).unwrap().unwrap();
    let copies = (1..500).map(|n| Written::new(SETS, &format!("es_{n}"), &stored).unwrap());
    let copies: Vec<Written> = copies.collect();
    state.store.put_all(&copies).unwrap();
    assert_eq!(sets::list(&state.evals, ORG).unwrap().len(), 500);

    let over = sets::create(&state.evals, ORG, &new_set(1))
        .await
        .unwrap_err();
    let theirs = sets::create(&state.evals, "org-2", &new_set(1)).await;
    sets::delete(&state.evals, ORG, &first.id).unwrap();
    let again = sets::create(&state.evals, ORG, &new_set(1)).await;

    assert!(over.to_string().contains("at most 500"), "{over}");
    assert!(theirs.is_ok() && again.is_ok(), "{theirs:?} {again:?}");
}
