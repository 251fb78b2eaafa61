//! Deployed endpoints: the registry, its states, and what each served.
//!
//! Interface, Authentication: "The organization scopes … endpoints".
//! Promise: a change of state is on disk before it is answered; an endpoint of another organization is not
//! there; a deploy that a restart cut is gone, as a failed one is.

pub mod leaderboard;
pub mod metrics;
pub mod record;
pub mod traffic;

use crate::{
    error::ServiceError,
    keep::{ENDPOINT_HOURS, Keep, Mutation},
    store::{Store, StoreError, Table},
};
use jiff::Timestamp;
use parking_lot::Mutex;
use record::{Endpoint, EndpointStatus};
use std::collections::BTreeMap;
use traffic::{EndpointHour, Observation, Traffic};

/// Assumed (endpoint-limits): endpoints of one organization, in any state.
pub const PER_ORGANIZATION_MAX: usize = 100;

const ENDPOINTS: Table = Table("endpoints");

/// Organization and name.
type Id = (String, String);

#[derive(Debug)]
pub struct Endpoints {
    store: Store,
    inner: Mutex<BTreeMap<Id, Held>>,
    /// Writes the traffic.
    keep: Keep,
}

#[derive(Debug)]
struct Held {
    endpoint: Endpoint,
    traffic: Traffic,
}

// === impl Endpoints ===

impl Endpoints {
    pub fn open(store: Store, keep: Keep) -> Result<Self, StoreError> {
        let mut inner = BTreeMap::new();
        for (row, endpoint) in store.all::<Endpoint>(ENDPOINTS)? {
            // Assumed (deploy-cut): the client's stream ended without `complete`, so the deploy failed.
            if endpoint.status(Timestamp::MAX) == EndpointStatus::Deploying {
                store.remove(ENDPOINTS, &row)?;
                continue;
            }
            let id = (endpoint.org.clone(), endpoint.name.clone());
            inner.insert(id, Held::new(endpoint));
        }
        for (row, hour) in store.all::<EndpointHour>(ENDPOINT_HOURS)? {
            let parsed = serde_json::from_str::<(String, String, i64)>(&row);
            if let Ok((org, name, at)) = parsed
                && let Some(held) = inner.get_mut(&(org, name))
            {
                held.traffic.restore(at, hour);
            } else {
                store.remove(ENDPOINT_HOURS, &row)?;
            }
        }
        Ok(Self {
            store,
            inner: Mutex::new(inner),
            keep,
        })
    }

    /// Takes the name for a new deploy. 409 if it is taken, 422 at the bound.
    pub fn reserve(&self, endpoint: Endpoint) -> Result<(), ServiceError> {
        let id = (endpoint.org.clone(), endpoint.name.clone());
        let mut inner = self.inner.lock();
        if inner.contains_key(&id) {
            return Err(ServiceError::EndpointConflict(
                "an endpoint of this name exists".to_owned(),
            )
            .assumed("deploy-conflict"));
        }
        if inner.keys().filter(|(org, _)| *org == id.0).count() >= PER_ORGANIZATION_MAX {
            return Err(ServiceError::invalid(format!(
                "an organization has at most {PER_ORGANIZATION_MAX} endpoints; delete one first"
            ))
            .assumed("endpoint-limits"));
        }
        self.store.put(ENDPOINTS, &row(&id), &endpoint)?;
        inner.insert(id, Held::new(endpoint));
        Ok(())
    }

    /// Changes this deploy's record and returns it; `None` if it was deleted meanwhile.
    pub fn amend(
        &self,
        which: &Endpoint,
        change: impl FnOnce(Endpoint) -> Endpoint,
    ) -> Result<Option<Endpoint>, ServiceError> {
        let id = (which.org.clone(), which.name.clone());
        let mut inner = self.inner.lock();
        let Some(held) = inner.get_mut(&id).filter(|held| held.is(which)) else {
            return Ok(None);
        };
        let changed = change(held.endpoint.clone());
        self.store.put(ENDPOINTS, &row(&id), &changed)?;
        held.endpoint = changed.clone();
        Ok(Some(changed))
    }

    /// Forgets a deploy that failed.
    pub fn abandon(&self, which: &Endpoint) -> Result<(), ServiceError> {
        let id = (which.org.clone(), which.name.clone());
        let mut inner = self.inner.lock();
        match inner.get(&id) {
            Some(held) if held.is(which) => self.forget(&mut inner, &id),
            _ => Ok(()),
        }
    }

    /// Whether no organization has any.
    pub fn is_empty(&self) -> bool {
        self.inner.lock().is_empty()
    }

    /// Every endpoint of the organization, in any status, by name.
    pub fn list(&self, org: &str) -> Vec<Endpoint> {
        let inner = self.inner.lock();
        let own = inner.values().filter(|held| held.endpoint.org == org);
        own.map(|held| held.endpoint.clone()).collect()
    }

    /// 404 for an id of which the organization has no endpoint.
    pub fn get(&self, org: &str, name: &str) -> Result<Endpoint, ServiceError> {
        self.look(org, name, |endpoint, _| endpoint.clone())
    }

    pub fn find(&self, org: &str, name: &str) -> Option<Endpoint> {
        self.get(org, name).ok()
    }

