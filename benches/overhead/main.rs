//! What bursar costs: CPU, latency, stream delay and memory of the release binary with ledger and
//! metrics on, beside the same requests sent straight to the far end and through nginx.
//!
//! Why ratios: on a shared machine only numbers of one and the same run can be compared. Every
//! repetition starts all processes afresh and the order of targets rotates; a ratio is taken inside
//! one repetition; the tables show the median. Everything is on loopback; load and far end have one
//! thread each, so a proxy competes with them, as a sidecar does with its application.
//!
//! | workload | what |
//! |---|---|
//! | W1a, W1b | a completion of 600 B, 1 and 64 connections, one request after the other |
//! | W2b | streams of 100 chunks (about 170 B, written one by one, no pause), 64 connections |
//! | W3r | 500 streams at once of 50 chunks, 50 ms apart |
//! | idle | 500 connections, one request on each, then nothing |

mod args;
mod child;
mod clock;
mod disk;
mod echo;
mod load;
mod meter;
mod notes;
mod numbers;
mod procfs;
mod report;
mod run;
mod target;
mod wire;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::args::{Args, USAGE};
use crate::run::{Turn, turn};
use crate::target::Target;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => return failed(&why),
    };
    if !args.bench && !args.echo {
        // `cargo test --all-targets` comes by here, too.
        println!("nothing measured; start it with:\n{USAGE}");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(async {
            if args.echo {
                echo::serve().await
            } else {
                measure(&args).await
            }
        });
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

/// Runs everything and prints the tables.
async fn measure(args: &Args) -> io::Result<()> {
    let targets = targets(args);
    let base = args
        .directory
        .join(format!("overhead-{}", std::process::id()));
    let mut turns: Vec<Turn> = Vec::new();
    for repetition in 0..args.repetitions {
        for place in 0..targets.len() {
            let Some(target) = targets.get((place + repetition) % targets.len()) else {
                continue;
            };
            eprintln!(
                "repetition {} of {}: {target}",
                repetition + 1,
                args.repetitions
            );
            fs::create_dir_all(&base)?;
            let told = turn(args, target, repetition, &base).await;
            let removed = fs::remove_dir_all(&base);
            turns.push(told.map_err(|why| io::Error::other(format!("{target}: {why}")))?);
            removed?;
        }
    }
    println!("{}{}", report::tables(&turns), notes::notes(&turns));
    if let Some(path) = &args.json {
        fs::write(path, serde_json::to_string_pretty(&turns)?)?;
    }
    match notes::ledger_differences(&turns).as_slice() {
        [] => Ok(()),
        differences => Err(io::Error::other(differences.join("; "))),
    }
}

/// Targets in their first order.
fn targets(args: &Args) -> Vec<Target> {
    let mut targets = Vec::new();
    if args.has_target("direct") {
        targets.push(Target::Direct);
    }
    if args.has_target("nginx") {
        match args.nginx.clone() {
            Some(program) => targets.push(Target::Nginx { program }),
            None => eprintln!("SKIPPED nginx: `make bench` provides one, --nginx names it"),
        }
    }
    let own = (
        "bursar".to_owned(),
        PathBuf::from(env!("CARGO_BIN_EXE_bursar")),
    );
    for (name, program) in [own].into_iter().chain(args.binaries.iter().cloned()) {
        for durability in ["power", "process"] {
            if args.has_target(durability) {
                targets.push(Target::Bursar {
                    name: name.clone(),
                    program: program.clone(),
                    durability,
                });
            }
        }
    }
    targets
}
