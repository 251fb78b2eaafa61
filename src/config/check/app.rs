//! `[[app]]` and `[caps]`: who may spend, and how much.
//!
//! Promise: two apps are never told apart by the same thing: no name and no user stands twice.

use std::path::Path;

use super::Check;
use crate::calendar;
use crate::config::app::{App, Caps, DEFAULT_APP, Limits, OnClarification};
use crate::config::errors::Place;
use crate::config::file::{AppTable, At, CapsTable, LimitsKeys};
use crate::config::key::ApiKey;
use crate::config::settings::{AgentReceipts, OnDisconnect};
use crate::config::token::{TOKEN_CHARS_MIN, TokenForm, TokenHash};
use crate::money::MicroUsd;

/// Most declared apps: each is a label of every metric that has apps.
const APPS_MAX: usize = 64;

/// The largest amount of the interface's grammar: 15 digits.
const MICRO_USD_MAX: u64 = 999_999_999_999_999;

/// One cent: more than an answer of a specialist usually costs.
const REQUEST_FLOOR: MicroUsd = MicroUsd::new(10_000);

/// Whether the files with tokens are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    Read,
    LeftAlone,
}

/// Every declared app, in the order of the file, and where it stands. A command that only reads
/// may have no right to the tokens.
pub fn apps(
    check: &mut Check<'_>,
    tables: Vec<AppTable>,
    tokens: Tokens,
) -> (Vec<App>, Vec<String>) {
    if let Some(table) = tables.get(APPS_MAX) {
        let place = table.place.clone();
        check.refuse(&place, format!("[[app]]: at most {APPS_MAX} apps"));
    }
    let mut apps: Vec<App> = Vec::new();
    let mut places = Vec::new();
    for table in tables {
        let place = check.shown(&table.place);
        if let Some(app) = app(check, table, &apps, tokens) {
            apps.push(app);
            places.push(place);
        }
    }
    (apps, places)
}

fn app(check: &mut Check<'_>, table: AppTable, before: &[App], tokens: Tokens) -> Option<App> {
    let name = app_name(check, table.name, &table.place, before);
    let uids = uids(check, table.uids.unwrap_or_default(), before);
    let limits = limits(check, "app", table.limits);
    let floor = amount(check, table.request_floor_micro_usd);
    let token_place = table.token_file.as_ref().map(|given| given.place.clone());
    let token_file = table.token_file.map(|given| check.path(given));
    let token = match (&token_file, &token_place, tokens) {
        (Some(path), Some(place), Tokens::Read) => token(check, path, place, before),
        _ => None,
    };
    let on_disconnect = table.on_disconnect.map(|given| {
        check.word(
            Some(given),
            OnDisconnect::Drain,
            OnDisconnect::ALL,
            OnDisconnect::as_str,
        )
    });
    let agent_receipts = table.agent_receipts.map(|given| {
        check.word(
            Some(given),
            AgentReceipts::Unreported,
            AgentReceipts::ALL,
            AgentReceipts::as_str,
        )
    });
    let on_clarification = check.word(
        table.on_clarification,
        OnClarification::Pass,
        OnClarification::ALL,
        OnClarification::as_str,
    );
    let name = name?;
    if name == DEFAULT_APP && (token_file.is_some() || !uids.is_empty()) {
        let place = token_place.unwrap_or_else(|| table.place.clone());
        check.refuse(
            &place,
            format!(
                "{DEFAULT_APP:?} is the app of callers that show no token; it takes neither token_file nor uids"
            ),
        );
    }
    if name != DEFAULT_APP && token_file.is_none() && uids.is_empty() {
        let place = check.shown(&table.place);
        check.warn(format!(
            "{place}: the app {name:?} has neither token_file nor uids: nobody can show that it is \
             this app, and `bursar exec --app {name}` alone spends as it"
        ));
    }
    Some(App {
        token_file,
        token,
        uids,
        limits,
        request_floor: floor,
        on_disconnect,
        agent_receipts,
        on_clarification,
        ..App::new(name)
    })
}

