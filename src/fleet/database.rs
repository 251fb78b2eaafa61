//! A visit to the fleet's database: its functions, as calls.
//!
//! Why: what a bursar may do there is a list of functions (`schema.sql`); nothing else is called.
//!
//! Promise: one round trip a call, without a named statement, so that a pooler that gives each transaction another
//! connection is enough; no call outlasts [`CALL_MAX`].

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::answer::FleetError;
use super::answer::{CALL_MAX, chain, number, seq, speaks, value};
use super::chain::{Chain, LineHash, line_hash, why_word};
use super::identity::FleetIdentity;
use super::leases;
use super::orders::HeardOrders;
use super::shipped::shipped;
use crate::caps::leases::{GiveBack, GiveBackAnswer, Held, Lease, LeaseAnswer, LeaseAsk};
use crate::ceilings::Ceilings;
use crate::ledger::query::Shelved;

/// A connection; it ends with this value.
pub struct Fleet {
    client: Client,
    task: tokio::task::JoinHandle<()>,
}

/// What the fleet has of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Of the schema.
    pub version: i32,
    /// 0: nothing.
    pub mark_seq: u64,
    pub chain: Chain,
    /// This machine's clock less the database's, milliseconds.
    pub clock_ahead_ms: i64,
    pub orders: HeardOrders,
    /// Nothing is taken of it any more.
    pub is_revoked: bool,
    /// The database was restored, and grants nothing before this ledger has presented its leases.
    pub is_awaited: bool,
}

/// What a login may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The database's clock, Unix milliseconds.
    pub now_ms: u64,
    /// Be a bursar of the fleet.
    pub is_node: bool,
    /// Let ledgers in and out, and give orders.
    pub is_operator: bool,
    /// Read the sums.
    pub is_reader: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is there; the mark, and the hash there.
    All { mark_seq: u64, chain: Chain },
    /// The fleet has less than was thought.
    Behind { mark_seq: u64, chain: Chain },
    /// What is there under these numbers is another ledger's, or these lines are there under another name.
    Fork { mark_seq: u64 },
}

/// Lines as they are sent: one element a line or range each.
#[derive(Default)]
struct Batch {
    first_seqs: Vec<i64>,
    last_seqs: Vec<i64>,
    texts: Vec<String>,
    hashes: Vec<Option<Vec<u8>>>,
}

// === impl Standing ===

impl Standing {
    /// Whether the fleet takes lines of this ledger and leases to it. Orders are obeyed all the same.
    pub fn admits(&self) -> Result<(), FleetError> {
        speaks(self.version)?;
        match self.is_revoked {
            true => Err(FleetError::Revoked),
            false => Ok(()),
        }
    }
}

// === impl Fleet ===

impl Fleet {
    pub async fn connect(address: &Address) -> Result<Self, FleetError> {
        let connecting = async {
            match &address.tls {
                Some(tls) => {
                    let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                    let (client, connection) = address.config.connect(tls).await?;
                    Ok((client, tokio::spawn(ended(connection))))
                }
                None => {
                    let (client, connection) = address.config.connect(NoTls).await?;
                    Ok((client, tokio::spawn(ended(connection))))
                }
            }
        };
        let (client, task) = in_time(connecting, FleetError::from).await?;
        Ok(Self { client, task })
    }

    /// Lets this ledger in. Repeated, it changes nothing.
    pub async fn enrol(
        &self,
        code: &str,
        caller: &FleetIdentity,
        host_label: &str,
    ) -> Result<(), FleetError> {
        let bursar = env!("CARGO_PKG_VERSION");
        self.call(
            "SELECT bursar_fleet.enrol($1, $2, $3, $4, $5)",
            &[
                (&code, Type::TEXT),
                (&caller.ledger, Type::UUID),
                (&caller.secret(), Type::BYTEA),
                (&host_label, Type::TEXT),
                (&bursar, Type::TEXT),
            ],
        )
        .await
        .map(|_| ())
    }

