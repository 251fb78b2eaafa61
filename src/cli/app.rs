//! `bursar app`: the apps that may spend. Changes go to the running daemon over the socket in its state
//! directory and are in force when the command ends; where no daemon runs, the file is changed under
//! the ledger's lock.
//!
//! Promise: a token is printed once, on standard output, and is stored nowhere: alone in a pipe or
//! file, in the line to paste at a terminal. All other text goes to standard error.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::arguments::{Form, FormArgs, usd};
use super::csv;
use super::daemon::{known_apps, order};
use super::error::CliError;
use super::locate::{Keeper, Right, SourceArgs};
use super::look::Look;
use super::output::{at_terminal, remark, say, say_document};
use super::runtime::block_on;
use super::table::TextTable;
use crate::admin::change::{AppDocument, AppName, AppsDocument, NewToken, Removed};
use crate::apps::{self, AppAdd, AppList, AppSet, AppsError, Declared};
use crate::clock::SystemClock;
use crate::config::Whereabouts;
use crate::money::MicroUsd;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: AppCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AppCommand {
    /// Add an app and print its token, which is not shown again
    Add(AddArgs),
    /// Change the caps of an app that was added; what it has spent still counts
    Set(SetArgs),
    /// List the apps
    List(ListArgs),
    /// Remove an app; its token is refused at once
    Remove(NameArgs),
    /// Print a new token for an app; the old one is refused at once
    Rotate(NameArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The app's name: a-z, 0-9, and . _ -
    name: String,
    /// Number of a user that is this app on a Unix socket, without a token; may be repeated
    #[arg(long = "uid", value_name = "UID")]
    uids: Vec<u32>,
    /// Most it may spend in a calendar hour, such as 0.50
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    cap_hour_usd: Option<MicroUsd>,
    /// Most it may spend in a calendar day
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    cap_day_usd: Option<MicroUsd>,
    /// Most it may spend in a calendar month
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    cap_month_usd: Option<MicroUsd>,
    /// Least expected cost of one of its requests, in place of [caps] request_floor_micro_usd
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    request_floor_usd: Option<MicroUsd>,
    /// Most that each of its sessions may spend: a loop stops there
    #[arg(long, value_name = "USD", value_parser = usd, allow_negative_numbers = true)]
    session_cap_usd: Option<MicroUsd>,
    /// Most requests of each of its sessions
    #[arg(long, value_name = "N")]
    session_requests_max: Option<u64>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The app's name
    name: String,
    /// Most it may spend in a calendar hour, such as 0.50; none: no cap
    #[arg(long, value_name = "USD|none", value_parser = amount, allow_negative_numbers = true)]
    cap_hour_usd: Option<Amount>,
    /// Most it may spend in a calendar day
    #[arg(long, value_name = "USD|none", value_parser = amount, allow_negative_numbers = true)]
    cap_day_usd: Option<Amount>,
    /// Most it may spend in a calendar month
    #[arg(long, value_name = "USD|none", value_parser = amount, allow_negative_numbers = true)]
    cap_month_usd: Option<Amount>,
    /// Least expected cost of one of its requests; none: that of [caps]
    #[arg(long, value_name = "USD|none", value_parser = amount, allow_negative_numbers = true)]
    request_floor_usd: Option<Amount>,
    /// Most that each of its sessions may spend; none: no cap
    #[arg(long, value_name = "USD|none", value_parser = amount, allow_negative_numbers = true)]
    session_cap_usd: Option<Amount>,
    /// Most requests of each of its sessions; none: any number
    #[arg(long, value_name = "N|none", value_parser = number)]
    session_requests_max: Option<Number>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// An amount, or none.
#[derive(Clone, Copy, Debug)]
struct Amount(Option<MicroUsd>);

/// A number, or none.
#[derive(Clone, Copy, Debug)]
struct Number(Option<u64>);

#[derive(Debug, clap::Args)]
struct NameArgs {
    /// The app's name
    name: String,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

pub fn app(args: &Args) -> Result<(), CliError> {
    match &args.command {
        AppCommand::Add(args) => add(args),
        AppCommand::Set(args) => set(args),
        AppCommand::List(args) => show(args),
        AppCommand::Remove(args) => remove(args),
        AppCommand::Rotate(args) => rotate(args),
    }
}

fn add(args: &AddArgs) -> Result<(), CliError> {
    let new = AppAdd {
        name: args.name.clone(),
        uids: args.uids.clone(),
        cap_hour_micro_usd: args.cap_hour_usd,
        cap_day_micro_usd: args.cap_day_usd,
        cap_month_micro_usd: args.cap_month_usd,
        request_floor_micro_usd: args.request_floor_usd,
        session_cap_micro_usd: args.session_cap_usd,
        session_requests_max: args.session_requests_max,
    };
    let document: NewToken = args.place.change("/api/apps/add", &new, |apps, place| {
        let was_anonymous = apps.table()?.is_anonymous_allowed();
        let token = apps.add(&new, SystemClock::shared().wall_ms())?;
        let table = apps.table()?;
        Ok(NewToken::new(
            &new.name,
            &token,
            was_anonymous,
            &table,
            &place.proxy,
        ))
    })?;
    args.place.print_token(&document)?;
    if document.closed && !args.place.json {
        remark(
            "bursar: this is the first app. Until now any caller of this machine could spend without a token; \
             from now on a request without one is refused (401 token_missing). Give each app a token, or let \
             callers without one go on as \"default\": anonymous = true in [listen] of the configuration, \
             then `systemctl reload bursar` or a restart",
        );
    }
    Ok(())
}

fn set(args: &SetArgs) -> Result<(), CliError> {
    let given = |amount: Option<Amount>| amount.map(|Amount(amount)| amount);
    let asked = AppSet {
        name: args.name.clone(),
        cap_hour_micro_usd: given(args.cap_hour_usd),
        cap_day_micro_usd: given(args.cap_day_usd),
        cap_month_micro_usd: given(args.cap_month_usd),
        request_floor_micro_usd: given(args.request_floor_usd),
        session_cap_micro_usd: given(args.session_cap_usd),
        session_requests_max: args.session_requests_max.map(|Number(number)| number),
    };
    let nothing = AppSet {
        name: args.name.clone(),
        ..AppSet::default()
    };
    if asked == nothing {
        return Err(CliError::usage(
            "nothing to set: give --cap-hour-usd, --cap-day-usd, --cap-month-usd, --request-floor-usd, \
             --session-cap-usd or --session-requests-max",
        ));
    }
    let document: Option<AppDocument> = args.place.change("/api/apps/set", &asked, |apps, _| {
        apps.set(&asked)?;
        Ok(AppDocument::named(&args.name, &apps.table()?))
    })?;
    if args.place.json {
        return say_document(&document);
    }
    say(rows(document.as_slice()).laid_out(&Look::of_standard_output()))
}

fn rotate(args: &NameArgs) -> Result<(), CliError> {
    let asked = args.asked();
    let document: NewToken = args
        .place
        .change("/api/apps/rotate", &asked, |apps, place| {
            let token = apps.rotate(&args.name, SystemClock::shared().wall_ms())?;
            let table = apps.table()?;
            Ok(NewToken::new(
                &args.name,
                &token,
                false,
                &table,
                &place.proxy,
            ))
        })?;
    args.place.print_token(&document)
}

fn remove(args: &NameArgs) -> Result<(), CliError> {
    let asked = args.asked();
    let document: Removed = args.place.change("/api/apps/remove", &asked, |apps, _| {
        apps.remove(&args.name)?;
        Ok(Removed::new(&args.name, &apps.table()?))
    })?;
    if args.place.json {
        return say_document(&document);
    }
    remark(format_args!(
        "bursar: the app {} is removed; what it spent stays in the ledger",
        args.name
    ));
    remark_if_anonymous(document.anonymous);
    Ok(())
}

fn show(args: &ListArgs) -> Result<(), CliError> {
    let document: AppsDocument = block_on(async {
        match args.source.keeper(Right::Look).await? {
            Keeper::Daemon(daemon) => known_apps(&daemon).await,
            Keeper::Files(place) => {
                let table = apps::read(&place.state_dir, &Declared::from(&place))?;
                remark(format_args!(
                    "bursar: no daemon runs: read from {}",
                    place.state_dir.display()
                ));
                Ok(AppsDocument::of(&table))
            }
        }
    })?;
    match args.form.form() {
        Form::Json => return say_document(&document),
        Form::Csv => return csv::say_documents(&COLUMNS, &document.apps),
        Form::Text(_) if document.apps.is_empty() => {}
        Form::Text(look) => say(rows(&document.apps).laid_out(&look))?,
    }
    remark_if_anonymous(document.anonymous);
    Ok(())
}

/// The columns of comma-separated values.
const COLUMNS: [&str; 12] = [
    "name",
    "token",
    "uids",
    "cap_hour_micro_usd",
    "cap_day_micro_usd",
    "cap_month_micro_usd",
    "request_floor_micro_usd",
    "session_cap_micro_usd",
    "session_requests_max",
    "declared",
    "added",
    "token_since",
];

/// The apps for people, one a line.
fn rows(known: &[AppDocument]) -> TextTable {
    let mut table = TextTable::new("app|token|users|>hour|>day|>month|~from|>~floor|>~session");
    for app in known {
        let amount = |amount: Option<MicroUsd>| {
            amount.map_or_else(|| "-".to_owned(), |amount| amount.to_string())
        };
        let uids: Vec<String> = app.uids.iter().map(ToString::to_string).collect();
        let from = match &app.declared {
            Some(place) => place.clone(),
            None => {
                let added = app.added.as_deref().unwrap_or_default();
                format!("added {}", added.split('.').next().unwrap_or_default())
            }
        };
        table.row([
            app.name.clone(),
            if app.token { "yes" } else { "no" }.to_owned(),
            uids.join(","),
            amount(app.cap_hour_micro_usd),
            amount(app.cap_day_micro_usd),
            amount(app.cap_month_micro_usd),
            from,
            amount(app.request_floor_micro_usd),
            amount(app.session_cap_micro_usd),
        ]);
    }
    table
}

fn remark_if_anonymous(is_anonymous: bool) {
    if is_anonymous {
        remark(
            "bursar: every process of this machine may spend without a token ([listen] anonymous)",
        );
    }
}

// === impl NameArgs ===

impl NameArgs {
    fn asked(&self) -> AppName {
        AppName {
            name: self.name.clone(),
        }
    }
}

// === impl PlaceArgs ===

impl PlaceArgs {
    /// The daemon makes the change, or it is made in the files of a directory that no daemon has.
    fn change<T: DeserializeOwned>(
        &self,
        path: &str,
        asked: &impl Serialize,
        in_files: impl FnOnce(&mut AppList, &Whereabouts) -> Result<T, AppsError>,
    ) -> Result<T, CliError> {
        match block_on(self.source.keeper(Right::Change))? {
            Keeper::Daemon(daemon) => block_on(order(&daemon, path, asked)),
            Keeper::Files(place) => {
                let mut apps = AppList::open(&place.state_dir, Declared::from(&place))?;
                let done = in_files(&mut apps, &place)?;
                remark(format_args!(
                    "bursar: no daemon runs: written to the ledger in {}, and in force from its next start",
                    place.state_dir.display()
                ));
                Ok(done)
            }
        }
    }

    fn print_token(&self, document: &NewToken) -> Result<(), CliError> {
        if self.json {
            return say_document(document);
        }
        let NewToken { name, token, .. } = document;
        // Clients take no address of a Unix socket; theirs is their own matter.
        let address = document.base_url.as_ref();
        let address = address.map(|url| format!("export OPENAI_BASE_URL={url}\n"));
        let lines = |token: &str| {
            let address = address.as_deref().unwrap_or_default();
            format!("{address}export OPENAI_API_KEY={token}")
        };
        remark(format_args!(
            "bursar: the token of {name}, shown this once. These lines let an app spend as {name}:"
        ));
        if at_terminal() {
            say(lines(token))?;
        } else {
            remark(lines("TOKEN"));
            say(token)?;
        }
        remark_if_anonymous(document.anonymous);
        Ok(())
    }
}

fn amount(text: &str) -> Result<Amount, String> {
    match text {
        "none" => Ok(Amount(None)),
        text => usd(text)
            .map(|amount| Amount(Some(amount)))
            .map_err(|why| format!("{why}; or none")),
    }
}

fn number(text: &str) -> Result<Number, String> {
    match text {
        "none" => Ok(Number(None)),
        text => text
            .parse()
            .map(|number| Number(Some(number)))
            .map_err(|_| "a whole number, or none".to_owned()),
    }
}