/// The hash of the token in a file, which is read under the rules of the key's.
fn token(check: &mut Check<'_>, path: &Path, place: &Place, before: &[App]) -> Option<TokenHash> {
    if check.has_refused(place) {
        return None;
    }
    let read = ApiKey::from_file(path, check.key_file_kind(path));
    let text = match &read {
        Ok(token) => token.secret(),
        Err(why) => {
            check.refuse(place, format!("not a token: {why}"));
            return None;
        }
    };
    if text.len() < TOKEN_CHARS_MIN {
        check.refuse(
            place,
            format!(
                "the token in {} is shorter than {TOKEN_CHARS_MIN} characters and could be guessed; `openssl rand -hex 32` makes one",
                path.display()
            ),
        );
        return None;
    }
    if TokenForm::of(text) == TokenForm::Mistyped {
        check.refuse(
            place,
            format!(
                "the token in {} has a slip in it: its checksum differs",
                path.display()
            ),
        );
        return None;
    }
    let hash = TokenHash::of(text);
    if let Some(other) = before.iter().find(|app| app.token == Some(hash)) {
        let name = &other.name;
        check.refuse(place, format!("the app {name:?} has the same token"));
        return None;
    }
    Some(hash)
}

fn app_name(
    check: &mut Check<'_>,
    given: Option<At<String>>,
    table: &Place,
    before: &[App],
) -> Option<String> {
    let Some(At { value, place }) = given else {
        if !check.has_refused_key("app", "name") {
            check.refuse(table, "[[app]] has no name");
        }
        return None;
    };
    if let Err(why) = App::check_name(&value) {
        check.refuse(&place, format!("{value:?}: {why}"));
        return None;
    }
    if before.iter().any(|app| *app.name == *value) {
        check.refuse(&place, format!("there is an app {value:?} already"));
        return None;
    }
    Some(value)
}

fn uids(check: &mut Check<'_>, given: Vec<At<i64>>, before: &[App]) -> Vec<u32> {
    let mut uids = Vec::new();
    for At { value, place } in given {
        let Some(uid) = u32::try_from(value).ok().filter(|uid| *uid != u32::MAX) else {
            check.refuse(&place, format!("{value} is no user id"));
            continue;
        };
        if let Some(other) = before.iter().find(|app| app.uids.contains(&uid)) {
            let name = &other.name;
            check.refuse(
                &place,
                format!("the user {uid} is the app {name:?} already"),
            );
        } else if uids.contains(&uid) {
            check.refuse(&place, format!("the user {uid} stands twice"));
        } else {
            uids.push(uid);
        }
    }
    uids
}

pub fn caps(check: &mut Check<'_>, file: CapsTable) -> Caps {
    let time_zone = match file.time_zone {
        None => calendar::zone(None),
        Some(given) => {
            let zone = calendar::zone(Some(&given.value));
            if let Err(why) = &zone {
                check.refuse(&given.place, why.to_string());
            }
            zone
        }
    };
    Caps {
        time_zone: time_zone.unwrap_or(jiff::tz::TimeZone::UTC),
        all: limits(check, "caps", file.limits),
        request_floor: amount(check, file.request_floor_micro_usd).unwrap_or(REQUEST_FLOOR),
    }
}

/// A cap that a shorter window's never lets reach is a mistake.
fn limits(check: &mut Check<'_>, table: &str, given: LimitsKeys) -> Limits {
    let prefix = if table == "app" { "cap_" } else { "" };
    let places =
        [&given.hour, &given.day, &given.month].map(|at| at.as_ref().map(|at| at.place.clone()));
    let limits = Limits {
        hour: amount(check, given.hour),
        day: amount(check, given.day),
        month: amount(check, given.month),
    };
    let cap = |window: &str| {
        let mut windows = limits.windows().into_iter();
        windows.find(|(name, _)| *name == window)?.1
    };
    for (short, long) in limits.unreachable() {
        let place = match (short, &places) {
            ("hour", [Some(place), _, _]) | ("day", [_, Some(place), _]) => place,
            _ => continue,
        };
        if let (Some(less), Some(more)) = (cap(short), cap(long)) {
            check.refuse(
                place,
                format!(
                    "the cap of the {short}, {less}, is above that of the {long}, {more}: it would never be reached; see {prefix}{long}_micro_usd"
                ),
            );
        }
    }
    limits
}

fn amount(check: &mut Check<'_>, given: Option<At<i64>>) -> Option<MicroUsd> {
    let At { value, place } = given?;
    match u64::try_from(value) {
        Ok(value) if value <= MICRO_USD_MAX => Some(MicroUsd::new(value)),
        _ => {
            check.refuse(
                &place,
                format!("takes micro-dollars, 0 to {MICRO_USD_MAX}, not {value}"),
            );
            None
        }
    }
}
