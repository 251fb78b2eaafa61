//! `bursar demo --full`: one story through all seven parts of the service, every call through bursar;
//! then, operation by operation, bursar's ledger beside the service's own books.
//!
//! Promise: each number told was read from an answer, from the ledger, or from the books; exit code 0
//! means that every step did what it says, that each amount the service told stands in its books, and
//! that each debit in the books has its entry. What the service does not tell is said, not estimated.

mod account;
mod agent;
mod catalog;
mod comparison;
mod deploys;
mod document;
mod endpoints;
mod evals;
mod inference;
mod payload;
mod recordings;
mod speech;
mod tour;

use serde_json::json;

use self::account::Account;
use self::tour::{Played, Tour};
use super::args::Args;
use super::books::Service;
use super::files::Folder;
use super::scene::Scene;
use super::stage::Stage;
use super::stay::stay;
use super::world::{Interrupt, World, failed};
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::output::{remark, say};
use crate::config::ListenAddr;
use crate::protocol::routes::{Lookup, RouteTable};

pub(super) async fn full(
    args: &Args,
    wide: &Stage,
    interrupt: &mut Interrupt,
) -> Result<(), CliError> {
    let stage = if args.json {
        wide.silent()
    } else {
        wide.narrow()
    };
    let folder = Folder::new().map_err(|error| failed("make a temporary directory", &error))?;
    let mut world = World::start(args, &folder).await?;
    let shown = tokio::select! {
        shown = show(args, &stage, &world) => shown,
        () = interrupt.wait() => {
            Err(CliError::Failed("interrupted before the story ended".to_owned()))
        }
    };
    let ended = match shown {
        Ok(()) if args.once => Ok(()),
        Ok(()) if args.json => {
            interrupt.wait().await;
            Ok(())
        }
        Ok(()) => stay(wide, &world, interrupt).await,
        Err(error) => Err(error),
    };
    tokio::select! {
        () = world.stop() => ended,
        () = interrupt.wait() => {
            Err(CliError::Failed("a second signal ended it at once".to_owned()))
        }
    }
}

/// The story, and the account at its end.
async fn show(args: &Args, stage: &Stage, world: &World) -> Result<(), CliError> {
    let service = world.service();
    stage.heading("bursar demo --full: all seven parts of the service, through bursar")?;
    stage.line("")?;
    stage.fact("base URL", world.places.base_url())?;
    stage.fact("books", books_url(world))?;
    let scene = Scene::new(
        stage,
        Client::new(ListenAddr::Tcp(world.places.door)),
        service.clone(),
        world.journal.clone(),
        world.names.clone(),
    );
    let mut tour = Tour::new(scene);
    let played = tour.play().await?;
    let account = Account::when_at_rest(&world.journal, &service).await?;
    let mut wrong: Vec<String> = played.iter().flat_map(Played::wrong).collect();
    wrong.extend(account.wrong());

    if args.json {
        let url = |url: String| (!args.once).then_some(url);
        let admin = world.places.admin.map(|admin| format!("http://{admin}"));
        // The URLs are there while it stays up.
        let document = json!({
            "seed": args.seed,
            "base_url": url(world.places.base_url()),
            "books": url(books_url(world)),
            "admin": admin.and_then(url),
            "steps": played.iter().map(Played::document).collect::<Vec<_>>(),
            "operations": account.operations(),
            "total": account.total(),
            "wrong": wrong,
        });
        say(document)?;
    } else {
        stage.line("")?;
        stage.heading("bursar's ledger beside the service's own books")?;
        stage.line("")?;
        stage.line(account.table())?;
        stage.line("")?;
        account.explain(stage)?;
        let free = free_requests(&service).await?;
        stage.fact(
            "free",
            format_args!(
                "{free} requests more, of the catalog, eval sets, reads and controls: by the \
                 interface they cost nothing, so they are no entries"
            ),
        )?;
    }
    if wrong.is_empty() {
        return stage.good(
            "result",
            format_args!(
                "{} steps in {} parts did what they say; each amount that was told is in the \
                 books to the micro-dollar, and each debit has its entry",
                played.len(),
                tour::PARTS
            ),
        );
    }
    for what in &wrong {
        match args.json {
            true => remark(format_args!("WRONG: {what}")),
            false => stage.bad("WRONG", what)?,
        }
    }
    Err(CliError::Failed(format!(
        "the demo did not do what it says: {} wrong",
        wrong.len()
    )))
}

fn books_url(world: &World) -> String {
    format!("http://{}/sandbox/books", world.places.service)
}

/// How many requests came to the service whose routes cost nothing.
async fn free_requests(service: &Service) -> Result<usize, CliError> {
    let routes = RouteTable::new(&[]);
    let received = service.received().await?;
    let free = received.iter().filter(|one| {
        let method = one.method.parse().unwrap_or_default();
        let path = one.path.split('?').next().unwrap_or_default();
        matches!(routes.look_up(&method, path), Lookup::Found(route) if !route.is_metered())
    });
    Ok(free.count())
}
