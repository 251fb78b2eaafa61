//! The time after the story: the demo stays up, and shows the receipts of the reader's own calls.

use std::time::Duration;

use super::answer::entry_line;
use super::reckoning::Reckoning;
use super::screen::Screen;
use super::world::{Interrupt, World};
use crate::cli::error::CliError;
use crate::cli::output::say;
use crate::ledger::entry::State;

/// How often the ledger is looked at for receipts of the reader's own calls.
const FOLLOW_PAUSE: Duration = Duration::from_millis(300);

/// Stays up, and shows receipts as they land, until a signal comes.
pub async fn stay(
    screen: &Screen,
    world: &World,
    interrupt: &mut Interrupt,
) -> Result<(), CliError> {
    let places = &world.places;
    // Before the addresses are printed: a request that comes at once is shown, too.
    let mut seen = world.journal.last_seq().await?;
    say("")?;
    screen.heading("your turn: it stays up until Ctrl-C, and your receipts land here")?;
    say("")?;
    screen.fact("base URL", places.base_url())?;
    screen.fact("agents", places.agent_url())?;
    if let Some(admin) = places.admin {
        screen.fact("status", format_args!("http://{admin}/"))?;
        screen.fact("metrics", format_args!("http://{admin}/metrics"))?;
    }
    screen.fact(
        "books",
        format_args!("http://{}/sandbox/books", places.service),
    )?;
    if let Some(admin) = places.admin {
        screen.fact("spend", format_args!("bursar spend --admin {admin}"))?;
    }
    screen.paste("curl", places.curl())?;
    screen.fact("Python", "")?;
    say(places.python())?;
    say("")?;

    let mut came = false;
    loop {
        tokio::select! {
            () = interrupt.wait() => break,
            () = tokio::time::sleep(FOLLOW_PAUSE) => {}
        }
        for entry in world.journal.changed_since(seen).await? {
            seen = seen.max(entry.seq);
            if entry.state != State::Open {
                came = true;
                let line = entry_line(&entry);
                screen.fact("receipt", format_args!("{} {line}", entry.operation))?;
            }
        }
    }
    if came {
        let reckoning = Reckoning::when_settled(&world.journal, &world.service()).await?;
        say("")?;
        say(reckoning.table())?;
        say("")?;
        screen.fact("difference", reckoning.difference())?;
    }
    say("stopping")
}
