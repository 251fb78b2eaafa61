//! `bursar fleet caps`: limits over all machines that obey them, what is leased of each, and what one machine may have.
//!
//! Promise: exact decimals. With exit code 0 an order is in the database; no machine is asked, and what it has leased
//! already it may spend.

use jiff::tz::TimeZone;
use serde::Serialize;

use super::address::{FleetArgs, failed};
use super::leased::{LeaseDocument, PauseDocument, end, leases_table, say_pause};
use super::ledgers::meant;
use crate::calendar;
use crate::caps::Period;
use crate::cli::arguments::{Form, FormArgs, usd, word, zone};
use crate::cli::cells::counted;
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::{say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::table::TextTable;
use crate::config::cap_name;
use crate::fleet::{CapNow, CapOrdered, LedgerShare, ShareOrdered};
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

/// The largest amount that the database takes for a limit or a share (`schema.sql`).
const LARGEST: MicroUsd = MicroUsd::new(1_000_000_000_000_000);

#[derive(Debug, clap::Args)]
pub struct CapsArgs {
    #[command(subcommand)]
    command: Option<CapsCommand>,
    /// Time zone of dates [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Subcommand)]
enum CapsCommand {
    /// Set a cap, or change one; machines obey it whose [fleet] shared_caps names it
    Set(SetArgs),
    /// Remove a cap; machines that obey it spend nothing more under it until [fleet] shared_caps names it no longer
    Remove(RemoveArgs),
    /// Bound what one machine may have of a cap, and let it lease ahead for when it is away from the database
    Share(ShareArgs),
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// What it is called: 1 to 64 of a-z, 0-9, _ and -
    #[arg(value_name = "NAME", value_parser = cap_name)]
    cap: String,
    /// hour, day or month [default: as it is]
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    period: Option<Period>,
    /// In whose calendar, such as Europe/Berlin [default: as it is, else that of the caps here, else this machine's]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// The most that all machines together spend in a period, such as 25.00
    #[arg(long, alias = "limit", value_name = "USD", value_parser = cap_usd)]
    limit_usd: MicroUsd,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The cap
    #[arg(value_name = "NAME")]
    cap: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Args)]
struct ShareArgs {
    /// The ledger, as `bursar fleet status` shows it, or its end where no other has it
    #[arg(value_name = "LEDGER")]
    ledger: String,
    /// The cap
    #[arg(value_name = "NAME")]
    cap: String,
    /// The most that it may have of one period [default: all of the cap]
    #[arg(long, alias = "largest", value_name = "USD", value_parser = cap_usd)]
    largest_usd: Option<MicroUsd>,
    /// How many periods it may lease ahead, 0 to 7
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=7))]
    ahead: u32,
    /// The most of each of them
    #[arg(long, alias = "ahead-amount", value_name = "USD", value_parser = cap_usd)]
    ahead_usd: Option<MicroUsd>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// `bursar fleet caps --json`.
#[derive(Serialize)]
struct CapsDocument<'a> {
    /// `null`: leases are granted.
    pause: Option<PauseDocument<'a>>,
    caps: Vec<CapDocument<'a>>,
    leases: Vec<LeaseDocument<'a>>,
    shares: Vec<ShareDocument<'a>>,
}

#[derive(Serialize)]
struct CapDocument<'a> {
    cap: &'a str,
    period: Period,
    time_zone: &'a str,
    since: Option<String>,
    until: Option<String>,
    limit_micro_usd: MicroUsd,
    charged_micro_usd: MicroUsdSum,
    billed_micro_usd: MicroUsdSum,
    open_micro_usd: MicroUsdSum,
    holders: u64,
    over_micro_usd: MicroUsdSum,
    put_back_micro_usd: MicroUsdSum,
    ordered_by: &'a str,
}

#[derive(Serialize)]
struct ShareDocument<'a> {
    cap: &'a str,
    host: &'a str,
    ledger: String,
    /// `null`: all of the cap.
    largest_micro_usd: Option<MicroUsd>,
    ahead: u32,
    ahead_micro_usd: MicroUsd,
}

/// What an order came to: the document of `--json`.
#[derive(Serialize)]
struct OrderedDocument<'a> {
    cap: &'a str,
    outcome: &'a str,
}

#[derive(Serialize)]
struct ResumeDocument {
    /// `false`: nothing was paused.
    changed: bool,
}

const COLUMNS: [&str; 12] = [
    "cap",
    "period",
    "time_zone",
    "since",
    "until",
    "limit_micro_usd",
    "charged_micro_usd",
    "billed_micro_usd",
    "open_micro_usd",
    "holders",
    "over_micro_usd",
    "put_back_micro_usd",
];

