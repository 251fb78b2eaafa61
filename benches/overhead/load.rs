//! The workloads: a closed loop, an open loop, many slow streams at once, and connections that do nothing.
//!
//! Promise: CPU clocks are read with connections open and warm; every loop is bounded in time and count, and
//! an answer that did not come counts as an error.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::ask::{Ask, Wanted};
use crate::clock::{Ticks, nanoseconds};
use crate::meter::{Cost, Meter};
use crate::numbers::Spread;
use crate::wire::{Answer, Connection};

/// What a workload came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    pub answers: u64,
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
    /// Most resident memory since the proxy began, KiB, summed over its processes.
    pub peak_kib: u64,
    /// Of one idle connection.
    pub kib_each: f64,
    /// Cores that others kept busy meanwhile.
    pub others: f64,
}

/// Requests that nobody waits for before the next one is due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub per_second: u32,
    pub connections: usize,
    pub span: Duration,
    /// Before it, not counted.
    pub warm_up: Duration,
    /// What is asked for, by the number of the request.
    pub mix: fn(u64) -> Ask,
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

/// Moments at which a request was to be sent and for which no connection was free yet.
#[derive(Default)]
struct Due {
    moments: RefCell<VecDeque<Instant>>,
    more: Notify,
}

/// A broken target must not hang the run.
const LONGEST: Duration = Duration::from_secs(30);

/// A loop gives up on a target that fails so often.
const ERRORS_MAX: u64 = 1_000;

/// Connections that are opened side by side where many are wanted.
const OPENERS: usize = 8;

const WARM_UP_REQUESTS: usize = 200;

/// Time for a process to notice what changed.
const SETTLE: Duration = Duration::from_millis(400);

