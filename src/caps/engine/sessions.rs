//! The limits of sessions: what one session of an app may cost, and how many requests it may make.
//!
//! What a session came to is folded from the ledger ([`crate::ledger::usage::SessionSum`]), so that a restart
//! forgets nothing; what is under way is held here. A repeat of what is charged passes: it was bought before.
//!
//! Promise: the rule of [`super`] for one limit, so a session's cap is exceeded by one request at most; what
//! is held is bounded by the requests under way.

use std::collections::HashMap;
use std::sync::Arc;

use super::counts::Counts;
use super::flight::{Ask, Flight};
use super::room::{Room, Share, Under, sum};
use crate::caps::refused::Refused;
use crate::caps::view::SessionCapsView;
use crate::config::SessionLimits;
use crate::ledger::marks::{Session, SessionHash};
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::{SessionAt, SessionSum};
use crate::money::MicroUsd;

/// What is under way of each session that has a limit.
#[derive(Debug, Default)]
pub struct UnderSessions(HashMap<(Arc<str>, SessionHash), Under>);

/// What the limits of sessions are judged by.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub counts: Counts<'a>,
    pub under: &'a UnderSessions,
}

/// A session of an app that has limits, and where it is summed.
#[derive(Clone, Copy)]
struct Limited<'a> {
    app: &'a Arc<str>,
    session: Session,
    limits: SessionLimits,
    at: SessionAt,
}

/// What a session's limit is asked about: nothing is, of a repeat.
fn session_of(ask: &Ask) -> Option<(&Arc<str>, Session)> {
    let session = ask.session.filter(|_| ask.repeats.is_none())?;
    Some((&ask.app, session))
}

/// Nothing more may be bought.
fn is_reached(limits: SessionLimits, counted: SessionSum) -> bool {
    let is_spent = |cap: MicroUsd| sum(counted.charge) >= u128::from(cap.get());
    let is_used_up = |most: u64| counted.requests >= most;
    limits.cap.is_some_and(is_spent) || limits.requests.is_some_and(is_used_up)
}

fn key_of(ask: &Ask) -> Option<(Arc<str>, SessionHash)> {
    let (app, session) = session_of(ask)?;
    Some((Arc::clone(app), session.hash))
}

// === impl UnderSessions ===

impl UnderSessions {
    pub fn begins(&mut self, ask: &Ask, share: Share) {
        if let Some(of) = key_of(ask) {
            self.0.entry(of).or_default().add(share, share.own);
        }
    }

    pub fn changes(&mut self, ask: &Ask, before: Share, share: Share) {
        if let Some(under) = key_of(ask).and_then(|of| self.0.get_mut(&of)) {
            under.remove(before, before.own);
            under.add(share, share.own);
        }
    }

    pub fn ends(&mut self, flight: &Flight) {
        let Some(of) = key_of(&flight.ask) else {
            return;
        };
        if let Some(under) = self.0.get_mut(&of) {
            under.remove(flight.share, flight.share.own);
            if *under == Under::default() {
                self.0.remove(&of);
            }
        }
    }
}

// === impl Sessions ===

