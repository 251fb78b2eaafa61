//! What the translation of a dialect costs in CPU: a request to a chat completion, and the answer back to a document
//! and to its events, in sizes of 100, 200 and 400 KB; and conversations of 2,000, 4,000 and 8,000 items.
//! `make bench-translate`.
//!
//! Why: the requests of agents are large, and every turn repeats the whole conversation. What grows with the square of
//! one makes the last turns of a long session slow, on a thread that serves every app.
//!
//! Promise: CPU of one thread as the scheduler counts it, the median of several rounds, so what else runs on the machine
//! counts little. Ends with a failure where a request of 100 KB and its answer of 100 KB, given as a stream or live,
//! cost more than a millisecond together, or where four times the size costs more than six times as much.

mod sizes;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bursar::money::MicroUsd;
use bursar::protocol::translate::responses::live::Live;
use bursar::protocol::translate::{AnswerFacts, messages, responses};
use rustix::time::{ClockId, clock_gettime};

use self::sizes::{Enough, answer, chunks, chunks_sent, messages_request, responses_request};

/// The program's. The system's gives a buffer of some hundred kilobytes back each time, and has its pages cleared anew.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A request and its answer, as the issue of the translated routes has it.
const BOUND: Duration = Duration::from_millis(1);

/// What four times the size may cost, times what the size costs: four, and room for caches that are too small.
const GROWTH_MAX: f64 = 6.0;

const KB: usize = 1_000;

const BYTES: [usize; 3] = [100 * KB, 200 * KB, 400 * KB];

const ITEMS: [usize; 3] = [2_000, 4_000, 8_000];

const ROUNDS: usize = 15;

/// CPU that a round takes at least: the scheduler's count is coarse beside one translation.
const ROUND: Duration = Duration::from_millis(20);

const FACTS: AnswerFacts<'static> = AnswerFacts {
    entry: "0123456789abcdef0123456789abcdef",
    created_s: 1_764_000_000,
    cost: Some(MicroUsd::new(1_857)),
};

/// One line of the table.
struct Row {
    what: &'static str,
    costs: [Duration; 3],
}