    /// What the fleet has of this ledger. `journal_seq`: the journal's last line; without it, what the fleet was told before
    /// stays.
    pub async fn hello(
        &self,
        caller: &FleetIdentity,
        host_label: &str,
        journal_seq: Option<u64>,
        wall_ms: u64,
    ) -> Result<Standing, FleetError> {
        let journal_seq = journal_seq.map(number);
        let (bursar, wall_ms) = (env!("CARGO_PKG_VERSION"), number(wall_ms));
        let row = self
            .one(
                // A schema of version 1 awaits nobody and keeps no thaws, and orders are heard from it all the same.
                "SELECT version, mark_seq, mark_chain, clock_ahead_ms, freezes, is_revoked, \
                     coalesce((to_jsonb(heard) ->> 'is_awaited')::boolean, false), to_jsonb(heard) ->> 'thaws' \
                 FROM bursar_fleet.hello($1, $2, $3, $4, $5, $6) AS heard",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&host_label, Type::TEXT),
                    (&bursar, Type::TEXT),
                    (&journal_seq, Type::INT8),
                    (&wall_ms, Type::INT8),
                ],
            )
            .await?;
        let thaws: Option<&str> = value(&row, 7)?;
        let orders = HeardOrders::parse(value(&row, 4)?, thaws);
        let unknown = || FleetError::Refused("its orders cannot be read".to_owned());
        Ok(Standing {
            version: value(&row, 0)?,
            mark_seq: seq(&row, 1)?,
            chain: chain(&row, 2)?,
            clock_ahead_ms: value(&row, 3)?,
            orders: orders.ok_or_else(unknown)?,
            is_revoked: value(&row, 5)?,
            is_awaited: value(&row, 6)?,
        })
    }

    /// States up to which line this ledger's were ever acknowledged. Where the fleet has fewer, its database was restored, and
    /// it grants nothing until every ledger has presented its leases.
    pub async fn acknowledged(
        &self,
        caller: &FleetIdentity,
        mark_seq: u64,
    ) -> Result<(), FleetError> {
        let sql = "SELECT bursar_fleet.acknowledged($1, $2, $3)";
        let mark_seq = number(mark_seq);
        let parameters = [
            (&caller.ledger as _, Type::UUID),
            (&caller.secret() as _, Type::BYTEA),
            (&mark_seq as _, Type::INT8),
        ];
        self.call(sql, &parameters).await.map(|_| ())
    }

    /// The last line at or before a number, and the hash behind it. `None`: there is none.
    pub async fn chain_at(
        &self,
        caller: &FleetIdentity,
        at_seq: u64,
    ) -> Result<Option<(u64, Chain)>, FleetError> {
        let at_seq = number(at_seq);
        let row = self
            .one(
                "SELECT seq, chain FROM bursar_fleet.chain_at($1, $2, $3)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&at_seq, Type::INT8),
                ],
            )
            .await?;
        match value::<Option<i64>>(&row, 0)? {
            Some(_) => Ok(Some((seq(&row, 0)?, chain(&row, 1)?))),
            None => Ok(None),
        }
    }

    /// The last of these lines, each with the hash behind it, that another copy of the same ledger has shipped. `None`:
    /// no copy has shipped any.
    pub async fn family_has(
        &self,
        caller: &FleetIdentity,
        lines: &[(u64, Chain)],
    ) -> Result<Option<u64>, FleetError> {
        let seqs: Vec<i64> = lines.iter().map(|(seq, _)| number(*seq)).collect();
        let chains: Vec<&[u8]> = lines.iter().map(|(_, chain)| chain.as_bytes()).collect();
        let row = self
            .one(
                "SELECT bursar_fleet.family_has($1, $2, $3, $4)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&seqs, Type::INT8_ARRAY),
                    (&chains, Type::BYTEA_ARRAY),
                ],
            )
            .await?;
        match value::<Option<i64>>(&row, 0)? {
            Some(_) => Ok(Some(seq(&row, 0)?)),
            None => Ok(None),
        }
    }

    /// Hands over what follows a line.
    pub async fn ship(
        &self,
        caller: &FleetIdentity,
        after: (u64, &Chain),
        lines: &[Shelved],
        ship_people: bool,
        journal_seq: u64,
    ) -> Result<Taken, FleetError> {
        let batch = Batch::of(lines, ship_people)?;
        let (after_seq, journal_seq) = (number(after.0), number(journal_seq));
        let rows = self
            .hand_over(
                "SELECT verdict, mark_seq, mark_chain FROM bursar_fleet.ship($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&after_seq, Type::INT8),
                    (&after.1.as_bytes(), Type::BYTEA),
                    (&batch.first_seqs, Type::INT8_ARRAY),
                    (&batch.last_seqs, Type::INT8_ARRAY),
                    (&batch.texts, Type::TEXT_ARRAY),
                    (&batch.hashes, Type::BYTEA_ARRAY),
                    (&journal_seq, Type::INT8),
                ],
            )
            .await?;
        let row = first(rows)?;
        let verdict: String = value(&row, 0)?;
        let (mark_seq, chain) = (seq(&row, 1)?, chain(&row, 2)?);
        match verdict.as_str() {
            "taken" => Ok(Taken::All { mark_seq, chain }),
            "behind" => Ok(Taken::Behind { mark_seq, chain }),
            "fork" => Ok(Taken::Fork { mark_seq }),
            other => Err(FleetError::Refused(format!(
                "the verdict {other:?} is not known"
            ))),
        }
    }

    /// Gives a copy the name that it takes. Repeated, it changes nothing.
    pub async fn fork(&self, caller: &FleetIdentity, common: &Chain) -> Result<(), FleetError> {
        let Some(becoming) = &caller.becomes else {
            return Ok(());
        };
        let common_seq = number(becoming.common_seq);
        self.hand_over(
            "SELECT bursar_fleet.fork($1, $2, $3, $4, $5, $6)",
            &[
                (&caller.ledger, Type::UUID),
                (&caller.secret(), Type::BYTEA),
                (&common_seq, Type::INT8),
                (&common.as_bytes(), Type::BYTEA),
                (&becoming.ledger, Type::UUID),
                (&becoming.secret(), Type::BYTEA),
            ],
        )
        .await
        .map(|_| ())
    }

    /// The ledger ships no more. Repeated, it changes nothing.
    pub async fn leave(&self, caller: &FleetIdentity) -> Result<(), FleetError> {
        let sql = "SELECT bursar_fleet.leave($1, $2)";
        let parameters = [
            (&caller.ledger as _, Type::UUID),
            (&caller.secret() as _, Type::BYTEA),
        ];
        self.call(sql, &parameters).await.map(|_| ())
    }

    /// States what this machine would use of the service's ceilings; answers what the other machines leave of them, and
    /// when to ask again.
    pub async fn pace(
        &self,
        caller: &FleetIdentity,
        wanted: Ceilings,
        ceilings: Ceilings,
    ) -> Result<(Ceilings, Duration), FleetError> {
        let sent = |count: Option<usize>| count.and_then(|count| i32::try_from(count).ok());
        let row = self
            .one(
                "SELECT in_flight, per_minute, again_s FROM bursar_fleet.pace($1, $2, $3, $4, $5, $6)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&sent(wanted.in_flight), Type::INT4),
                    (&sent(wanted.per_minute), Type::INT4),
                    (&sent(ceilings.in_flight), Type::INT4),
                    (&sent(ceilings.per_minute), Type::INT4),
                ],
            )
            .await?;
        let share = |at| -> Result<Option<usize>, FleetError> {
            let count: Option<i32> = value(&row, at)?;
            Ok(count.and_then(|count| usize::try_from(count).ok()))
        };
        let share = Ceilings {
            in_flight: share(0)?,
            per_minute: share(1)?,
        };
        let again_s: i32 = value(&row, 2)?;
        Ok((
            share,
            Duration::from_secs(u64::try_from(again_s).unwrap_or(0).max(1)),
        ))
    }

    /// What this login may do here.
    pub async fn greet(&self) -> Result<Greeting, FleetError> {
        let sql =
            "SELECT version, now_ms, is_node, is_operator, is_reader FROM bursar_fleet.greet()";
        let row = self.one(sql, &[]).await?;
        speaks(value(&row, 0)?)?;
        Ok(Greeting {
            now_ms: seq(&row, 1)?,
            is_node: value(&row, 2)?,
            is_operator: value(&row, 3)?,
            is_reader: value(&row, 4)?,
        })
    }

    /// Whether a code would let a ledger in now; it is not used up.
    pub async fn is_open(&self, code: &str) -> Result<bool, FleetError> {
        let row = self
            .one("SELECT bursar_fleet.is_open($1)", &[(&code, Type::TEXT)])
            .await?;
        value(&row, 0)
    }

    /// Presents the caller's leases, which are this machine's from here on, and hears which there are. After `hello`,
    /// and once it is known that this is no copy. `machine` names the machine and its start; `mark_seq` is the highest
    /// line that was ever acknowledged to the caller by its present name.
    pub async fn hold(
        &self,
        caller: &FleetIdentity,
        machine: &str,
        mark_seq: u64,
        leases: &[Lease],
    ) -> Result<Held, FleetError> {
        let (mark_seq, stated) = (number(mark_seq), leases::stated(leases)?);
        let row = self
            .one(
                "SELECT bursar_fleet.hold($1, $2, $3, $4, $5)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&machine, Type::TEXT),
                    (&mark_seq, Type::INT8),
                    (&stated, Type::TEXT),
                ],
            )
            .await?;
        leases::held(value(&row, 0)?)
    }

    /// Asks for more of a cap.
    pub async fn lease(
        &self,
        caller: &FleetIdentity,
        machine: &str,
        ask: &LeaseAsk,
    ) -> Result<LeaseAnswer, FleetError> {
        let (want, least) = (number(ask.want.get()), number(ask.least.get()));
        let ahead = i32::try_from(ask.ahead).unwrap_or(i32::MAX);
        let row = self
            .one(
                "SELECT verdict, lease, since_ms, until_ms, begins_in_ms, ends_in_ms, granted, given_back, \
                 give_back_number, billed::text, amount, left_micro_usd, limit_micro_usd, may_return \
                 FROM bursar_fleet.lease($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&machine, Type::TEXT),
                    (&ask.cap, Type::TEXT),
                    (&ask.request, Type::UUID),
                    (&want, Type::INT8),
                    (&least, Type::INT8),
                    (&ahead, Type::INT4),
                ],
            )
            .await?;
        leases::answer(&row, &ask.cap)
    }

    /// Gives a part of a lease back.
    pub async fn give_back(
        &self,
        caller: &FleetIdentity,
        part: &GiveBack,
    ) -> Result<GiveBackAnswer, FleetError> {
        let part_number = i32::try_from(part.number).unwrap_or(i32::MAX);
        let (amount, up_to_seq) = (number(part.amount.get()), number(part.up_to_seq));
        let row = self
            .one(
                "SELECT verdict, granted, given_back, give_back_number \
                 FROM bursar_fleet.give_back($1, $2, $3, $4, $5, $6)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&part.lease, Type::UUID),
                    (&part_number, Type::INT4),
                    (&amount, Type::INT8),
                    (&up_to_seq, Type::INT8),
                ],
            )
            .await?;
        leases::given_back(&row)
    }

    pub(super) async fn one(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, FleetError> {
        first(self.call(sql, parameters).await?)
    }

    pub(super) async fn call(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, FleetError> {
        let call = self.client.query_typed(sql, parameters);
        in_time(call, FleetError::from).await
    }

    /// A call that may be refused for what is in the ledger's lines.
    async fn hand_over(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, FleetError> {
        let call = self.client.query_typed(sql, parameters);
        in_time(call, FleetError::of_lines).await
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads and writes until the client is gone; a break shows in the call that waits.
async fn ended<F: Future<Output = Result<(), tokio_postgres::Error>>>(connection: F) {
    connection.await.ok();
}

async fn in_time<T>(
    call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    refused: fn(tokio_postgres::Error) -> FleetError,
) -> Result<T, FleetError> {
    match timeout(CALL_MAX, call).await {
        Ok(answered) => answered.map_err(refused),
        Err(_) => Err(FleetError::Slow),
    }
}

fn first(rows: Vec<Row>) -> Result<Row, FleetError> {
    let first = rows.into_iter().next();
    first.ok_or_else(|| FleetError::Refused("it answered nothing".to_owned()))
}

// === impl Batch ===

impl Batch {
    fn of(lines: &[Shelved], ship_people: bool) -> Result<Self, FleetError> {
        let mut batch = Self::default();
        for line in lines {
            let (first, last, text, hash): (u64, u64, String, Option<LineHash>) = match line {
                Shelved::Line { seq, bytes } => {
                    let text = shipped(bytes, ship_people);
                    let text = text.ok_or(FleetError::Unshippable(*seq))?;
                    (*seq, *seq, text, Some(line_hash(bytes)))
                }
                Shelved::Gap {
                    first_seq,
                    last_seq,
                    why,
                } => (*first_seq, *last_seq, why_word(*why).to_owned(), None),
            };
            batch.first_seqs.push(number(first));
            batch.last_seqs.push(number(last));
            batch.texts.push(text);
            batch.hashes.push(hash.map(|hash| hash.to_vec()));
        }
        Ok(batch)
    }
}