    /// Reads the endpoint and its traffic.
    pub fn look<T>(
        &self,
        org: &str,
        name: &str,
        see: impl FnOnce(&Endpoint, &Traffic) -> T,
    ) -> Result<T, ServiceError> {
        let id = (org.to_owned(), name.to_owned());
        match self.inner.lock().get(&id) {
            Some(held) => Ok(see(&held.endpoint, &held.traffic)),
            None => Err(not_found()),
        }
    }

    /// Interface: "`stopped` → `live`, after a warm-up".
    pub fn start(
        &self,
        org: &str,
        name: &str,
        now: Timestamp,
        warm_up_ms: u64,
    ) -> Result<Endpoint, ServiceError> {
        self.turn(org, name, now, |endpoint| endpoint.started(now, warm_up_ms))
    }

    /// Interface: "`live` → `stopped`".
    pub fn stop(&self, org: &str, name: &str, now: Timestamp) -> Result<Endpoint, ServiceError> {
        self.turn(org, name, now, |endpoint| endpoint.stopped(now))
    }

    /// Assumed (endpoint-transitions): 409 while the deploy runs; what holds already is no error.
    fn turn(
        &self,
        org: &str,
        name: &str,
        now: Timestamp,
        change: impl FnOnce(&Endpoint) -> Option<Endpoint>,
    ) -> Result<Endpoint, ServiceError> {
        let id = (org.to_owned(), name.to_owned());
        let mut inner = self.inner.lock();
        let held = inner.get_mut(&id).ok_or_else(not_found)?;
        if held.endpoint.status(now) == EndpointStatus::Deploying {
            return Err(ServiceError::EndpointConflict(
                "the endpoint is being deployed; wait for its stream to end".to_owned(),
            )
            .assumed("endpoint-transitions"));
        }
        if let Some(changed) = change(&held.endpoint) {
            self.store.put(ENDPOINTS, &row(&id), &changed)?;
            held.endpoint = changed;
        }
        Ok(held.endpoint.clone())
    }

    /// Interface: "any → removed, permanent".
    pub fn remove(&self, org: &str, name: &str) -> Result<(), ServiceError> {
        let id = (org.to_owned(), name.to_owned());
        let mut inner = self.inner.lock();
        match inner.contains_key(&id) {
            true => self.forget(&mut inner, &id),
            false => Err(not_found()),
        }
    }

    /// An endpoint's traffic goes with it: a later one of its name begins without.
    fn forget(&self, inner: &mut BTreeMap<Id, Held>, id: &Id) -> Result<(), ServiceError> {
        self.store.remove(ENDPOINTS, &row(id))?;
        if let Some(held) = inner.remove(id) {
            let hours = held.traffic.hours().between(i64::MIN, i64::MAX);
            let removed = hours.map(|(at, _)| Mutation::Remove(ENDPOINT_HOURS, hour_row(id, at)));
            self.keep.push(removed);
        }
        Ok(())
    }

    /// Interface, Errors 503: "endpoint stopped, cold-starting". Assumed (endpoint-cold): a stopped one names
    /// no time to wait for, since only a start ends it.
    pub fn check_live(&self, which: &Endpoint, now: Timestamp) -> Result<(), ServiceError> {
        let endpoint = self.get(&which.org, &which.name)?;
        let (what, retry_after_s) = match endpoint.status(now) {
            EndpointStatus::Live => return Ok(()),
            EndpointStatus::Stopped => ("stopped; start it first", None),
            EndpointStatus::Starting => ("starting", Some(endpoint.warm_in_s(now).unwrap_or(1))),
            EndpointStatus::Deploying => ("being deployed", Some(1)),
        };
        Err(ServiceError::EndpointCold {
            what,
            retry_after_s,
        })
    }

    /// Counts a request that reached this endpoint.
    pub fn observe(&self, which: &Endpoint, seen: &Observation) {
        self.count(which, |traffic| traffic.observe(seen));
    }

    /// Counts one judged answer, by a score from 0 to 1.
    pub fn judge(&self, which: &Endpoint, at: Timestamp, score: f64) {
        self.count(which, |traffic| traffic.judge(at, score));
    }

    fn count(&self, which: &Endpoint, add: impl FnOnce(&mut Traffic)) {
        let id = (which.org.clone(), which.name.clone());
        if let Some(held) = self.inner.lock().get_mut(&id).filter(|held| held.is(which)) {
            add(&mut held.traffic);
        }
    }

    /// Queues the hours of traffic that changed since the last call, before they change again or their endpoint is
    /// removed.
    pub fn queue_hours(&self) {
        let mut inner = self.inner.lock();
        let unsaved = inner.iter_mut().flat_map(|(id, held)| {
            let hours = held.traffic.take_unsaved().into_iter();
            hours.filter_map(|(at, hour)| {
                Mutation::put_or_remove(ENDPOINT_HOURS, hour_row(id, at), hour)
            })
        });
        self.keep.push(unsaved);
    }

    pub fn forget_all(&self) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        self.store.clear(ENDPOINTS)?;
        inner.clear();
        Ok(())
    }
}

// === impl Held ===

impl Held {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            traffic: Traffic::default(),
        }
    }

    fn is(&self, which: &Endpoint) -> bool {
        self.endpoint.uid == which.uid
    }
}

fn not_found() -> ServiceError {
    ServiceError::NotFound("no such endpoint".to_owned())
}

fn row(id: &Id) -> String {
    serde_json::json!([id.0, id.1]).to_string()
}

fn hour_row(id: &Id, hour: i64) -> String {
    serde_json::json!([id.0, id.1, hour]).to_string()
}

#[cfg(test)]
mod tests;
