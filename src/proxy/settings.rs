//! What a reload replaces, made from one configuration. A request reads it once and keeps it to its end.

use std::sync::Arc;

use super::hops::Hops;
use super::key_record::KeyRecord;
use super::upstream::connections::Connections;
use super::upstream::peers::Peers;
use crate::clock::SharedClock;
use crate::config::{ApiKey, Config};
use crate::ledger::Ledger;
use crate::ledger::kept_key::Organization;
use crate::ledger::marks::SessionHasher;
use crate::protocol::names::ServiceNames;
use crate::protocol::routes::RouteTable;

/// One configuration, ready for requests.
pub struct Settings {
    pub config: Arc<Config>,
    pub names: ServiceNames,
    pub table: RouteTable,
    pub key: ApiKey,
    /// What answers to this key showed of it.
    pub key_record: Arc<KeyRecord>,
    /// The organization that pays with the key, in the ledger's words ([`Self::paid_in`]); a call of bursar's own has none.
    pub organization: Organization,
    /// Of the same ledger.
    pub sessions: SessionHasher,
    pub peers: Peers,
    pub connections: Arc<Connections>,
    /// The same for the whole life of the process.
    pub hops: Hops,
}

// === impl Settings ===

impl Settings {
    pub fn new(
        config: Arc<Config>,
        clock: &SharedClock,
        connections: Arc<Connections>,
        hops: Hops,
    ) -> Self {
        Self {
            names: config.names.clone(),
            table: match config.models.translate {
                true => RouteTable::new(&config.upstream.extra_routes),
                false => RouteTable::untranslated(&config.upstream.extra_routes),
            },
            key: config.upstream.api_key.clone(),
            key_record: Arc::new(KeyRecord::new(Arc::clone(clock))),
            organization: Organization::default(),
            sessions: SessionHasher::default(),
            peers: Peers::new(&config.upstream, Arc::clone(clock), connections.pooled()),
            connections,
            hops,
            config,
        }
    }

    /// For requests that have entries in this ledger.
    pub fn paid_in(mut self, ledger: &Ledger) -> Self {
        let upstream = &self.config.upstream;
        let (address, key) = (upstream.base_url.to_string(), self.key.header_value());
        self.organization = ledger.organization(&address, key.as_bytes());
        self.sessions = ledger.session_hasher();
        self
    }

    /// In place of these. Where key and service are the same, what is known of the key stays.
    pub fn after(self, before: &Self) -> Self {
        let (new, old) = (&self.config.upstream, &before.config.upstream);
        let is_same = self.key == before.key && new.base_url == old.base_url;
        let key_record = match is_same {
            true => Arc::clone(&before.key_record),
            false => Arc::clone(&self.key_record),
        };
        Self { key_record, ..self }
    }
}