fn period(typed: &str) -> Result<Period, String> {
    word(Period::ALL, typed)
}

fn cap_usd(typed: &str) -> Result<MicroUsd, String> {
    match usd(typed) {
        Ok(amount) if amount > LARGEST => Err(format!("it takes {LARGEST} at most")),
        parsed => parsed,
    }
}

pub fn caps(args: &CapsArgs) -> Result<(), CliError> {
    match &args.command {
        Some(CapsCommand::Set(asked)) => return set(asked),
        Some(CapsCommand::Remove(asked)) => return remove(asked),
        Some(CapsCommand::Share(asked)) => return share(asked),
        None => {}
    }
    let zone = zone(args.tz.as_deref())?;
    let (pause, caps, leases, shares) = block_on(async {
        let reader = args.fleet.operator().await?;
        let pause = reader.pause().await.map_err(failed)?;
        let caps = reader.caps().await.map_err(failed)?;
        let leases = reader.leases().await.map_err(failed)?;
        Ok::<_, CliError>((pause, caps, leases, reader.shares().await.map_err(failed)?))
    })?;
    let documents = || caps.iter().map(CapDocument::of);
    match args.form.form() {
        Form::Json => say_document(&CapsDocument {
            pause: pause.as_ref().map(PauseDocument::of),
            caps: documents().collect(),
            leases: leases.iter().map(LeaseDocument::of).collect(),
            shares: shares.iter().map(ShareDocument::of).collect(),
        }),
        Form::Csv => csv::say_documents(&COLUMNS, documents()),
        Form::Text(look) => {
            if caps.is_empty() && leases.is_empty() {
                return say(
                    "this fleet has no caps: `bursar fleet caps set NAME --period day --limit-usd 25`",
                );
            }
            say_pause(pause.as_ref(), &caps, &zone, &look)?;
            say(caps_table(&caps, &zone, &look))?;
            if !leases.is_empty() {
                say(leases_table(&leases, &zone, &look))?;
            }
            if !shares.is_empty() {
                say(shares_table(&shares, &look))?;
            }
            Ok(())
        }
    }
}

fn caps_table(caps: &[CapNow], zone: &TimeZone, look: &Look) -> String {
    let mut table = TextTable::new(
        "cap|>limit|period|>leased|>of that billed|>left|=until|>machines|~time zone|~remarks",
    );
    for of in caps {
        let left = u128::from(of.limit.get()).saturating_sub(of.charged.get());
        let over = (!of.over.is_zero()).then(|| format!("{} above the limit", of.over));
        let put_back = (!of.put_back.is_zero()).then(|| format!("{} put back", of.put_back));
        let ink = match &over {
            Some(_) => Ink::Red,
            None => Ink::Plain,
        };
        let remarks: Vec<String> = over.into_iter().chain(put_back).collect();
        table.row_in(
            ink,
            [
                of.cap.clone(),
                of.limit.to_string(),
                of.period.to_string(),
                of.charged.to_string(),
                of.billed.to_string(),
                MicroUsdSum::from_micro_usd(left).to_string(),
                calendar::shown(of.until_ms, zone),
                of.holders.to_string(),
                of.zone.clone(),
                remarks.join(", "),
            ],
        );
    }
    table.laid_out(look)
}

fn shares_table(shares: &[LedgerShare], look: &Look) -> String {
    let mut table = TextTable::new("cap|machine|=ledger|>largest share|>periods ahead|>of each");
    for of in shares {
        let largest = of.largest.map(|largest| largest.to_string());
        table.row([
            of.cap.clone(),
            of.host.clone(),
            end(of.ledger),
            largest.unwrap_or_else(|| "all".to_owned()),
            of.ahead_windows.to_string(),
            of.ahead.to_string(),
        ]);
    }
    table.laid_out(look)
}

fn set(args: &SetArgs) -> Result<(), CliError> {
    let cap = &args.cap;
    let (outcome, period, zone) = block_on(async {
        let operator = args.fleet.operator().await?;
        let known = operator.caps().await.map_err(failed)?;
        let known = known.into_iter().find(|known| known.cap == *cap);
        let period = args.period.or(known.as_ref().map(|known| known.period));
        let period = period.ok_or_else(|| {
            CliError::usage(format_args!(
                "the fleet has no cap {cap:?} yet: --period hour, day or month?"
            ))
        })?;
        let zone = match (&args.time_zone, known) {
            (Some(named), _) => named.clone(),
            (None, Some(known)) => known.zone,
            (None, None) => args.fleet.zone_name(None)?,
        };
        let ordered = operator.order_cap(cap, period, &zone, args.limit_usd);
        Ok::<_, CliError>((ordered.await.map_err(failed)?, period, zone))
    })?;
    let limit = args.limit_usd;
    let text = match outcome {
        CapOrdered::Same => format!("{cap} was {limit} a {period} ({zone}) already"),
        _ => format!(
            "{cap}: at most {limit} a {period} ({zone}), over all machines whose [fleet] shared_caps names it; what is \
             leased already stays leased"
        ),
    };
    say_ordered(args.json, cap, outcome.as_str(), &text)
}

