//! Why a request may not spend now, in words for the person whose program it was.
//!
//! Promise: the text names the app or all apps, the cap, its amount, what of it is spent and what is held, and when its
//! next window begins, or the person behind the freeze and since when; nothing of the request is in it.

use std::fmt;

use jiff::tz::TimeZone;

use super::leases::SharedCap;
use super::orders::Frozen;
use super::rules::Scope;
use super::window::{Period, Window};
use crate::calendar;
use crate::config::SessionLimits;
use crate::ledger::marks::Session;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::{Charge, SESSIONS_MAX, SessionSum};
use crate::money::MicroUsd;

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing is left.
    Reached(Box<Reached>),
    /// Nothing is left of the limit of its run.
    RunReached(Words),
    /// Nothing is left of what its session may take, or of what it shares with others.
    SessionReached(Words),
    Frozen(Words),
    /// The app was taken away while the request waited.
    Removed(Words),
    /// Others wait already, as many as may.
    Crowded(Words),
    /// It waited for room as long as it may.
    Late(Words),
    /// Of a cap that many machines share nothing is left here.
    Shared(Box<SharedRefusal>),
}

/// A shared cap of which nothing is to be had now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRefusal {
    pub cap: String,
    pub why: SharedWhy,
    words: Words,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedWhy {
    /// All of it is leased or spent.
    Reached,
    /// This ledger has its largest share.
    Share,
    /// Others may give back a part, or the database takes its time.
    Busy,
    /// The database cannot be asked.
    Away,
    /// It was restored from a backup, and grants nothing yet.
    Paused,
    /// The fleet has no cap of this name.
    NoCap,
}

/// A cap without anything left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    pub scope: Scope,
    pub period: Period,
    pub limit: MicroUsd,
    pub spent: MicroUsdSum,
    pub held: MicroUsdSum,
    pub window: Window,
    words: Words,
}

/// A text that is ready to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(String);

// === impl Refused ===

impl Refused {
    pub fn reached(
        (scope, period): (&Scope, Period),
        limit: MicroUsd,
        charge: Charge,
        window: Window,
        zone: &TimeZone,
    ) -> Self {
        let (spent, held) = (
            charge.billed,
            MicroUsdSum::from_micro_usd(charge.held.now()),
        );
        let words = Words(format!(
            "The cap of {} is reached: of {limit} in the {period}, {spent} are spent and {held} are held for \
             requests whose price is not known. It begins anew at {}. Nothing was sent. See `bursar caps`; \
             `bursar caps raise` raises it until then.",
            whose(scope),
            moment(window.until_ms, zone),
        ));
        Self::Reached(Box::new(Reached {
            scope: scope.clone(),
            period,
            limit,
            spent,
            held,
            window,
            words,
        }))
    }

    pub fn shared(cap: &str, why: SharedWhy, order: Option<&SharedCap>) -> Self {
        Self::Shared(Box::new(SharedRefusal::new(cap, why, order)))
    }

    pub fn run_reached(run: &str, app: &str, limit: MicroUsd, charge: Charge) -> Self {
        let held = MicroUsdSum::from_micro_usd(charge.held.now());
        Self::RunReached(Words(format!(
            "The run {run} of {app} has reached its limit of {limit} (bursar exec --max-usd): {} billed, \
             {held} set aside for answers whose price is not known. Nothing was sent; a new run has a \
             new limit.",
            charge.billed
        )))
    }

    pub fn session_reached(
        session: Session,
        app: &str,
        limits: SessionLimits,
        counted: SessionSum,
    ) -> Self {
        let used = used_of("it", limits, counted);
        Self::SessionReached(Words(format!(
            "The session {session} of the app {app} has reached its cap: {used}. Nothing was sent. See what it did \
             with `bursar explain --session {session}`. A new session has a cap of its own; a higher cap in [[app]] \
             takes effect on reload."
        )))
    }

    /// The cap that an app's sessions share beyond those that are summed one by one.
    pub fn overflow_reached(app: &str, limits: SessionLimits, counted: SessionSum) -> Self {
        let used = used_of("together they", limits, counted);
        Self::SessionReached(Words(format!(
            "The app {app} has {SESSIONS_MAX} sessions, the most that are summed one by one. Its further new sessions \
             share one cap, which is reached: {used}. Nothing was sent. Another new session shares that cap too, until \
             others have been silent for 35 days; a higher cap in [[app]] takes effect on reload."
        )))
    }

    pub fn session_late(session: Session, app: &str, seconds: u64) -> Self {
        Self::Late(Words(format!(
            "What is left of the cap of the session {session} of {app} is taken by its requests on their way, and \
             none ended within {seconds} s. Nothing was sent."
        )))
    }

    pub fn overflow_late(app: &str, seconds: u64) -> Self {
        Self::Late(Words(format!(
            "What is left of the cap that the sessions of {app} beyond {SESSIONS_MAX} share is taken by their requests \
             on their way, and none ended within {seconds} s. Nothing was sent."
        )))
    }

