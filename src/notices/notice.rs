//! What a warning of a cap says: one JSON object.
//!
//! Promise: it names the cap and its figures; no session, user, tag or prompt, and no other app. Amounts are integers of
//! micro-dollars. Two of the same share, limit and window have one `id`, by which a receiver knows a repeat.

use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

use crate::calendar;
use crate::caps::{CapView, Period};
use crate::config::{ALL_APPS, Share};
use crate::ledger::MicroUsdSum;
use crate::money::MicroUsd;

/// A share of a cap that was reached, or a trial.
#[derive(Clone, Debug, Serialize)]
pub struct Notice {
    event: Event,
    pub id: String,
    /// `None`: all apps together.
    app: Option<String>,
    pub cap: Period,
    window: NoticeWindow,
    #[serde(rename = "threshold", serialize_with = "as_number")]
    pub share: Share,
    #[serde(rename = "spent_micro_usd")]
    pub spent: MicroUsdSum,
    #[serde(rename = "held_micro_usd")]
    pub held: MicroUsdSum,
    #[serde(rename = "limit_micro_usd")]
    pub limit: MicroUsd,
    /// The same for a person; chat programs take the object for this member.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    CapWarning,
    Trial,
}

/// RFC 3339.
#[derive(Clone, Debug, Serialize)]
struct NoticeWindow {
    since: Option<String>,
    until: Option<String>,
    time_zone: Option<String>,
}

// === impl Notice ===

impl Notice {
    pub fn of(cap: &CapView, share: Share, time_zone: Option<&str>) -> Self {
        let app = (cap.scope != ALL_APPS).then(|| cap.scope.clone());
        let whose = match &app {
            Some(app) => format!("the app {app}"),
            None => "all apps together".to_owned(),
        };
        let zone = time_zone.and_then(|name| TimeZone::get(name).ok());
        let anew = zone.map_or_else(
            || calendar::rfc3339(cap.resets_at_ms).unwrap_or_default(),
            |zone| calendar::shown(cap.resets_at_ms, &zone),
        );
        let CapView {
            period,
            spent,
            held,
            limit,
            ..
        } = cap;
        let text = format!(
            "bursar: {} % of the cap of {whose} is used: {spent} spent and {held} held of {limit} in the {period}. It \
             begins anew at {anew}.",
            share.percent()
        );
        Self {
            event: Event::CapWarning,
            id: format!(
                "{}-{period}-{}-{}-{}",
                cap.scope,
                cap.since_ms,
                limit.get(),
                share.ten_thousandths()
            ),
            app,
            cap: *period,
            window: NoticeWindow {
                since: calendar::rfc3339(cap.since_ms),
                until: calendar::rfc3339(cap.resets_at_ms),
                time_zone: time_zone.map(str::to_owned),
            },
            share,
            spent: *spent,
            held: *held,
            limit: *limit,
            text,
        }
    }

    /// A trial.
    pub fn trial(now_ms: u64) -> Self {
        Self {
            event: Event::Trial,
            id: format!("trial-{now_ms}"),
            app: None,
            cap: Period::Day,
            window: NoticeWindow {
                since: calendar::rfc3339(now_ms),
                until: calendar::rfc3339(now_ms),
                time_zone: None,
            },
            share: Share::FULL,
            spent: MicroUsdSum::default(),
            held: MicroUsdSum::default(),
            limit: MicroUsd::ZERO,
            text: "bursar: a trial of [notify]; no cap was reached.".to_owned(),
        }
    }

    /// The app's name, or `all`.
    pub fn scope(&self) -> &str {
        self.app.as_deref().unwrap_or(ALL_APPS)
    }
}

/// `0.8`
fn as_number<S: Serializer>(share: &Share, to: S) -> Result<S::Ok, S::Error> {
    (f64::from(share.ten_thousandths()) / 10_000.0).serialize(to)
}
