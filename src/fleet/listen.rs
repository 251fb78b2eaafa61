//! Hears at once that an order changed: a connection of its own, on which the database is asked to send notifications.
//!
//! Why: orders are heard with each hello, some half a minute apart; a freeze should not take that long where it need
//! not.
//!
//! | between this machine and the database | |
//! |---|---|
//! | nothing | the session was begun with a random word; the database finds the word, and listens |
//! | a pooler that gives each transaction another session | it keeps the word to itself or refuses it; nothing is left on a connection that others get |
//!
//! Promise: a hint, never more. A notification only has the hello come early, at most once in [`HINT_PAUSE`]
//! however many are sent; where none comes, nothing but that is missing. The connection is always read, so that the
//! database's queue does not wait for it.

use std::fmt::Write;
use std::future::{pending, poll_fn};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;

/// Shortest time between two hints that are heeded.
const HINT_PAUSE: Duration = Duration::from_secs(1);

/// Machines that hear one notification do not all come at the same moment.
const SPREAD_MAX: Duration = Duration::from_millis(500);

/// Longest wait for the database's answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A way through a translating router is forgotten after some minutes of silence.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Until a connection that ended is made again.
const BROKEN_PAUSE: Duration = Duration::from_secs(30);

/// Until one that was not wanted is tried again: a pooler may have been taken away, or others have left.
const UNWANTED_PAUSE: Duration = Duration::from_secs(60 * 60);

/// As the database's administrator sees it.
const APPLICATION: &str = "bursar listening";

/// Says when to come early.
pub struct Hints {
    heard: Notify,
    /// No hint is heeded before.
    earliest: Mutex<Instant>,
}

/// Why nothing is heard now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// The connection ended, or could not be made.
    Broken,
    /// The database, or a pooler before it, does not have it.
    Unwanted,
}

// === impl Hints ===

impl Hints {
    pub fn new() -> Self {
        Self {
            heard: Notify::new(),
            earliest: Mutex::new(Instant::now()),
        }
    }

    /// Ends when it is time to come early. Dropped before, it takes no hint with it.
    pub async fn next(&self) {
        let earliest = *self.earliest.lock();
        sleep_until(earliest).await;
        self.heard.notified().await;
        *self.earliest.lock() = Instant::now() + HINT_PAUSE;
    }

    /// Listens as long as it is polled; `address` is asked for before each connection.
    pub async fn listen<F: Future<Output = Option<Address>>>(&self, address: impl Fn() -> F) {
        let mut last = None;
        loop {
            let silence = match address().await {
                Some(address) => self.hear(&address).await,
                None => Silence::Broken,
            };
            if silence == Silence::Unwanted && last != Some(silence) {
                tracing::info!(
                    "the fleet's orders are heard with each hello: a pooler stands before its database, or enough others listen"
                );
            }
            last = Some(silence);
            // So that many that were cut off together do not come together.
            sleep(silence.pause().mul_f64(0.9 + share() * 0.2)).await;
        }
    }

    async fn hear(&self, address: &Address) -> Silence {
        let Some(session) = random_word() else {
            return Silence::Broken;
        };
        let mut config = address.config.clone();
        let word = format!("-c bursar.session={session}");
        let options = match config.get_options() {
            Some(options) => format!("{options} {word}"),
            None => word,
        };
        config
            .options(options)
            .application_name(APPLICATION)
            .keepalives_idle(KEEPALIVE);
        let ended = match &address.tls {
            Some(tls) => {
                let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                self.hear_on(&config, tls, &session).await
            }
            None => self.hear_on(&config, NoTls, &session).await,
        };
        ended.unwrap_or_else(|error| silence_of(&error))
    }

    async fn hear_on<T: MakeTlsConnect<Socket>>(
        &self,
        config: &Config,
        tls: T,
        session: &str,
    ) -> Result<Silence, tokio_postgres::Error> {
        let Ok(connected) = timeout(ANSWER_MAX, config.connect(tls)).await else {
            return Ok(Silence::Broken);
        };
        let (client, mut connection) = connected?;
        let delay = SPREAD_MAX.mul_f64(share());
        let messages = async {
            let mut due: Option<Instant> = None;
            loop {
                let next = poll_fn(|context| connection.poll_message(context));
                tokio::select! {
                    message = next => match message.transpose() {
                        Ok(Some(AsyncMessage::Notification(_))) => {
                            due.get_or_insert_with(|| Instant::now() + delay);
                        }
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => return Silence::Broken,
                    },
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                        due = None;
                        self.heard.notify_one();
                    }
                }
            }
        };
        tokio::select! {
            silence = refused(&client, session) => silence,
            silence = messages => Ok(silence),
        }
    }
}

/// Does not end while the database listens.
async fn refused(client: &Client, session: &str) -> Result<Silence, tokio_postgres::Error> {
    let sql = "SELECT bursar_fleet.listen_here($1)";
    let parameters = [(&session as _, Type::TEXT)];
    let Ok(answered) = timeout(ANSWER_MAX, client.query_typed(sql, &parameters)).await else {
        return Ok(Silence::Broken);
    };
    let rows = answered?;
    let verdict: Option<&str> = rows.first().and_then(|row| row.try_get(0).ok());
    match verdict {
        Some("listening") => {
            tracing::info!("the fleet's orders are heard at once");
            pending().await
        }
        Some(_) | None => Ok(Silence::Unwanted),
    }
}

/// A server that is full, starts or stops is another one soon.
fn silence_of(error: &tokio_postgres::Error) -> Silence {
    let code = error.code().map_or("", |code| code.code());
    match code.get(..2) {
        None | Some("53" | "57") => Silence::Broken,
        Some(_) => Silence::Unwanted,
    }
}

// === impl Silence ===

impl Silence {
    const fn pause(self) -> Duration {
        match self {
            Self::Broken => BROKEN_PAUSE,
            Self::Unwanted => UNWANTED_PAUSE,
        }
    }
}

/// From 0 to 1, by chance.
pub fn share() -> f64 {
    let mut bits = [0; 1];
    // Without randomness they come together.
    getrandom::fill(&mut bits).ok();
    f64::from(bits[0]) / 255.0
}

fn random_word() -> Option<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    let mut word = String::new();
    bits.iter()
        .try_for_each(|byte| write!(word, "{byte:02x}"))
        .ok()?;
    Some(word)
}