fn main() -> ExitCode {
    let by_size = [
        Row::of("responses: request", BYTES, &responses_asked),
        Row::of("responses: answer, whole", BYTES, &responses_whole),
        Row::of("responses: answer, streamed", BYTES, &responses_streamed),
        Row::of("responses: answer, live", BYTES, &responses_live),
        Row::of("responses: live, of that text", BYTES, &responses_live_text),
        Row::of("messages: request", BYTES, &messages_asked),
        Row::of("messages: answer, whole", BYTES, &messages_whole),
        Row::of("messages: answer, streamed", BYTES, &messages_streamed),
    ];
    print_head(BYTES.map(|bytes| format!("{} KB", bytes / KB)));
    by_size.iter().for_each(Row::print);
    let by_items = [
        Row::of("responses: conversation", ITEMS, &|items| {
            responses_of(responses_request(Enough::Items(items)))
        }),
        Row::of("messages: conversation", ITEMS, &|items| {
            messages_of(messages_request(Enough::Items(items)))
        }),
    ];
    println!();
    print_head(ITEMS.map(|items| format!("{items} items")));
    by_items.iter().for_each(Row::print);
    println!();
    let [asked, _, streamed, live, _, asked_too, _, streamed_too] = &by_size;
    let sums = [
        ("responses, streamed", asked.costs[0] + streamed.costs[0]),
        ("responses, live", asked.costs[0] + live.costs[0]),
        (
            "messages, streamed",
            asked_too.costs[0] + streamed_too.costs[0],
        ),
    ];
    let mut is_met = true;
    for (what, sum) in sums {
        let fits = sum <= BOUND;
        is_met &= fits;
        let verdict = if fits { "within" } else { "ABOVE" };
        println!(
            "{what}: 100 KB and its answer: {} us, {verdict} {} us",
            sum.as_micros(),
            BOUND.as_micros()
        );
    }
    for row in by_size.iter().chain(&by_items) {
        if row.growth() > GROWTH_MAX {
            is_met = false;
            println!("{} grows by more than its size", row.what);
        }
    }
    match is_met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// One translation, to be run again and again.
type Work = Box<dyn Fn()>;

fn responses_of(request: String) -> Work {
    Box::new(move || {
        let translated = responses::request::translate(request.as_bytes(), &|_| None);
        black_box(translated.expect("a request that is translated"));
    })
}

fn responses_asked(bytes: usize) -> Work {
    responses_of(responses_request(Enough::Bytes(bytes)))
}

/// What the answer's translation has to know of a small request with the same tools.
fn responses_turn() -> responses::Turn {
    let request = responses_request(Enough::Items(1));
    let translated = responses::request::translate(request.as_bytes(), &|_| None);
    translated.expect("a request that is translated").turn
}

fn responses_whole(bytes: usize) -> Work {
    let (turn, answer) = (responses_turn(), answer(bytes));
    Box::new(move || {
        let document = responses::answer::translate(&turn, answer.as_bytes(), FACTS);
        black_box(document.expect("a document"));
    })
}

fn responses_streamed(bytes: usize) -> Work {
    let (turn, answer) = (responses_turn(), answer(bytes));
    Box::new(move || {
        let document = responses::answer::translate(&turn, answer.as_bytes(), FACTS);
        let events = responses::events::of(&document.expect("a document"));
        black_box(events.expect("events"));
    })
}

/// An answer that takes so many bytes on its way here, as a whole one does.
fn responses_live(bytes: usize) -> Work {
    live(chunks_sent(bytes))
}

/// The same text as that of the whole answer, in pieces of some letters: twenty times as many bytes.
fn responses_live_text(bytes: usize) -> Work {
    live(chunks(bytes))
}

fn live(chunks: Vec<String>) -> Work {
    let turn = Arc::new(responses_turn());
    Box::new(move || {
        let mut live = Live::new(Arc::clone(&turn), FACTS.entry.to_owned(), FACTS.created_s);
        for chunk in &chunks {
            live.hear(chunk.as_bytes());
            black_box(live.events());
        }
        let ending = live.ends(FACTS.cost);
        assert!(ending.document.is_some(), "an answer that can be given");
    })
}

fn messages_of(request: String) -> Work {
    Box::new(move || {
        let translated = messages::request::translate(request.as_bytes());
        black_box(translated.expect("a request that is translated"));
    })
}

fn messages_asked(bytes: usize) -> Work {
    messages_of(messages_request(Enough::Bytes(bytes)))
}

fn messages_turn() -> messages::Turn {
    let request = messages_request(Enough::Items(1));
    let translated = messages::request::translate(request.as_bytes());
    translated.expect("a request that is translated").turn
}

fn messages_whole(bytes: usize) -> Work {
    let (turn, answer) = (messages_turn(), answer(bytes));
    Box::new(move || {
        let document = messages::answer::translate(&turn, answer.as_bytes(), FACTS);
        black_box(document.expect("a document"));
    })
}

fn messages_streamed(bytes: usize) -> Work {
    let (turn, answer) = (messages_turn(), answer(bytes));
    Box::new(move || {
        let document = messages::answer::translate(&turn, answer.as_bytes(), FACTS);
        black_box(messages::events::of(&document.expect("a document")));
    })
}

// === impl Row ===

impl Row {
    fn of(what: &'static str, sizes: [usize; 3], work: &dyn Fn(usize) -> Work) -> Self {
        let costs = sizes.map(|size| measured(&work(size)));
        Self { what, costs }
    }

    fn growth(&self) -> f64 {
        let [least, _, most] = self.costs;
        most.as_secs_f64() / least.as_secs_f64()
    }

    fn print(&self) {
        let costs = self
            .costs
            .map(|cost| format!("{:.0}", cost.as_secs_f64() * 1e6));
        let [first, second, third] = costs;
        println!(
            "| {:<28} | {first:>11} | {second:>11} | {third:>11} | × {:.1} |",
            self.what,
            self.growth()
        );
    }
}

fn print_head([first, second, third]: [String; 3]) {
    println!(
        "| {:<28} | {first:>11} | {second:>11} | {third:>11} | growth |",
        "CPU, us"
    );
    println!("|---|---|---|---|---|");
}

/// The median of the rounds, for one run.
fn measured(work: &dyn Fn()) -> Duration {
    // The first run is also the warm-up.
    let mut runs = 1;
    while round(work, runs) < ROUND {
        runs *= 2;
    }
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| round(work, runs) / runs).collect();
    rounds.sort();
    rounds[ROUNDS / 2]
}

fn round(work: &dyn Fn(), runs: u32) -> Duration {
    let began = cpu();
    for _ in 0..runs {
        work();
    }
    cpu() - began
}

/// What this thread has used.
fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(used.tv_sec).expect("a time that was used");
    let nanoseconds = u32::try_from(used.tv_nsec).expect("less than a second");
    Duration::new(seconds, nanoseconds)
}
