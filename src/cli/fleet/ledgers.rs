//! `bursar fleet invite`, `status` and `revoke`: which ledgers are in the fleet.

use serde::Serialize;
use uuid::Uuid;

use super::address::{FleetArgs, SKEW_MS_MAX, failed};
use super::leased::{LeaseDocument, PauseDocument, end, say_pause};
use crate::calendar;
use crate::cli::arguments::{Form, FormArgs, zone};
use crate::cli::cells::counted;
use crate::cli::csv;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::{remark, say, say_document};
use crate::cli::runtime::block_on;
use crate::cli::table::TextTable;
use crate::fleet::{CapNow, FleetError, FleetLedger, LeaseNow, Pause};
use crate::screen::shown;

/// Bytes of a code. Hexadecimal digits of it are twice as many.
const CODE_BYTES: usize = 16;

#[derive(Debug, clap::Args)]
pub struct InviteArgs {
    /// For whom it is: `bursar fleet status` shows it until the code is used
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Time zone of dates [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Debug, clap::Args)]
pub struct RevokeArgs {
    /// The ledger, as `bursar fleet status` shows it, or its end where no other has it
    #[arg(value_name = "LEDGER")]
    ledger: String,
    /// Also all that came of it by copies
    #[arg(long)]
    copies: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fleet: FleetArgs,
}

#[derive(Serialize)]
struct InviteDocument<'a> {
    code: &'a str,
    note: Option<&'a str>,
    valid_h: u64,
}

#[derive(Serialize)]
struct RevokeDocument {
    ledger: String,
    revoked: bool,
    /// What came of it by copies, and is still in. `null`: not known.
    copies: Option<Vec<String>>,
}

/// `bursar fleet status --json`.
#[derive(Serialize)]
struct FleetDocument<'a> {
    ledgers: Vec<LedgerDocument<'a>>,
    frozen: Vec<FreezeDocument>,
    /// `null`: leases of shared caps are granted.
    pause: Option<PauseDocument<'a>>,
    /// Codes that can still let a ledger in.
    invitations: Vec<InvitationDocument<'a>>,
}

#[derive(Serialize)]
struct InvitationDocument<'a> {
    expires: Option<String>,
    note: Option<&'a str>,
}

#[derive(Serialize)]
struct LedgerDocument<'a> {
    ledger: String,
    host: &'a str,
    bursar: &'a str,
    state: &'a str,
    heard: Option<String>,
    lines_behind: u64,
    lag_s: u64,
    mark_seq: u64,
    losses: u64,
    clock_ahead_ms: i64,
    copy_of: Option<String>,
    /// The database was restored, and waits to hear its leases.
    awaited: bool,
    /// Of shared caps, those whose period is not over.
    leases: Vec<LeaseDocument<'a>>,
}

/// What the database has of the fleet.
struct FleetSeen {
    ledgers: Vec<FleetLedger>,
    /// App (`None`: all), since when, and by whose order.
    frozen: Vec<(Option<String>, u64, String)>,
    pause: Option<Pause>,
    caps: Vec<CapNow>,
    leases: Vec<LeaseNow>,
    /// Codes that can still let a ledger in: until when, and the note.
    invitations: Vec<(u64, Option<String>)>,
}

#[derive(Serialize)]
pub struct FreezeDocument {
    /// `null`: all apps.
    app: Option<String>,
    since: Option<String>,
    by: String,
}

const COLUMNS: [&str; 11] = [
    "ledger",
    "host",
    "bursar",
    "state",
    "heard",
    "lines_behind",
    "lag_s",
    "mark_seq",
    "losses",
    "clock_ahead_ms",
    "copy_of",
];

pub fn invite(args: &InviteArgs) -> Result<(), CliError> {
    let mut bytes = [0; CODE_BYTES];
    getrandom::fill(&mut bytes).map_err(failed)?;
    let code: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let note = args.note.as_deref();
    block_on(async {
        let operator = args.fleet.operator().await?;
        operator.invite(&code, note).await.map_err(failed)
    })?;
    if args.json {
        return say_document(&InviteDocument {
            code: &code,
            note,
            valid_h: 24,
        });
    }
    say(&code)?;
    remark(
        "bursar: this code lets one ledger in, within 24 hours, and is not shown again; on the machine: bursar fleet join",
    );
    Ok(())
}

pub fn revoke(args: &RevokeArgs) -> Result<(), CliError> {
    let (ledger, copies) = block_on(async {
        let operator = args.fleet.operator().await?;
        // A whole id needs no list, which another ledger may have made long.
        let ledger = match Uuid::try_parse(&args.ledger) {
            Ok(ledger) => ledger,
            Err(_) => {
                let ledgers = operator.ledgers().await.map_err(failed)?;
                meant(&ledgers, &args.ledger)?.ledger
            }
        };
        if !operator.revoke(ledger, args.copies).await.map_err(failed)? {
            return Err(unknown(&args.ledger));
        }
        let ledgers = operator.ledgers().await;
        Ok((ledger, ledgers.map(|all| copies_in(&all, ledger))))
    })?;
    if args.json {
        return say_document(&RevokeDocument {
            ledger: ledger.to_string(),
            revoked: true,
            copies: copies.ok(),
        });
    }
    say(format_args!(
        "the ledger {ledger} is shut out: nothing more is taken of it, and what it shipped stays counted. Its machine \
         still has the organization's key and a login of the database: replace both if it was stolen",
    ))?;
    match said_of_copies(ledger, &copies) {
        Some(said) => say(said),
        None => Ok(()),
    }
}