    /// `thaw`: the command that ends it, without the app.
    pub fn frozen(app: &str, is_all: bool, frozen: &Frozen, thaw: &str, zone: &TimeZone) -> Self {
        let (subject, thaw) = if is_all {
            ("All apps are".to_owned(), thaw.to_owned())
        } else {
            (format!("The app {app} is"), format!("{thaw} {app}"))
        };
        Self::Frozen(Words(format!(
            "{subject} frozen since {} by {}. Nothing that costs money is sent; free routes go on. `{thaw}` ends \
             it.",
            moment(frozen.since_ms, zone),
            frozen.by,
        )))
    }

    pub fn removed(app: &str) -> Self {
        Self::Removed(Words(format!(
            "The app {app} was removed while this request waited. Nothing was sent. `bursar app add` makes \
             an app, with a token of its own."
        )))
    }

    pub fn crowded(waiting: usize) -> Self {
        Self::Crowded(Words(format!(
            "Little is left below a cap, so requests go one at a time, and {waiting} wait already. Nothing \
             was sent; try again later. See `bursar caps`."
        )))
    }

    pub fn run_late(run: &str, app: &str, seconds: u64) -> Self {
        Self::Late(Words(format!(
            "What is left of the limit of the run {run} of {app} (bursar exec --max-usd) is taken by its \
             requests on their way, and none ended within {seconds} s. Nothing was sent."
        )))
    }

    pub fn late(seconds: u64) -> Self {
        Self::Late(Words(format!(
            "Little is left below a cap, so requests go one at a time, and this one had no turn within \
             {seconds} s. Nothing was sent; try again later. See `bursar caps`."
        )))
    }
}

// === impl SharedRefusal ===

impl SharedRefusal {
    /// `order`: the cap as the fleet's database stated it last.
    fn new(cap: &str, why: SharedWhy, order: Option<&SharedCap>) -> Self {
        let limit = order.map_or_else(String::new, |order| {
            format!(" ({} in the {})", order.limit, order.period)
        });
        let anew = order.map_or_else(String::new, |order| {
            let zone = TimeZone::get(&order.zone).unwrap_or(TimeZone::UTC);
            format!(
                " It begins anew at {}.",
                moment(order.window.until_ms, &zone)
            )
        });
        let cap_is = format!("The shared cap {cap}{limit}");
        let words = match why {
            SharedWhy::Reached => format!(
                "{cap_is} is reached: all of it is spent, or leased to machines that may spend it.{anew} Nothing was \
                 sent. See `bursar caps`; an operator of the fleet changes it."
            ),
            SharedWhy::Share => format!(
                "{cap_is} is reached for this machine, which has spent the largest share that it may have.{anew} \
                 Nothing was sent. An operator of the fleet changes it."
            ),
            SharedWhy::Busy => format!(
                "{cap_is} has nothing left for this machine at the moment: others hold what is left and may give it \
                 back, or the fleet's database takes its time. Nothing was sent; try again later. See `bursar caps`."
            ),
            SharedWhy::Away => format!(
                "What this machine had of the shared cap {cap} is used up, and the fleet's database cannot be asked for \
                 more. Nothing was sent. See `bursar status`."
            ),
            SharedWhy::Paused => format!(
                "What this machine had of the shared cap {cap} is used up, and the fleet's database grants nothing: it \
                 was restored from a backup, and waits until every machine has shown it what it holds. Nothing was sent. \
                 An operator ends that with `bursar fleet resume`."
            ),
            SharedWhy::NoCap => format!(
                "The fleet has no cap {cap}, which [fleet] shared_caps names. Nothing was sent. An operator of the fleet \
                 makes it (`bursar fleet caps`), or the name goes."
            ),
        };
        Self {
            cap: cap.to_owned(),
            why,
            words: Words(words),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Reached(reached) => &reached.words,
            Self::Shared(refusal) => &refusal.words,
            Self::RunReached(words)
            | Self::SessionReached(words)
            | Self::Frozen(words)
            | Self::Removed(words)
            | Self::Crowded(words)
            | Self::Late(words) => words,
        };
        f.write_str(&words.0)
    }
}

/// The limits of a session, or of those that share one, and what was used of them.
fn used_of(subject: &str, limits: SessionLimits, counted: SessionSum) -> String {
    let SessionSum {
        charge, requests, ..
    } = counted;
    let held = MicroUsdSum::from_micro_usd(charge.held.now());
    let cap = limits.cap.map(|cap| {
        format!(
            "{subject} may cost {cap} (session_cap_micro_usd), and {} are billed, {held} set aside for answers whose \
             price is not known",
            charge.billed
        )
    });
    let most = limits.requests.map(|most| {
        format!("{subject} may make {most} requests (session_requests_max), and made {requests}")
    });
    let used: Vec<String> = cap.into_iter().chain(most).collect();
    used.join("; ")
}

fn whose(scope: &Scope) -> String {
    match scope {
        Scope::All => "all apps together".to_owned(),
        Scope::App(name) => format!("the app {name}"),
    }
}

fn moment(at_ms: u64, zone: &TimeZone) -> String {
    let name = zone.iana_name().unwrap_or("this machine's time");
    format!("{} ({name})", calendar::shown(at_ms, zone))
}

#[cfg(test)]
mod tests;
