//! A holder of leases without a daemon: what it calls, a test decides.

use bursar::caps::leases::{GiveBack, GiveBackAnswer, Grant, Held, Lease, LeaseAnswer, LeaseAsk};
use bursar::fleet::{Fleet, FleetIdentity, Standing};
use bursar::ledger::query::Shelved;
use bursar::money::MicroUsd;
use uuid::Uuid;

use super::{CODE, DATABASE, connect, fleet};
use crate::support::postgres::Postgres;

/// A ledger that obeys the cap `team`, on a machine of its own.
pub struct Holder {
    pub fleet: Fleet,
    pub identity: FleetIdentity,
    pub machine: String,
    host: String,
}

/// A fleet whose cap `team` is this much a day.
pub fn capped(limit: u64) -> Postgres {
    let postgres = fleet();
    cap(&postgres, limit);
    postgres
}

pub fn cap(postgres: &Postgres, limit: u64) {
    // Its day does not end soon: in the last minute of a window nothing goes back.
    let order = format!(
        "SELECT bursar_fleet.order_cap('team', 'day',
            CASE WHEN extract(hour FROM now() AT TIME ZONE 'UTC') < 18 THEN 'Europe/Berlin' ELSE 'America/Los_Angeles' END,
            {limit})"
    );
    postgres.sql(DATABASE, &order);
}

/// What is charged of the cap now, by the view that operators read.
pub fn charged(postgres: &Postgres) -> u64 {
    let now = "SELECT charged_micro_usd FROM bursar_fleet.caps_now WHERE cap = 'team'";
    postgres.sql(DATABASE, now).parse().expect("a sum")
}

pub fn usd(amount: u64) -> MicroUsd {
    MicroUsd::new(amount)
}

pub fn granted(answer: LeaseAnswer) -> Grant {
    match answer {
        LeaseAnswer::Granted(grant) => grant,
        other => panic!("nothing was granted: {other:?}"),
    }
}

impl Holder {
    /// Let in with the code of this number, and heard.
    pub async fn new(postgres: &Postgres, number: u32) -> Self {
        let holder = Self {
            fleet: connect(postgres).await,
            identity: FleetIdentity::new().expect("a name"),
            machine: format!("machine-{number}, boot 1"),
            host: format!("host-{number}"),
        };
        let code = format!("{CODE}{number}");
        let enrolled = holder.fleet.enrol(&code, &holder.identity, &holder.host);
        enrolled.await.expect("it is let in");
        holder.hello().await;
        holder.hold(&[]).await;
        holder
    }

    pub async fn hello(&self) -> Standing {
        let hello = self.fleet.hello(&self.identity, &self.host, Some(0), 0);
        hello.await.expect("an answer")
    }

    pub async fn hold(&self, leases: &[Lease]) -> Held {
        self.hold_from(0, leases).await
    }

    pub async fn hold_from(&self, mark_seq: u64, leases: &[Lease]) -> Held {
        let held = self
            .fleet
            .hold(&self.identity, &self.machine, mark_seq, leases);
        held.await.expect("an answer")
    }

    /// What it has now.
    pub async fn leases(&self) -> Vec<Lease> {
        let held = self.hold(&[]).await;
        held.leases.into_iter().map(|live| live.lease).collect()
    }

    pub async fn ask(&self, ask: &LeaseAsk) -> LeaseAnswer {
        let answer = self.fleet.lease(&self.identity, &self.machine, ask);
        answer.await.expect("an answer")
    }

    /// Of the window of now, at least 10.
    pub async fn wants(&self, want: u64) -> LeaseAnswer {
        self.ask(&wish(want, 10, 0)).await
    }

    pub async fn gives_back(&self, part: GiveBack) -> GiveBackAnswer {
        let answer = self.fleet.give_back(&self.identity, &part);
        answer.await.expect("an answer")
    }

    /// Ships lines with these amounts, each of which spends a lease.
    pub async fn bills(&self, lease: Uuid, amounts: &[u64]) {
        let standing = self.hello().await;
        let after = standing.mark_seq;
        let lines: Vec<Shelved> = (after + 1..)
            .zip(amounts)
            .map(|(seq, amount)| Shelved::Line {
                seq,
                bytes: line(seq, *amount, lease),
            })
            .collect();
        let last = after + u64::try_from(lines.len()).expect("few");
        let shipped = self.fleet.ship(
            &self.identity,
            (after, &standing.chain),
            &lines,
            false,
            last,
        );
        let taken = format!("{:?}", shipped.await.expect("it is shipped"));
        assert!(taken.starts_with("All"), "{taken}");
    }

    /// A copy of it that took a name of its own, before any line, and was heard.
    pub async fn forked(&self, postgres: &Postgres) -> Self {
        let nothing = self.hello().await.chain;
        let mut copy = self.copied(postgres).await;
        copy.identity = copy.identity.becoming(0).expect("a name");
        let fork = copy.fleet.fork(&copy.identity, &nothing);
        fork.await.expect("a name of its own");
        copy.identity = copy.identity.become_it().expect("a name");
        copy.hello().await;
        copy.hold(&[]).await;
        copy
    }

    /// In hexadecimal digits.
    pub fn secret(&self) -> String {
        let secret = self.identity.secret();
        secret.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A copy of it on the same machine.
    pub async fn copied(&self, postgres: &Postgres) -> Self {
        Self {
            fleet: connect(postgres).await,
            identity: self.identity.clone(),
            machine: self.machine.clone(),
            host: self.host.clone(),
        }
    }
}

fn line(seq: u64, amount: u64, lease: Uuid) -> Vec<u8> {
    let line = serde_json::json!({
        "seq": seq,
        "kind": "outcome",
        "id": Uuid::from_u128(u128::from(seq)).to_string(),
        "at_ms": 1,
        "started_ms": 1,
        "app": "default",
        "state": "settled",
        "adds_micro_usd": amount,
        "leases": [lease.to_string()],
        "crc": 0,
    });
    line.to_string().into_bytes()
}

pub fn wish(want: u64, least: u64, ahead: u32) -> LeaseAsk {
    LeaseAsk {
        cap: "team".to_owned(),
        // Any name that was not there before.
        request: FleetIdentity::new().expect("a name").ledger,
        want: usd(want),
        least: usd(least),
        ahead,
    }
}

pub fn part(lease: &Lease, number: u32, amount: u64, up_to_seq: u64) -> GiveBack {
    GiveBack {
        lease: lease.lease,
        number,
        amount: usd(amount),
        up_to_seq,
    }
}

/// An order about a ledger's share of the cap.
pub fn share(postgres: &Postgres, holder: &Holder, largest: &str, ahead: u32, ahead_usd: u64) {
    let ledger = holder.identity.ledger;
    let order = format!(
        "SELECT bursar_fleet.order_share('{ledger}', 'team', {largest}, {ahead}, {ahead_usd})"
    );
    assert_eq!(postgres.sql(DATABASE, &order), "set");
}