/// Nothing where none of them is still in.
fn said_of_copies(ledger: Uuid, copies: &Result<Vec<String>, FleetError>) -> Option<String> {
    match copies.as_deref() {
        Ok([]) => None,
        Ok(copies) => Some(format!(
            "copies of it are still in the fleet; `bursar fleet revoke {ledger} --copies` shuts all of them out: {}",
            copies.join(", ")
        )),
        Err(error) => Some(format!(
            "whether copies of it are still in the fleet is not known, because the list of ledgers cannot be read: {error}. \
             `bursar fleet status` shows them; `bursar fleet revoke {ledger} --copies` shuts all of them out"
        )),
    }
}

/// The ledgers that came of a ledger by copies of it, and were not shut out.
fn copies_in(ledgers: &[FleetLedger], of: Uuid) -> Vec<String> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let copies = ledgers.iter().filter(|one| one.copy_of == Some(parent));
        found.extend(copies.map(|one| one.ledger));
        // A circle would be the database's mistake.
        if found.len() > ledgers.len() {
            break;
        }
    }
    let is_in = |id: &Uuid| {
        ledgers
            .iter()
            .any(|one| one.ledger == *id && !one.is_revoked)
    };
    let copies = found.iter().skip(1).filter(|id| is_in(id));
    copies.map(Uuid::to_string).collect()
}

fn unknown(typed: &str) -> CliError {
    CliError::Failed(format!(
        "the fleet has no ledger {typed:?}; `bursar fleet status` shows them"
    ))
}

/// The ledger of this id, or the one whose id ends so.
pub fn meant<'a>(ledgers: &'a [FleetLedger], typed: &str) -> Result<&'a FleetLedger, CliError> {
    let typed = typed.to_ascii_lowercase();
    let mut found = ledgers
        .iter()
        .filter(|of| of.ledger.to_string().ends_with(&typed));
    match (found.next(), found.next()) {
        (Some(one), None) if !typed.is_empty() => Ok(one),
        (Some(_), _) => Err(CliError::Failed(format!(
            "several ledgers end in {typed:?}: write more of it; `bursar fleet status` shows them"
        ))),
        (None, _) => Err(unknown(&typed)),
    }
}

pub fn status(args: &StatusArgs) -> Result<(), CliError> {
    let zone = zone(args.tz.as_deref())?;
    let fleet = block_on(async {
        let reader = args.fleet.operator().await?;
        Ok::<_, CliError>(FleetSeen {
            ledgers: reader.ledgers().await.map_err(failed)?,
            frozen: reader.frozen().await.map_err(failed)?,
            pause: reader.pause().await.map_err(failed)?,
            caps: reader.caps().await.map_err(failed)?,
            leases: reader.leases().await.map_err(failed)?,
            invitations: reader.invitations().await.map_err(failed)?,
        })
    })?;
    match args.form.form() {
        Form::Json => say_document(&FleetDocument::of(&fleet)),
        Form::Csv => csv::say_documents(&COLUMNS, FleetDocument::of(&fleet).ledgers),
        Form::Text(look) => {
            for (app, since_ms, by) in &fleet.frozen {
                let app = app.as_deref().unwrap_or("all apps");
                let since = calendar::shown(*since_ms, &zone);
                let text = format!(
                    "FROZEN on every machine since {since}: {app}, by {}",
                    shown(by)
                );
                say(look.inked(Ink::Red, look.wrapped(&text, 0)))?;
            }
            say_pause(fleet.pause.as_ref(), &fleet.caps, &zone, &look)?;
            say(fleet.table(&zone, &look))?;
            let invited = fleet.invitations.iter();
            let mut lines = invited.map(|of| invited_line(of, &zone));
            lines.try_for_each(|line| say(look.wrapped(&line, 0)))
        }
    }
}

// === impl FleetSeen ===

impl FleetSeen {
    fn leases_of(&self, ledger: Uuid) -> impl Iterator<Item = &LeaseNow> {
        self.leases
            .iter()
            .filter(move |lease| lease.ledger == ledger)
    }

