//! What the ledger's tests share: a ledger in a temporary directory, requests, and faults.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::clock::ManualClock;
use crate::ledger::entry::Labels;
use crate::ledger::entry::{Attempt, AttemptEnd, Intent, Outcome, Settlement};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::id::EntryId;
use crate::ledger::journal::faults;
use crate::ledger::kept_key::{EntryKey, KeyOrigin};
use crate::ledger::kept_key::{KeptKey, KeyForm, Organization};
use crate::ledger::{Durability, FingerprintParts, GivenAs, Ledger, LedgerError, LedgerOptions};
use crate::money::MicroUsd;
use crate::protocol::receipt::{Receipt, ReceiptSource};
use crate::protocol::{Lane, Operation, Reported};

pub(crate) mod history;
pub(crate) mod paper;

/// 2026-05-09 00:00 UTC.
pub(crate) const START_MS: u64 = 1_778_284_800_000;

/// A ledger's directory and clock. The ledger itself comes and goes.
pub(crate) struct Bench {
    pub clock: ManualClock,
    pub root: TempDir,
}

// === impl Bench ===

impl Bench {
    pub fn new() -> Self {
        Self {
            clock: ManualClock::at(START_MS),
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.state().join(format!("journal/{number:08}.jsonl"))
    }

    pub fn options(&self) -> LedgerOptions {
        LedgerOptions {
            durability: Durability::Process,
            ..LedgerOptions::new(self.state(), Arc::new(self.clock.clone()))
        }
    }

    pub fn try_open(&self) -> Result<Ledger, LedgerError> {
        Ledger::open(self.options())
    }

    pub fn open(&self) -> Ledger {
        self.try_open().unwrap()
    }

    /// The next write of a journal here writes `keep` bytes and then fails with `errno`.
    pub fn fail_next_write(&self, keep: usize, errno: i32) {
        faults::plan_write(self.state(), keep, errno);
    }

    /// The next sync of a journal here fails with `errno`.
    pub fn fail_next_sync(&self, errno: i32) {
        faults::plan_sync(self.state(), errno);
    }
}

pub(crate) fn attempt(end: AttemptEnd) -> Attempt {
    Attempt {
        took_ms: 10,
        ..Attempt::new(
            end,
            match end {
                AttemptEnd::NotSent | AttemptEnd::NoHead => None,
                AttemptEnd::Refused => Some(503),
                AttemptEnd::Gateway => Some(502),
                AttemptEnd::Answered | AttemptEnd::Broken => Some(200),
            },
        )
    }
}

pub(crate) fn refused(status: u16) -> Attempt {
    Attempt {
        status: Some(status),
        ..attempt(AttemptEnd::Refused)
    }
}

pub(crate) fn billed(amount: u64) -> Receipt {
    Receipt {
        billed: Reported::Value(MicroUsd::new(amount)),
        source: Some(ReceiptSource::Header),
        ..Receipt::default()
    }
}

pub(crate) fn intent(id: EntryId, at_ms: u64, key: Option<&str>) -> Intent {
    Intent {
        model: Some("auto".to_owned()),
        key: key.map(minted),
        request_bytes: 120,
        ..Intent::new(
            id,
            at_ms,
            Arc::from("notes"),
            Lane::Inference,
            Operation::Chat,
            Fingerprint([7; 32]),
        )
    }
}

pub(crate) fn minted(key: &str) -> KeptKey {
    KeptKey {
        form: KeyForm::Text(Arc::from(key)),
        origin: KeyOrigin::Minted,
        organization: Some(Organization(1)),
        request: None,
        asked: None,
    }
}

pub(crate) fn labels(at_ms: u64, key: Option<&str>) -> Labels {
    let id = EntryId(uuid::Uuid::nil());
    Labels::of_intent(&intent(id, at_ms, key))
}

pub(crate) fn outcome(id: EntryId, attempts: Vec<Attempt>, receipt: Receipt) -> Outcome {
    Outcome {
        attempts,
        receipt,
        response_bytes: 300,
        ..Outcome::new(id, START_MS + 1_000)
    }
}

/// An outcome of one attempt.
pub(crate) fn ended(id: EntryId, end: AttemptEnd, receipt: Receipt) -> Outcome {
    outcome(id, vec![attempt(end)], receipt)
}

/// Intends and settles one request.
pub(crate) async fn buy(ledger: &Ledger, key: Option<&str>, receipt: Receipt) -> Settlement {
    let id = begin(ledger, key).await;
    ledger
        .settle(ended(id, AttemptEnd::Answered, receipt))
        .await
        .unwrap()
}

/// Buys once under an app's own key, of an organization and with a body.
pub(crate) async fn buy_own(
    ledger: &Ledger,
    key: &str,
    organization: u64,
    body: &[u8],
    receipt: Receipt,
) -> Settlement {
    let id = ledger.new_entry_id();
    let (key, fingerprint) = own(ledger, key, organization, body);
    let intent = Intent {
        key: Some(key),
        fingerprint,
        ..intent(id, ledger.wall_ms(), None)
    };
    ledger.intend(intent).await.unwrap();
    ledger
        .settle(ended(id, AttemptEnd::Answered, receipt))
        .await
        .unwrap()
}

/// An app's own key as the proxy gives it to the ledger, and the request's fingerprint.
pub(crate) fn own(
    ledger: &Ledger,
    key: &str,
    organization: u64,
    body: &[u8],
) -> (KeptKey, Fingerprint) {
    let parts = FingerprintParts {
        method: "POST",
        path_and_query: "/v1/chat/completions",
        body,
        session: None,
        rte_query: None,
        given_as: GivenAs::Served,
    };
    let sent = EntryKey {
        value: Arc::from(key),
        origin: KeyOrigin::App,
    };
    let kept = ledger.kept_key(&sent, Organization(organization), &parts);
    (kept, ledger.fingerprint(&parts))
}

/// Intends one request.
pub(crate) async fn begin(ledger: &Ledger, key: Option<&str>) -> EntryId {
    let id = ledger.new_entry_id();
    let mut intent = intent(id, ledger.wall_ms(), key);
    intent.key = key.map(|key| KeptKey {
        form: KeyForm::of(ledger.secret(), key),
        ..minted("")
    });
    ledger.intend(intent).await.unwrap();
    id
}

/// From now on the process dies, as by kill -9, right after its next answer: the index is not updated.
pub(crate) fn kill_after_next(ledger: &Ledger) {
    ledger.kill_after_next();
}
