//! `bursar demo --compare`: one bad day, lived twice by the same apps: straight against one sandbox,
//! and through bursar against an equal second one. Then the two bills, side by side.
//!
//! The apps are real HTTP clients that do what SDKs do (give up, try again, send no
//! Idempotency-Key); both services have the same seed and the same faults; each figure is read from
//! the services' books, from the answers, or from bursar's ledger.
//!
//! Promise: it ends in bounded time; cases in which bursar saves nothing are in the story, too; exit
//! code 0 means that what bursar knows and what it does not know come to what the books say.

mod app;
mod bills;
mod day;

use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde_json::json;
use tokio::time::timeout;

use self::bills::Bills;
use self::day::Case;
use super::args::Args;
use super::books::Service;
use super::files::Folder;
use super::screen::Screen;
use super::world::{Interrupt, Sandbox, World, failed};
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::output::{remark, say};
use crate::config::ListenAddr;

/// The longest both days may take.
const DAYS_MAX: Duration = Duration::from_secs(60);

/// [`super::world::DEMO_KEY`] as an app sends it that has the key itself.
const DEMO_AUTHORIZATION: &str = "Bearer sandbox-key";

pub(super) async fn compare(
    args: &Args,
    screen: &Screen,
    interrupt: &mut Interrupt,
) -> Result<(), CliError> {
    let folder = Folder::new().map_err(|error| failed("make a temporary directory", &error))?;
    // The service without bursar.
    let mut bare = Sandbox::start(args.seed).await?;
    let world = World::start(args, &folder).await?;
    let shown = tokio::select! {
        shown = show(args, screen, &bare, &world) => shown,
        () = interrupt.wait() => {
            Err(CliError::Failed("interrupted before the story ended".to_owned()))
        }
    };
    if shown.is_ok() && !args.once {
        interrupt.wait().await;
    }
    tokio::select! {
        () = async { world.stop().await; bare.stop().await } => shown,
        () = interrupt.wait() => {
            Err(CliError::Failed("a second signal ended it at once".to_owned()))
        }
    }
}

async fn show(args: &Args, screen: &Screen, bare: &Sandbox, world: &World) -> Result<(), CliError> {
    if !args.json {
        screen.heading("bursar demo --compare: one bad day, straight and through bursar")?;
        say("")?;
        screen.fact(
            "apps",
            "give up, try again and send no Idempotency-Key, as SDKs do",
        )?;
        screen.fact(
            "services",
            format_args!("two equal sandboxes, seed {}", args.seed),
        )?;
        for case in Case::ALL {
            screen.fact("", format_args!("{}: {}", case.name(), case.title()))?;
        }
    }
    let services = [Service::new(bare.address()), world.service()];
    for service in &services {
        service.set_faults(&day::faults()).await?;
    }
    let client = |address, authorization| {
        let authorization = HeaderValue::from_static(authorization);
        Client::new(ListenAddr::Tcp(address)).with_header(AUTHORIZATION, authorization)
    };
    let straight = client(bare.address(), DEMO_AUTHORIZATION);
    // The slot for the key holds what apps put there when they need none.
    let door = client(world.places.door, "Bearer unused");
    let names = &world.names;
    let both = async {
        tokio::join!(
            day::live(&straight, names, args.seed),
            day::live(&door, names, args.seed)
        )
    };
    let Ok((straight, through)) = timeout(DAYS_MAX, both).await else {
        let seconds = DAYS_MAX.as_secs();
        return Err(CliError::Failed(format!(
            "the day did not end within {seconds} s"
        )));
    };
    let [bare_service, service] = &services;
    let straight = Bills::when_at_rest(straight, bare_service, None).await?;
    let through = Bills::when_at_rest(through, service, Some(&world.journal)).await?;
    let wrong = through.wrong();

    if args.json {
        let mut document = json!({
            "seed": args.seed,
            "straight": straight.document(),
            "through_bursar": through.document(),
            "saved_micro_usd": straight.billed().get().saturating_sub(through.billed().get()),
            "wrong": wrong,
        });
        for (side, address) in [
            ("straight", bare.address()),
            ("through_bursar", world.places.service),
        ] {
            let books = format!("http://{address}/sandbox/books");
            if let Some(side) = document.get_mut(side) {
                side["books"] = json!(books);
            }
        }
        say(document)?;
    } else {
        bills::show(screen, &straight, &through)?;
        if !args.once {
            say("")?;
            screen.fact(
                "books",
                format_args!("straight: http://{}/sandbox/books", bare.address()),
            )?;
            let service = world.places.service;
            screen.fact(
                "",
                format_args!("through bursar: http://{service}/sandbox/books"),
            )?;
            if let Some(admin) = world.places.admin {
                screen.fact("spend", format_args!("bursar spend --admin {admin}"))?;
            }
            screen.fact("", "they stay up until Ctrl-C")?;
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    for what in &wrong {
        remark(format_args!("WRONG: {what}"));
    }
    Err(CliError::Failed(
        "the ledger and what it says it does not know do not come to what the books say".to_owned(),
    ))
}