fn remove(args: &RemoveArgs) -> Result<(), CliError> {
    let cap = &args.cap;
    let outcome = block_on(async {
        let operator = args.fleet.operator().await?;
        operator.remove_cap(cap).await.map_err(failed)
    })?;
    if outcome == CapOrdered::Missing {
        return Err(no_cap(cap));
    }
    let text = format!(
        "{cap} is removed: a machine whose [fleet] shared_caps still names it gets no more of it, and spends what it has \
         leased until then"
    );
    say_ordered(args.json, cap, outcome.as_str(), &text)
}

fn share(args: &ShareArgs) -> Result<(), CliError> {
    let cap = &args.cap;
    if args.ahead > 0 && args.ahead_usd.is_none() {
        return Err(CliError::usage("--ahead: how much of each? --ahead-usd"));
    }
    let ahead_usd = args.ahead_usd.unwrap_or(MicroUsd::ZERO);
    let (outcome, host) = block_on(async {
        let operator = args.fleet.operator().await?;
        let ledgers = operator.ledgers().await.map_err(failed)?;
        let of = meant(&ledgers, &args.ledger)?;
        let ordered = operator.order_share(of.ledger, cap, args.largest_usd, args.ahead, ahead_usd);
        Ok::<_, CliError>((ordered.await.map_err(failed)?, of.host.clone()))
    })?;
    match outcome {
        ShareOrdered::Set => {}
        ShareOrdered::NoLedger => {
            return Err(failed(format_args!(
                "the fleet has no ledger {:?}",
                args.ledger
            )));
        }
        ShareOrdered::NoCap => return Err(no_cap(cap)),
    }
    let largest = match args.largest_usd {
        Some(largest) => format!("at most {largest} of a period"),
        None => "all of it".to_owned(),
    };
    let ahead = match args.ahead {
        0 => "nothing ahead".to_owned(),
        ahead => format!(
            "at most {ahead_usd} of each of {} ahead",
            counted(ahead, "period", "periods")
        ),
    };
    let text = format!("{host} may lease of {cap} {largest}, and {ahead}");
    say_ordered(args.json, cap, outcome.as_str(), &text)
}

fn no_cap(cap: &str) -> CliError {
    failed(format_args!(
        "the fleet has no cap {cap:?}; `bursar fleet caps` shows them"
    ))
}

fn say_ordered(json: bool, cap: &str, outcome: &str, text: &str) -> Result<(), CliError> {
    match json {
        true => say_document(&OrderedDocument { cap, outcome }),
        false => say(text),
    }
}

pub fn resume(args: &ResumeArgs) -> Result<(), CliError> {
    let changed = block_on(async {
        let operator = args.fleet.operator().await?;
        operator.resume().await.map_err(failed)
    })?;
    match (args.json, changed) {
        (true, changed) => say_document(&ResumeDocument { changed }),
        (false, true) => say(
            "leases are granted again; what a machine that was not heard has leased since the backup is spent beside it",
        ),
        (false, false) => say("leases were granted already"),
    }
}

// === impl CapDocument ===

impl<'a> CapDocument<'a> {
    fn of(of: &'a CapNow) -> Self {
        Self {
            cap: &of.cap,
            period: of.period,
            time_zone: &of.zone,
            since: calendar::rfc3339(of.since_ms),
            until: calendar::rfc3339(of.until_ms),
            limit_micro_usd: of.limit,
            charged_micro_usd: of.charged,
            billed_micro_usd: of.billed,
            open_micro_usd: of.open,
            holders: of.holders,
            over_micro_usd: of.over,
            put_back_micro_usd: of.put_back,
            ordered_by: &of.ordered_by,
        }
    }
}

// === impl ShareDocument ===

impl<'a> ShareDocument<'a> {
    fn of(of: &'a LedgerShare) -> Self {
        Self {
            cap: &of.cap,
            host: &of.host,
            ledger: of.ledger.to_string(),
            largest_micro_usd: of.largest,
            ahead: of.ahead_windows,
            ahead_micro_usd: of.ahead,
        }
    }
}

#[cfg(test)]
mod tests;
