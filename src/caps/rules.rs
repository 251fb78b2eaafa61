//! What is configured of caps: limits, floors, and the time zone of their windows.
//!
//! Promise: a limit that is not given is `None`, and zero is a limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::orders::{OrderError, Raise};
use super::window::{Period, Window};
use crate::config::{self, ALL_APPS, App, Limits, SessionLimits};
use crate::money::MicroUsd;

/// What a cap applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All apps together.
    All,
    App(Arc<str>),
}

/// The rules that requests are judged by. A reload replaces them.
#[derive(Clone, Debug)]
pub struct Rules {
    pub zone: TimeZone,
    pub all: Limits,
    floor: MicroUsd,
    apps: BTreeMap<Arc<str>, OfApp>,
    /// These are all apps there are.
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct OfApp {
    limits: Limits,
    floor: Option<MicroUsd>,
    session: SessionLimits,
}

// === impl Scope ===

impl Scope {
    /// The app's name, or `all`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::All => ALL_APPS,
            Self::App(name) => name,
        }
    }

    /// `None` for all apps.
    pub fn app(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::App(name) => Some(name),
        }
    }

    /// Whether an app's requests count here.
    pub fn holds(&self, app: &str) -> bool {
        self.app().is_none_or(|own| own == app)
    }
}

// === impl Rules ===

impl Rules {
    pub fn new<'a>(caps: &config::CapsTable, apps: impl IntoIterator<Item = &'a App>) -> Self {
        let of_app = |app: &App| OfApp {
            limits: app.limits,
            floor: app.request_floor,
            session: app.session,
        };
        Self {
            zone: caps.time_zone.clone(),
            all: caps.all,
            floor: caps.request_floor,
            apps: apps
                .into_iter()
                .map(|app| (Arc::clone(&app.name), of_app(app)))
                .collect(),
            is_whole: false,
        }
    }

    /// The same, where they name every app there is: another one was removed.
    #[must_use]
    pub fn of_all_apps(self) -> Self {
        Self {
            is_whole: true,
            ..self
        }
    }

    /// Whether an app was removed: whose cap is gone must not go on without it.
    pub fn is_removed(&self, app: &str) -> bool {
        self.is_whole && !self.apps.contains_key(app)
    }

    /// No cap at all.
    pub fn none() -> Self {
        Self {
            zone: TimeZone::UTC,
            all: Limits::default(),
            floor: MicroUsd::ZERO,
            apps: BTreeMap::new(),
            is_whole: false,
        }
    }

    /// The least that a request of this app is expected to cost.
    pub fn floor(&self, app: &str) -> MicroUsd {
        let own = self.apps.get(app).and_then(|app| app.floor);
        own.unwrap_or(self.floor)
    }

    /// What one session of this app may take; `None`: anything.
    pub fn session(&self, app: &str) -> Option<SessionLimits> {
        let limits = self.apps.get(app)?.session;
        (!limits.is_empty()).then_some(limits)
    }

    /// The apps whose sessions have limits.
    pub fn sessions(&self) -> impl Iterator<Item = (&Arc<str>, SessionLimits)> {
        let apps = self.apps.iter().map(|(app, of)| (app, of.session));
        apps.filter(|(_, limits)| !limits.is_empty())
    }

    /// Nothing has a limit.
    pub fn are_none(&self) -> bool {
        let mut apps = self.apps.values();
        self.limits().next().is_none() && apps.all(|app| app.session.is_empty())
    }

    /// An order to raise a cap to `to` in the window of now.
    pub fn raise(
        &self,
        app: Option<&str>,
        period: Period,
        to: MicroUsd,
        now_ms: u64,
    ) -> Result<Raise, OrderError> {
        let set = self
            .limits()
            .find_map(|(scope, of, limit)| (scope.app() == app && of == period).then_some(limit));
        let configured = set.ok_or_else(|| OrderError::NoCap {
            scope: app.unwrap_or(ALL_APPS).to_owned(),
            period,
        })?;
        if to < configured {
            return Err(OrderError::NotRaised { to, configured });
        }
        let window = Window::of(period, now_ms, &self.zone);
        Ok(Raise {
            app: app.map(str::to_owned),
            period,
            since_ms: window.since_ms,
            until_ms: window.until_ms,
            to_micro_usd: to,
            configured_micro_usd: Some(configured),
        })
    }

    /// Every cap that is set.
    pub fn limits(&self) -> impl Iterator<Item = (Scope, Period, MicroUsd)> {
        let all = std::iter::once((Scope::All, self.all));
        let apps = self
            .apps
            .iter()
            .map(|(name, app)| (Scope::App(Arc::clone(name)), app.limits));
        all.chain(apps).flat_map(|(scope, limits)| {
            let of = [
                (Period::Hour, limits.hour),
                (Period::Day, limits.day),
                (Period::Month, limits.month),
            ];
            let given = of
                .into_iter()
                .filter_map(|(period, limit)| Some((period, limit?)));
            given.map(move |(period, limit)| (scope.clone(), period, limit))
        })
    }
}
