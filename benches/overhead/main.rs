//! What bursar costs: CPU, latency, stream delay and memory of the release binary with ledger and
//! metrics on, beside the same requests sent straight to the far end, through a bare pingora proxy ("BP"),
//! nginx and HAProxy.
//!
//! Why ratios: on a shared machine only numbers of one and the same run can be compared. A ratio is taken inside
//! one repetition; the tables show medians with quartiles. Everything is on loopback; load and far end have one
//! thread each, so a proxy competes with them, as a sidecar does with its application.
//!
//! Promise: a load with errors, a target that does not start, and a ledger that differs from what the far end
//! billed are said, and end the run with a failure; they never become a number. `docs/benchmarks.md` has the
//! last full run.

mod args;
mod ask;
mod baseline;
mod child;
mod clock;
mod disk;
mod document;
mod echo;
mod goals;
mod load;
mod meter;
mod numbers;
mod procfs;
mod report;
mod rows;
mod run;
mod setting;
mod soak;
mod target;
mod verdict;
mod wire;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Args, Mode, USAGE};
use crate::rows::Row;
use crate::run::{Extent, RATES, RATES_HIGH, Run, rate_held, repetition};
use crate::setting::Setting;
use crate::target::{Kind, Target};

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => return failed(&why),
    };
    if args.mode == Mode::Nothing {
        // `cargo test --all-targets` comes by here, too.
        println!("nothing measured; start it with:\n{USAGE}");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(go(&args));
        // The echo's wait for its standard input is a thread that nothing ends.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

async fn go(args: &Args) -> io::Result<()> {
    match args.mode {
        Mode::Nothing => Ok(()),
        Mode::Echo => echo::serve().await,
        Mode::Disk(span) => {
            let cost = disk::cost(&args.directory, span)?;
            println!("{}", serde_json::to_string(&cost)?);
            Ok(())
        }
        Mode::Measure if args.soak_minutes.is_some() => soaked(args).await,
        Mode::Measure => {
            // Half an hour later would be too late to hear of it.
            for path in args.compare.iter().chain(&args.document) {
                fs::metadata(path)
                    .map_err(|why| io::Error::other(format!("{}: {why}", path.display())))?;
            }
            let run = match &args.from {
                Some(path) => serde_json::from_slice(&fs::read(path)?)?,
                None => measure(args).await?,
            };
            report(args, &run)
        }
    }
}

/// Measures everything that was asked for.
async fn measure(args: &Args) -> io::Result<Run> {
    raise_descriptors()?;
    let targets = targets(args);
    let base = std::path::absolute(&args.directory)?;
    let base = base.join(format!("overhead-{}", std::process::id()));
    fs::create_dir_all(&base)?;
    let run = measure_below(args, &targets, &base).await;
    fs::remove_dir_all(&base)?;
    run
}

async fn measure_below(args: &Args, targets: &[Target], base: &Path) -> io::Result<Run> {
    let rows = args.rows();
    let bare = targets.iter().find(|of| of.kind == Kind::PassThrough);
    let (mut rate, mut rate_high) = (None, None);
    if let Some(bare) = bare {
        let below = base.join("rate");
        if rows.contains(&Row::Rate) {
            rate = rate_held(bare, &RATES, args.span(), &below).await?;
        }
        if rows.contains(&Row::RateHigh) {
            rate_high = rate_held(bare, &RATES_HIGH, args.span(), &below).await?;
        }
    }
    let extent = Extent {
        repetitions: args.repetitions(),
        span: args.span(),
        rate,
        rate_high,
    };
    let mut run = Run {
        setting: Setting {
            span_s: extent.span.as_secs_f64(),
            rate,
            rate_high,
            arguments: args.shown(),
            ..Setting::of(targets)
        },
        repetitions: Vec::new(),
    };
    if let Some(program) = &args.daemon {
        run.setting.daemon = Some(target::daemon(program, &base.join("daemon"))?);
    }
    for number in 0..extent.repetitions {
        eprintln!("repetition {} of {}", number + 1, extent.repetitions);
        let found = repetition(targets, &rows, number, extent, base).await?;
        run.repetitions.push(found);
        if let Some(path) = &args.json {
            fs::write(path, serde_json::to_string(&run)?)?;
        }
    }
    Ok(run)
}

/// The soak, on an empty ledger and beside it on one that is full: each is compared with itself alone.
async fn soaked(args: &Args) -> io::Result<()> {
    raise_descriptors()?;
    let base = std::path::absolute(&args.directory)?;
    let base = base.join(format!("soak-{}", std::process::id()));
    let minutes = args.soak_minutes.unwrap_or_default();
    let minute = args.span.unwrap_or(soak::MINUTE);
    let bursar = targets(args).into_iter().find(|of| of.kind == Kind::Bursar);
    let bursar = bursar.ok_or_else(|| io::Error::other("no bursar is among the targets"))?;
    let full = Target {
        state: args.full_state.clone(),
        ..bursar.clone()
    };
    let (below_empty, below_full) = (base.join("empty"), base.join("full"));
    let on_empty = soak::soak(&bursar, minutes, minute, &below_empty);
    let on_full = async {
        match full.state {
            None => Ok(None),
            Some(_) => soak::soak(&full, minutes, minute, &below_full)
                .await
                .map(Some),
        }
    };
    let soaked = tokio::try_join!(on_empty, on_full);
    fs::remove_dir_all(&base)?;
    let (on_empty, on_full) = soaked?;
    let mut text = String::new();
    let mut wrong = Vec::new();
    for soaked in [Some(on_empty), on_full].into_iter().flatten() {
        text.push_str(&soaked.markdown());
        wrong.extend(soaked.failures);
    }
    println!("{text}");
    if let Some(path) = &args.document {
        document::write(path, "soak", &text)?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(wrong.join("\n       ")))
}

/// Prints and writes what was asked for; fails where the run is worth nothing.
fn report(args: &Args, run: &Run) -> io::Result<()> {
    let text = report::markdown(run);
    println!("{text}");
    // What failed of another proxy stands in the report: it says nothing of bursar.
    let wrong = verdict::failures(run, &report::bursars(run));
    if let Some(path) = &args.document {
        document::write(path, "bench", &text)?;
    }
    if let Some(path) = args.baseline.as_ref().filter(|_| wrong.is_empty()) {
        baseline::write(path, run)?;
    }
    if let Some(path) = &args.compare {
        println!("{}", baseline::compare(path, run)?);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(wrong.join("\n       ")))
}

/// Targets in their first order.
fn targets(args: &Args) -> Vec<Target> {
    let found = |kind: Kind, program: Option<PathBuf>| {
        if !args.has_target(kind.name()) {
            return None;
        }
        if program.is_none() {
            eprintln!(
                "SKIPPED {0}: not given; its columns are not measured (`make bench` sets it up, or says \
                 what to install)",
                kind.name()
            );
        }
        Some(Target {
            name: kind.name().to_owned(),
            kind,
            program: program?,
            durability: args.durability.clone(),
            state: None,
        })
    };
    let own = PathBuf::from(env!("CARGO_BIN_EXE_bursar"));
    let mut targets: Vec<Target> = [
        (Kind::Direct, Some(PathBuf::new())),
        (Kind::Nginx, args.nginx.clone()),
        (Kind::Haproxy, args.haproxy.clone()),
        (Kind::PassThrough, args.pass_through.clone()),
        (Kind::Bursar, Some(own)),
    ]
    .into_iter()
    .filter_map(|(kind, program)| found(kind, program))
    .collect();
    let more = args
        .binaries
        .iter()
        .filter(|(name, _)| args.has_target(name));
    targets.extend(more.map(|(name, program)| Target {
        name: name.clone(),
        kind: Kind::Bursar,
        program: program.clone(),
        durability: args.durability.clone(),
        state: None,
    }));
    targets
}

/// Thousands of connections take as many descriptors; what is started here inherits the limit.
fn raise_descriptors() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}