impl Sessions<'_> {
    /// Whether the session of an ask has room for it now; an error where its limit is reached.
    pub fn room(&self, ask: &Ask, share: Share) -> Result<Room, Refused> {
        let asked = session_of(ask);
        let Some(of) = asked.and_then(|(app, session)| self.limited(app, session)) else {
            return Ok(Room::Enough);
        };
        let counted = self.counted(of);
        if of.is_reached(counted) {
            return Err(of.refusal(counted));
        }
        let under = self.under_of(of);
        let under_way = u64::try_from(under.requests()).unwrap_or(u64::MAX);
        let requests = counted.requests.saturating_add(under_way);
        Ok(match of.limits.cap {
            _ if of.limits.requests.is_some_and(|most| requests >= most) => Room::Taken,
            Some(cap) => under.room(counted.charge, cap, share.own),
            None => Room::Enough,
        })
    }

    /// Its limit is reached by now, for a request that was admitted.
    pub fn over(&self, ask: &Ask) -> Option<Refused> {
        let (app, session) = session_of(ask)?;
        self.reached(app, session)
    }

    pub fn reached(&self, app: &Arc<str>, session: Session) -> Option<Refused> {
        let of = self.limited(app, session)?;
        let counted = self.counted(of);
        of.is_reached(counted).then(|| of.refusal(counted))
    }

    /// What a session was billed, of one app or of whichever has it; `None`: nothing is known of it. `of`: the
    /// session as each app has it.
    pub fn billed(
        &self,
        app: Option<&str>,
        of: impl Fn(&str) -> SessionHash,
    ) -> Option<MicroUsdSum> {
        let sessions = self.counts.usage.sessions();
        let apps = sessions
            .apps()
            .filter(|own| app.is_none_or(|app| app == *own));
        let found = apps.filter_map(|app| sessions.known(app, of(app)));
        found.fold(None, |sum: Option<MicroUsdSum>, found| {
            let mut sum = sum.unwrap_or_default();
            sum.merge(found.charge.billed);
            Some(sum)
        })
    }

    /// The limits of each app's sessions, and how near to them they are.
    pub fn views(&self) -> Vec<SessionCapsView> {
        let limited = self.counts.rules.sessions();
        let view = limited.map(|(app, limits)| {
            let mut view = SessionCapsView {
                app: app.to_string(),
                cap: limits.cap,
                requests_max: limits.requests,
                sessions: 0,
                overflow: None,
                reached: 0,
                most_spent: MicroUsdSum::default(),
                most_requests: 0,
            };
            for (at, sum) in self.counts.usage.sessions().of(app) {
                match at {
                    SessionAt::Named(_) => view.sessions += 1,
                    SessionAt::Overflow => view.overflow = Some(sum.charge.billed),
                }
                view.reached += usize::from(is_reached(limits, sum));
                view.most_spent = view.most_spent.max(sum.charge.billed);
                view.most_requests = view.most_requests.max(sum.requests);
            }
            view
        });
        view.collect()
    }

    /// The words for an ask that waited too long for others of its session. `None`: it has no limit.
    pub fn late(&self, ask: &Ask, seconds: u64) -> Option<Refused> {
        let (app, session) = session_of(ask)?;
        Some(match self.limited(app, session)?.at {
            SessionAt::Named(_) => Refused::session_late(session, app, seconds),
            SessionAt::Overflow => Refused::overflow_late(app, seconds),
        })
    }

    fn limited<'a>(&self, app: &'a Arc<str>, session: Session) -> Option<Limited<'a>> {
        Some(Limited {
            app,
            session,
            limits: self.counts.rules.session(app)?,
            at: self.counts.usage.sessions().place(app, session.hash),
        })
    }

    /// What is in the ledger, and what it could not write yet.
    fn counted(&self, of: Limited<'_>) -> SessionSum {
        let sessions = self.counts.usage.sessions();
        let mut counted = sessions.get(of.app, of.at);
        for unbooked in self.counts.unbooked.values() {
            let session = unbooked.session.filter(|_| unbooked.app == *of.app);
            if session.is_some_and(|session| sessions.place(of.app, session) == of.at) {
                counted.charge += unbooked.charge;
                counted.requests = counted.requests.saturating_add(1);
            }
        }
        counted
    }

    fn under_of(&self, of: Limited<'_>) -> Under {
        if let SessionAt::Named(session) = of.at {
            let under = self.under.0.get(&(Arc::clone(of.app), session));
            return under.copied().unwrap_or_default();
        }
        let mut all = Under::default();
        for ((app, session), under) in &self.under.0 {
            if app == of.app && self.counts.usage.sessions().place(app, *session) == of.at {
                all.merge(*under);
            }
        }
        all
    }
}

// === impl Limited ===

impl Limited<'_> {
    fn is_reached(&self, counted: SessionSum) -> bool {
        is_reached(self.limits, counted)
    }

    fn refusal(&self, counted: SessionSum) -> Refused {
        let (app, limits) = (self.app, self.limits);
        match self.at {
            SessionAt::Named(_) => Refused::session_reached(self.session, app, limits, counted),
            SessionAt::Overflow => Refused::overflow_reached(app, limits, counted),
        }
    }
}
