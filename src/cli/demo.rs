//! `bursar demo`: the sandbox and bursar in front of it in one process, on free ports, with a
//! ledger of its own in a temporary directory; a short story through the door; then the ledger
//! beside the service's books.
//!
//! Everything is the product: the server is the daemon's, the requests go over sockets, and each
//! number printed was read from an answer, from the journal, or from the sandbox's books.
//!
//! Promise: nothing of an existing installation is read or written, nothing is left behind, and
//! exit code 0 means that every step did what its title says and that the difference is 0.

mod answer;
mod args;
mod books;
mod compare;
mod files;
mod reckoning;
mod scene;
mod screen;
mod stay;
mod story;
mod world;

pub use self::args::Args;
use self::files::Folder;
use self::reckoning::Reckoning;
use self::scene::Scene;
use self::screen::Screen;
use self::stay::stay;
use self::world::{Interrupt, World, failed};
use super::error::CliError;
use super::output::say;
use super::runtime::block_on_all_cores;
use crate::config::{Log, LogFormat, LogLevel};
use crate::telemetry::Logging;
use crate::telemetry::journal::LogPlace;

pub fn demo(args: Args) -> Result<(), CliError> {
    // Below this level the log would stand between the lines of the story. Without logging it runs
    // all the same.
    let log = Log {
        format: LogFormat::Text,
        level: LogLevel::Error,
        service_detail: false,
    };
    let _ = Logging::start(log, LogPlace::Plain);
    block_on_all_cores(run(args))
}

async fn run(args: Args) -> Result<(), CliError> {
    let mut interrupt = Interrupt::install()?;
    let screen = Screen::of_standard_output();
    if args.compare {
        return compare::compare(&args, &screen, &mut interrupt).await;
    }
    let folder = Folder::new().map_err(|error| failed("make a temporary directory", &error))?;
    let world = World::start(&args, &folder).await?;

    let shown = tokio::select! {
        shown = show(&screen, &world, &folder) => shown,
        () = interrupt.wait() => {
            // A sentence may have been cut short.
            let interrupted = CliError::Failed("interrupted before the story ended".to_owned());
            say("").and(Err(interrupted))
        }
    };
    let ended = match shown {
        Ok(()) if !args.once => stay(&screen, &world, &mut interrupt).await,
        shown => shown,
    };
    tokio::select! {
        () = world.stop() => ended,
        () = interrupt.wait() => {
            Err(CliError::Failed("a second signal ended it at once".to_owned()))
        }
    }
}

/// The story and the table.
async fn show(screen: &Screen, world: &World, folder: &Folder) -> Result<(), CliError> {
    screen
        .heading("bursar demo: the service's sandbox, and bursar in front of it, in one process")?;
    say("")?;
    screen.fact(
        "files",
        format_args!("{} (removed at the end)", folder.path().display()),
    )?;

    let mut wrong = story::play(Scene::new(screen, world)).await?;

    let reckoning = Reckoning::when_settled(&world.journal, &world.service()).await?;
    say("")?;
    screen.heading("the ledger beside the service's own books")?;
    say("")?;
    say(reckoning.table())?;
    say("")?;
    screen.fact("difference", reckoning.difference())?;
    wrong.extend(reckoning.wrong());
    if wrong.is_empty() {
        return screen.good(
            "result",
            "every step did what it says; ledger and books agree to the micro-dollar",
        );
    }
    for what in &wrong {
        screen.bad("WRONG", what)?;
    }
    Err(CliError::Failed(format!(
        "the demo did not do what it says: {} wrong",
        wrong.len()
    )))
}
