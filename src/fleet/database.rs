//! A visit to the fleet's database: its functions, as calls.
//!
//! Why: what a bursar may do there is a list of functions (`schema.sql`); nothing else is called.
//!
//! Promise: one round trip a call, without a named statement, so that a pooler that gives each transaction another
//! connection is enough; no call outlasts [`CALL_MAX`].

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::chain::{Chain, LineHash, line_hash, why_word};
use super::identity::FleetIdentity;
use super::orders::FleetOrders;
use super::schema::VERSION;
use super::shipped::shipped;
use crate::ledger::query::Shelved;

/// Longest wait for an answer.
const CALL_MAX: Duration = Duration::from_secs(30);

/// A connection; it ends with this value.
pub struct Fleet {
    client: Client,
    task: tokio::task::JoinHandle<()>,
}

/// What the fleet has of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// 0: nothing.
    pub mark_seq: u64,
    pub chain: Chain,
    /// This machine's clock less the database's, milliseconds.
    pub clock_ahead_ms: i64,
    pub orders: FleetOrders,
    /// Nothing is taken of it any more.
    pub is_revoked: bool,
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
    /// What is there under these numbers is another ledger's.
    Fork,
}

/// Lines as they are sent: one element a line or range each.
#[derive(Default)]
struct Batch {
    first_seqs: Vec<i64>,
    last_seqs: Vec<i64>,
    texts: Vec<String>,
    hashes: Vec<Option<Vec<u8>>>,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("the fleet's database cannot be reached: {0}")]
    Unreachable(String),
    #[error("the fleet's database did not answer within {} s", CALL_MAX.as_secs())]
    Slow,
    #[error("this fleet does not know the ledger; a code lets it in (docs/fleet.md)")]
    Unknown,
    #[error("the ledger was revoked; nothing more is taken of it (docs/fleet.md)")]
    Revoked,
    #[error(
        "the code is not known, was used, or has expired; an operator makes another (docs/fleet.md)"
    )]
    BadCode,
    #[error(
        "1000 copies of this ledger took names of their own within a day; make images of machines \
         without a state directory (docs/fleet.md)"
    )]
    Copies,
    #[error(
        "the database has no schema of a fleet; as an administrator: bursar fleet schema | psql -d DATABASE"
    )]
    NoSchema,
    #[error(
        "this login may not do that in the fleet's database: a bursar signs in with a role IN ROLE bursar_node, an operator \
         with bursar_operator, a reader with bursar_reader (docs/fleet.md)"
    )]
    NotAllowed,
    #[error("the fleet's schema has version {found}, and this bursar speaks {VERSION}; {}", advice(*found))]
    Version { found: i32 },
    #[error("the fleet's database refused: {0}")]
    Refused(String),
    #[error("a line of the journal is not JSON, and cannot be shipped: number {0}")]
    Unshippable(u64),
}

fn advice(found: i32) -> &'static str {
    match found > VERSION {
        true => "install a newer bursar",
        false => "run `bursar fleet schema | psql -d DATABASE` as its administrator",
    }
}

fn speaks(found: i32) -> Result<(), FleetError> {
    match found == VERSION {
        true => Ok(()),
        false => Err(FleetError::Version { found }),
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
        let (client, task) = in_time(connecting).await?;
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

    /// What the fleet has of this ledger.
    pub async fn hello(
        &self,
        caller: &FleetIdentity,
        host_label: &str,
        journal_seq: u64,
        wall_ms: u64,
    ) -> Result<Standing, FleetError> {
        let (bursar, journal_seq, wall_ms) = (
            env!("CARGO_PKG_VERSION"),
            number(journal_seq),
            number(wall_ms),
        );
        let row = self
            .one(
                "SELECT version, mark_seq, mark_chain, clock_ahead_ms, freezes, is_revoked FROM bursar_fleet.hello($1, $2, $3, $4, $5, $6)",
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
        speaks(value(&row, 0)?)?;
        let orders = FleetOrders::parse(value(&row, 4)?);
        let unknown = || FleetError::Refused("its orders cannot be read".to_owned());
        Ok(Standing {
            mark_seq: seq(&row, 1)?,
            chain: chain(&row, 2)?,
            clock_ahead_ms: value(&row, 3)?,
            orders: orders.ok_or_else(unknown)?,
            is_revoked: value(&row, 5)?,
        })
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
        let row = self
            .one(
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
        let verdict: String = value(&row, 0)?;
        let (mark_seq, chain) = (seq(&row, 1)?, chain(&row, 2)?);
        match verdict.as_str() {
            "taken" => Ok(Taken::All { mark_seq, chain }),
            "behind" => Ok(Taken::Behind { mark_seq, chain }),
            "fork" => Ok(Taken::Fork),
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
        self.call(
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

    pub(super) async fn one(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, FleetError> {
        let rows = self.call(sql, parameters).await?;
        let first = rows.into_iter().next();
        first.ok_or_else(|| FleetError::Refused("it answered nothing".to_owned()))
    }

    pub(super) async fn call(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, FleetError> {
        in_time(self.client.query_typed(sql, parameters)).await
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
) -> Result<T, FleetError> {
    match timeout(CALL_MAX, call).await {
        Ok(answered) => answered.map_err(FleetError::from),
        Err(_) => Err(FleetError::Slow),
    }
}

// === impl FleetError ===

impl From<tokio_postgres::Error> for FleetError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            return Self::Unreachable(chain_of(&error));
        };
        let missing = [
            SqlState::INVALID_SCHEMA_NAME,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_TABLE,
        ];
        match said.code().code() {
            "BF001" => Self::Unknown,
            "BF002" => Self::Revoked,
            "BF004" => Self::BadCode,
            "BF008" => Self::Copies,
            _ if missing.contains(said.code()) => Self::NoSchema,
            _ if *said.code() == SqlState::INSUFFICIENT_PRIVILEGE => Self::NotAllowed,
            code => Self::Refused(format!("{} ({code})", said.message())),
        }
    }
}

/// An error and what caused it: the driver's own text is "error connecting to server".
fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
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

/// Numbers of lines, times and amounts are far below 2^63.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn value<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    at: usize,
) -> Result<T, FleetError> {
    row.try_get(at).map_err(|error| {
        FleetError::Refused(format!("its answer cannot be read: {}", chain_of(&error)))
    })
}

pub(super) fn seq(row: &Row, at: usize) -> Result<u64, FleetError> {
    let seq: i64 = value(row, at)?;
    u64::try_from(seq).map_err(|_| FleetError::Refused("it answered a negative number".to_owned()))
}

fn chain(row: &Row, at: usize) -> Result<Chain, FleetError> {
    let bytes: Option<Vec<u8>> = value(row, at)?;
    Chain::from_bytes(bytes.unwrap_or_default())
        .ok_or_else(|| FleetError::Refused("it answered no hash".to_owned()))
}