    fn table(&self, zone: &jiff::tz::TimeZone, look: &Look) -> String {
        if self.ledgers.is_empty() {
            return "no ledger is in this fleet yet: `bursar fleet invite` lets one in".to_owned();
        }
        let mut table = TextTable::new(
            "machine|=ledger|state|=heard|>lines behind|>losses|~leased|~bursar|~remarks",
        );
        for of in &self.ledgers {
            let ink = match (of.state(), of.losses, of.is_awaited) {
                ("in", 0, false) => Ink::Plain,
                _ => Ink::Red,
            };
            let leased = self.leases_of(of.ledger);
            let leased = leased.map(|lease| format!("{} {}", lease.cap, lease.charged));
            table.row_in(
                ink,
                [
                    of.host.clone(),
                    end(of.ledger),
                    of.state().to_owned(),
                    calendar::shown(of.heard_ms, zone),
                    lag(of),
                    of.losses.to_string(),
                    leased.collect::<Vec<_>>().join(", "),
                    of.bursar.clone(),
                    remarks(of),
                ],
            );
        }
        let count = u64::try_from(self.ledgers.len()).unwrap_or(u64::MAX);
        let count = counted(count, "ledger", "ledgers");
        format!(
            "{}\n{count}. A machine says itself what it has not shipped yet.",
            table.laid_out(look)
        )
    }
}

/// Of a code that can still let a ledger in.
fn invited_line((expires_ms, note): &(u64, Option<String>), zone: &jiff::tz::TimeZone) -> String {
    let expires = calendar::shown(*expires_ms, zone);
    match note {
        Some(note) => format!("invited until {expires}, not used yet: {}", shown(note)),
        None => format!("invited until {expires}, not used yet: a code without a --note"),
    }
}

/// Lines, and for how long.
fn lag(of: &FleetLedger) -> String {
    match of.lines_behind {
        0 => "0".to_owned(),
        lines => format!("{lines} ({} s)", of.lag_s),
    }
}

/// Those of these that there are, in words: `2 lost ranges, 1 line that is not there yet`.
pub fn listed(counts: &[(u64, &str, &str)]) -> String {
    let there = counts.iter().filter(|(count, ..)| *count > 0);
    let words = there.map(|(count, one, many)| counted(*count, one, many));
    words.collect::<Vec<_>>().join(", ")
}

/// Lines that are not there yet, as far as ledgers said that were heard since a period began. A ledger counts lines that it
/// has written when it is heard: none of those that one heard last before the period counted is of an entry that began in
/// it. So it is with losses.
pub fn lines_behind(ledgers: &[FleetLedger], since_ms: u64) -> u64 {
    let heard = ledgers.iter().filter(|one| one.heard_ms >= since_ms);
    let behind = heard.map(|one| one.lines_behind);
    behind.fold(0, u64::saturating_add)
}

fn remarks(of: &FleetLedger) -> String {
    let skew = of.clock_ahead_ms.unsigned_abs();
    let skew = (skew > SKEW_MS_MAX).then(|| {
        let side = if of.clock_ahead_ms > 0 {
            "ahead"
        } else {
            "behind"
        };
        format!("clock {} s {side}", skew / 1_000)
    });
    let copy = of.copy_of.map(|of| format!("copy of {}", end(of)));
    let awaited = of
        .is_awaited
        .then(|| "its leases are waited for".to_owned());
    let remarks: Vec<String> = awaited.into_iter().chain(skew).chain(copy).collect();
    remarks.join(", ")
}

// === impl FleetDocument ===

impl<'a> FleetDocument<'a> {
    fn of(fleet: &'a FleetSeen) -> Self {
        let ledgers = fleet.ledgers.iter();
        let frozen = fleet.frozen.iter();
        Self {
            ledgers: ledgers
                .map(|of| LedgerDocument::of(of, fleet.leases_of(of.ledger)))
                .collect(),
            frozen: frozen.map(FreezeDocument::of).collect(),
            pause: fleet.pause.as_ref().map(PauseDocument::of),
            invitations: fleet
                .invitations
                .iter()
                .map(|(expires_ms, note)| InvitationDocument {
                    expires: calendar::rfc3339(*expires_ms),
                    note: note.as_deref(),
                })
                .collect(),
        }
    }
}

// === impl FreezeDocument ===

impl FreezeDocument {
    /// App (`None`: all), since when, and by whose order.
    pub fn of((app, since_ms, by): &(Option<String>, u64, String)) -> Self {
        Self {
            app: app.clone(),
            since: calendar::rfc3339(*since_ms),
            by: by.clone(),
        }
    }
}

// === impl LedgerDocument ===

impl<'a> LedgerDocument<'a> {
    fn of(of: &'a FleetLedger, leases: impl Iterator<Item = &'a LeaseNow>) -> Self {
        Self {
            ledger: of.ledger.to_string(),
            host: &of.host,
            bursar: &of.bursar,
            state: of.state(),
            heard: calendar::rfc3339(of.heard_ms),
            lines_behind: of.lines_behind,
            lag_s: of.lag_s,
            mark_seq: of.mark_seq,
            losses: of.losses,
            clock_ahead_ms: of.clock_ahead_ms,
            copy_of: of.copy_of.map(|of| of.to_string()),
            awaited: of.is_awaited,
            leases: leases.map(LeaseDocument::of).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
