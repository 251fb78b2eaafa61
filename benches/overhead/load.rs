//! The workloads: a closed loop of requests or streams, many slow streams at once, and connections
//! that do nothing.
//!
//! Promise: only what begins and ends between two readings of the CPU clocks is counted, with
//! connections open and warm; every good answer is counted for the comparison with the ledger.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::clock::nanoseconds;
use crate::meter::{Cost, Meter};
use crate::numbers::Spread;
use crate::wire::{Answer, Connection};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Json,
    Stream { chunks: u32, every: Duration },
}

/// What a workload came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    pub answers: u64,
    /// Good answers, those of the warm-up included: what the ledger must have.
    pub good: u64,
    pub errors: u64,
    /// Good answers without a receipt.
    pub bare: u64,
    pub per_second: f64,
    /// CPU of the proxy, and of load, proxy and echo together, in microseconds an answer.
    pub proxy_us: f64,
    pub path_us: f64,
    pub latency: Spread,
    pub first_chunk: Spread,
    pub chunk: Spread,
    /// Highest sum of resident memory, KiB.
    pub peak_kib: u64,
    /// Cores that others kept busy meanwhile.
    pub others: f64,
}

/// What the connections of a workload fill in.
#[derive(Default)]
struct Tally {
    counting: Cell<bool>,
    stop: Cell<bool>,
    serial: Cell<u64>,
    good: Cell<u64>,
    errors: Cell<u64>,
    bare: Cell<u64>,
    latency: RefCell<Vec<u64>>,
    first: RefCell<Vec<u64>>,
    chunks: RefCell<Vec<u64>>,
}

/// A broken target must not hang the run.
const LONGEST: Duration = Duration::from_secs(30);

const MEMORY_EVERY: Duration = Duration::from_millis(100);

/// Requests, one after the other on each connection, for a time.
pub async fn closed_loop(
    address: SocketAddr,
    ask: Ask,
    connections: usize,
    span: Duration,
    meter: &Meter,
) -> io::Result<Measured> {
    let tally = Rc::new(Tally::default());
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let mut connection = Connection::open(address).await?;
        let tally = Rc::clone(&tally);
        tasks.spawn_local_on(
            async move {
                while !tally.stop.get() {
                    if !tally.call(&mut connection, ask).await {
                        match Connection::open(address).await {
                            Ok(fresh) => connection = fresh,
                            Err(_) => return,
                        }
                    }
                }
            },
            &local,
        );
    }
    local
        .run_until(async {
            sleep(span / 5).await;
            let before = meter.read();
            tally.counting.set(true);
            sleep(span).await;
            tally.counting.set(false);
            let cost = meter.read().since(&before);
            tally.stop.set(true);
            finish(tasks).await?;
            Ok(tally.measured(&cost, meter.resident_kib()))
        })
        .await
}

/// Streams that begin one after the other and then run side by side, one on each connection.
pub async fn streams_at_once(
    address: SocketAddr,
    ask: Ask,
    streams: usize,
    ramp: Duration,
    meter: &Meter,
) -> io::Result<Measured> {
    let tally = Rc::new(Tally::default());
    let local = LocalSet::new();
    let mut connections = Vec::new();
    for _ in 0..streams {
        connections.push(Connection::open(address).await?);
    }
    let mut tasks = JoinSet::new();
    let before = meter.read();
    tally.counting.set(true);
    let began = Instant::now();
    for (index, mut connection) in connections.into_iter().enumerate() {
        let tally = Rc::clone(&tally);
        let share = ramp.mul_f64(index as f64 / streams as f64);
        tasks.spawn_local_on(
            async move {
                sleep_until(began + share).await;
                tally.call(&mut connection, ask).await;
            },
            &local,
        );
    }
    local
        .run_until(async {
            let mut peak_kib = meter.resident_kib();
            while tally.ended() < streams as u64 && began.elapsed() < LONGEST {
                sleep(MEMORY_EVERY).await;
                peak_kib = peak_kib.max(meter.resident_kib());
            }
            let cost = meter.read().since(&before);
            tally.counting.set(false);
            finish(tasks).await?;
            Ok(tally.measured(&cost, peak_kib))
        })
        .await
}

/// Opens connections, sends one request on each, and keeps them.
pub async fn idle(address: SocketAddr, connections: usize) -> io::Result<(Vec<Connection>, u64)> {
    let tally = Tally::default();
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(address).await?;
        if !tally.call(&mut connection, Ask::Json).await {
            return Err(io::Error::other("an idle connection's one request failed"));
        }
        open.push(connection);
    }
    Ok((open, tally.good.get()))
}

async fn finish(mut tasks: JoinSet<()>) -> io::Result<()> {
    let all = async { while tasks.join_next().await.is_some() {} };
    let ended = timeout(LONGEST, all).await;
    ended.map_err(|_| io::Error::other("requests hung"))
}

impl Tally {
    /// One request; false when the connection is of no more use.
    async fn call(&self, connection: &mut Connection, ask: Ask) -> bool {
        let serial = self.serial.get();
        self.serial.set(serial + 1);
        let began = Instant::now();
        let counted = self.counting.get();
        let answer = timeout(LONGEST, connection.call(&request(ask, serial))).await;
        let took = nanoseconds(began.elapsed());
        match answer {
            Ok(Ok(answer)) if answer.status == 200 => {
                self.good.set(self.good.get() + 1);
                self.bare
                    .set(self.bare.get() + u64::from(!answer.has_receipt));
                if counted && self.counting.get() {
                    self.keep(answer, took);
                }
                true
            }
            _ => {
                self.errors.set(self.errors.get() + 1);
                false
            }
        }
    }

    fn keep(&self, answer: Answer, took: u64) {
        self.latency.borrow_mut().push(took);
        self.chunks.borrow_mut().extend(&answer.delays_ns);
        self.first.borrow_mut().extend(answer.delays_ns.first());
    }

    fn ended(&self) -> u64 {
        self.good.get() + self.errors.get()
    }

    fn measured(&self, cost: &Cost, peak_kib: u64) -> Measured {
        let latency = self.latency.take();
        let answers = latency.len() as u64;
        let each = |cpu_ns: u64| cpu_ns as f64 / 1000.0 / answers.max(1) as f64;
        Measured {
            answers,
            good: self.good.get(),
            errors: self.errors.get(),
            bare: self.bare.get(),
            per_second: answers as f64 / cost.wall.as_secs_f64(),
            proxy_us: each(cost.proxy_ns),
            path_us: each(cost.proxy_ns + cost.ends_ns),
            latency: Spread::of(latency),
            first_chunk: Spread::of(self.first.take()),
            chunk: Spread::of(self.chunks.take()),
            peak_kib,
            others: cost.others,
        }
    }
}

/// A request of about 600 bytes. Each is another prompt, for equal ones would be a case of their own.
fn request(ask: Ask, serial: u64) -> Vec<u8> {
    let stream = match ask {
        Ask::Json => String::new(),
        Ask::Stream { chunks, every } => format!(
            r#""stream":true,"user":"chunks={chunks} every_us={}","#,
            every.as_micros()
        ),
    };
    let text = "Tell me, in a few plain words, what this quarter's invoices add up to. ".repeat(6);
    let body = format!(
        r#"{{"model":"auto",{stream}"messages":[{{"role":"system","content":"You are terse."}},{{"role":"user","content":"{serial:012} {text}"}}],"temperature":0.2,"max_tokens":80}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n\
         Authorization: Bearer of-the-app\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nUser-Agent: OpenAI/Python 2.0.0\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