/// Requests, one after the other on each connection, for a time. The connections begin within the first part
/// of the warm-up, so that streams do not run in step.
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
    let warm_up = (span / 5).max(ask.answer.lasts() * 2);
    let began = Instant::now();
    for index in 0..connections {
        let mut connection = Connection::open(address).await?;
        let tally = Rc::clone(&tally);
        let share = ask
            .answer
            .lasts()
            .mul_f64(index as f64 / connections as f64);
        tasks.spawn_local_on(
            async move {
                sleep_until(began + share).await;
                while !tally.stop.get() && tally.errors.get() < ERRORS_MAX {
                    if !tally.call(&mut connection, ask, Instant::now()).await {
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
            sleep(warm_up).await;
            let before = meter.read();
            tally.counting.set(true);
            sleep(span).await;
            tally.counting.set(false);
            let cost = meter.read().since(&before);
            tally.stop.set(true);
            finish(tasks).await?;
            Ok(tally.measured(&cost, meter))
        })
        .await
}

/// Requests at a rate, each timed from the moment at which it was to be sent, whether or not a connection was
/// free then. Counted until the last one is answered.
pub async fn open_loop(address: SocketAddr, pace: Pace, meter: &Meter) -> io::Result<Measured> {
    let tally = Rc::new(Tally::default());
    let due = Rc::new(Due::default());
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for _ in 0..pace.connections {
        let mut connection = Connection::open(address).await?;
        let (tally, due) = (Rc::clone(&tally), Rc::clone(&due));
        tasks.spawn_local_on(
            async move {
                while let Some(moment) = due.next(&tally.stop).await {
                    let ask = (pace.mix)(tally.serial.get());
                    if !tally.call(&mut connection, ask, moment).await {
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
            send_due(&tally, &due, pace, pace.warm_up).await?;
            let before = meter.read();
            tally.counting.set(true);
            send_due(&tally, &due, pace, pace.span).await?;
            tally.counting.set(false);
            let cost = meter.read().since(&before);
            tally.stop.set(true);
            due.more.notify_waiters();
            finish(tasks).await?;
            Ok(tally.measured(&cost, meter))
        })
        .await
}

/// Sends at a pace for a time, and waits until everything that was due has ended.
async fn send_due(tally: &Tally, due: &Due, pace: Pace, span: Duration) -> io::Result<()> {
    let every = Duration::from_secs(1) / pace.per_second;
    let wanted = (span.as_secs_f64() * f64::from(pace.per_second)) as u64;
    let mut ticks = Ticks::every(every)?;
    let began = Instant::now();
    let ended_before = tally.ended();
    let mut sent = 0;
    while sent < wanted && tally.errors.get() < ERRORS_MAX {
        for _ in 0..ticks.next().await?.min(wanted - sent) {
            sent += 1;
            let moment = every.mul_f64(sent as f64);
            due.moments.borrow_mut().push_back(began + moment);
            due.more.notify_one();
        }
    }
    let last = Instant::now();
    while tally.ended() - ended_before < sent {
        if last.elapsed() > LONGEST {
            return Err(io::Error::other("requests of an open loop hung"));
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Streams that begin one after the other and then run side by side, one on each connection.
pub async fn at_once(
    address: SocketAddr,
    ask: Ask,
    connections: usize,
    ramp: Duration,
    meter: &Meter,
) -> io::Result<Measured> {
    let tally = Rc::new(Tally::default());
    let local = LocalSet::new();
    let mut open = Vec::new();
    for _ in 0..connections {
        match Connection::open(address).await {
            Ok(connection) => open.push(connection),
            Err(_) => tally.fail(),
        }
    }
    let mut tasks = JoinSet::new();
    let before = meter.read();
    tally.counting.set(true);
    let began = Instant::now();
    for (index, mut connection) in open.into_iter().enumerate() {
        let tally = Rc::clone(&tally);
        let share = ramp.mul_f64(index as f64 / connections as f64);
        tasks.spawn_local_on(
            async move {
                sleep_until(began + share).await;
                tally.call(&mut connection, ask, Instant::now()).await;
            },
            &local,
        );
    }
    local
        .run_until(async {
            finish(tasks).await?;
            let cost = meter.read().since(&before);
            Ok(tally.measured(&cost, meter))
        })
        .await
}

/// Opens connections, sends one request on each, keeps them, and says what memory each took.
pub async fn idle(address: SocketAddr, connections: usize, meter: &Meter) -> io::Result<Measured> {
    let tally = Rc::new(Tally::default());
    let mut first = Connection::open(address).await?;
    for _ in 0..WARM_UP_REQUESTS {
        tally.call(&mut first, Ask::JSON, Instant::now()).await;
    }
    drop(first);
    sleep(SETTLE).await;
    let before_kib = meter.resident_kib();
    let before = meter.read();
    tally.counting.set(true);
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for opener in 0..OPENERS {
        let count = connections / OPENERS + usize::from(opener < connections % OPENERS);
        let tally = Rc::clone(&tally);
        tasks.spawn_local_on(
            async move {
                let mut open = Vec::new();
                for _ in 0..count {
                    // One refusal says enough: the row has no figure then.
                    let Ok(mut connection) = Connection::open(address).await else {
                        tally.fail();
                        break;
                    };
                    if !tally.call(&mut connection, Ask::JSON, Instant::now()).await {
                        break;
                    }
                    open.push(connection);
                }
                open
            },
            &local,
        );
    }
    let mut open = Vec::new();
    local
        .run_until(async {
            while let Some(ended) = tasks.join_next().await {
                open.extend(ended.unwrap_or_default());
            }
        })
        .await;
    sleep(SETTLE).await;
    let grown_kib = meter.resident_kib().saturating_sub(before_kib);
    let kib_each = grown_kib as f64 / open.len().max(1) as f64;
    drop(open);
    sleep(SETTLE).await;
    Ok(Measured {
        kib_each,
        ..tally.measured(&meter.read().since(&before), meter)
    })
}

async fn finish(mut tasks: JoinSet<()>) -> io::Result<()> {
    let all = async { while tasks.join_next().await.is_some() {} };
    let ended = timeout(LONGEST * 2, all).await;
    ended.map_err(|_| io::Error::other("requests hung"))
}

// === impl Wanted ===

impl Wanted {
    /// How long an answer takes by itself.
    fn lasts(self) -> Duration {
        match self {
            Self::Json => Duration::ZERO,
            Self::Stream { chunks, every } => every * chunks,
        }
    }
}

// === impl Due ===

impl Due {
    /// The next moment at which a request was to be sent; `None` when there will be none.
    async fn next(&self, stop: &Cell<bool>) -> Option<Instant> {
        loop {
            let woken = self.more.notified();
            if let Some(moment) = self.moments.borrow_mut().pop_front() {
                return Some(moment);
            }
            if stop.get() {
                return None;
            }
            woken.await;
        }
    }
}

// === impl Tally ===

impl Tally {
    /// One request, timed from `due`; false when the connection is of no more use. It counts when it ends
    /// while counting is on, wherever it began: in a steady state as many begin before as end after.
    async fn call(&self, connection: &mut Connection, ask: Ask, due: Instant) -> bool {
        let serial = self.serial.get();
        self.serial.set(serial + 1);
        let answer = timeout(LONGEST, connection.call(&ask.request(serial))).await;
        let took = nanoseconds(due.elapsed());
        match answer {
            Ok(Ok(answer)) if answer.status == 200 => {
                self.good.set(self.good.get() + 1);
                self.bare
                    .set(self.bare.get() + u64::from(!answer.has_receipt));
                if self.counting.get() {
                    self.keep(answer, took);
                }
                true
            }
            _ => {
                self.fail();
                false
            }
        }
    }

    fn fail(&self) {
        self.errors.set(self.errors.get() + 1);
    }

    fn keep(&self, answer: Answer, took: u64) {
        self.latency.borrow_mut().push(took);
        self.chunks.borrow_mut().extend(&answer.delays_ns);
        self.first.borrow_mut().extend(answer.delays_ns.first());
    }

    fn ended(&self) -> u64 {
        self.good.get() + self.errors.get()
    }

    fn measured(&self, cost: &Cost, meter: &Meter) -> Measured {
        let latency = self.latency.take();
        let answers = latency.len() as u64;
        let each = |cpu_ns: u64| cpu_ns as f64 / 1000.0 / answers.max(1) as f64;
        Measured {
            answers,
            errors: self.errors.get(),
            bare: self.bare.get(),
            per_second: answers as f64 / cost.wall.as_secs_f64(),
            proxy_us: each(cost.proxy_ns),
            path_us: each(cost.proxy_ns + cost.ends_ns),
            latency: Spread::of(latency),
            first_chunk: Spread::of(self.first.take()),
            chunk: Spread::of(self.chunks.take()),
            peak_kib: meter.peak_kib(),
            kib_each: 0.0,
            others: cost.others,
        }
    }
}
