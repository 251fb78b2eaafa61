//! Which model server replaces which model.
//!
//! Promise: a model is replaced once; a model without a server is the built-in one.

use crate::{
    clock::Clock,
    models::{Category, FRONTIER_PRICE, SPECIALIST_PROMPT_TOKENS_MAX, roster},
    money::Price,
    remote::{
        Remote,
        settings::{Checked, ModelServer, ModelServerError, Role},
    },
    spec,
};
use std::time::Duration;

/// Interface: a duplicate waits up to 9 minutes; the last path must have ended before.
const FRONTIER_DEADLINE: Duration = Duration::from_secs(240);
const OVERHEAD_DEADLINE: Duration = Duration::from_secs(60);
const TRANSCRIPTION_DEADLINE: Duration = Duration::from_secs(240);
const SPECIALIST_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Servers {
    specialists: Vec<Replacement<Category>>,
    frontiers: Vec<Replacement<&'static str>>,
    judge: Option<Remote>,
    reasoner: Option<Remote>,
    transcription: Option<Remote>,
}

#[derive(Debug)]
struct Replacement<K> {
    /// `None`: everything without a server of its own.
    key: Option<K>,
    remote: Remote,
    price: Option<Price>,
    prompt_tokens_max: u64,
}

/// The model that serves one place, and its price.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// `None` is the built-in one.
    pub remote: Option<&'a Remote>,
    pub price: Price,
    /// Above this number it is not tried. A frontier model is always tried.
    pub prompt_tokens_max: u64,
}

// === impl Servers ===

impl Servers {
    pub fn new(written: &[ModelServer], clock: &Clock) -> Result<Self, ModelServerError> {
        let mut servers = Self::default();
        let Some(first) = written.first() else {
            return Ok(servers);
        };
        let checked = written
            .iter()
            .map(|server| Ok((server, server.check()?)))
            .collect::<Result<Vec<_>, ModelServerError>>()?;
        let https = checked
            .iter()
            .any(|(_, checked)| checked.base_url.scheme() == "https");
        let client =
            Remote::client(https).map_err(|error| first.wrong("base_url", &error.to_string()))?;
        for (server, checked) in checked {
            let deadline = match server.role {
                Role::Specialist => checked
                    .category
                    .map_or(SPECIALIST_DEADLINE, roster::specialist_deadline),
                Role::Frontier => FRONTIER_DEADLINE,
                Role::Judge | Role::Reasoner => OVERHEAD_DEADLINE,
                Role::Transcription => TRANSCRIPTION_DEADLINE,
            };
            let remote = Remote::new(server, &checked, &client, deadline, clock)?;
            servers.place(server, checked, remote)?;
        }
        Ok(servers)
    }

    fn place(
        &mut self,
        server: &ModelServer,
        checked: Checked,
        remote: Remote,
    ) -> Result<(), ModelServerError> {
        let (price, prompt_tokens_max) = (
            checked.price,
            server
                .prompt_tokens_max
                .unwrap_or(spec::CONTEXT_WINDOW_TOKENS),
        );
        let taken = match server.role {
            Role::Specialist => take(
                &mut self.specialists,
                Replacement {
                    key: checked.category,
                    remote,
                    price,
                    prompt_tokens_max,
                },
            ),
            Role::Frontier => take(
                &mut self.frontiers,
                Replacement {
                    key: checked.id,
                    remote,
                    price,
                    prompt_tokens_max,
                },
            ),
            Role::Judge => self.judge.replace(remote).is_some(),
            Role::Reasoner => self.reasoner.replace(remote).is_some(),
            Role::Transcription => self.transcription.replace(remote).is_some(),
        };
        if taken {
            return Err(server.wrong("role", "another [[model]] takes this place already"));
        }
        Ok(())
    }

    pub fn specialist(&self, category: Category) -> Member<'_> {
        member(
            &self.specialists,
            category,
            roster::specialist_price(category),
        )
    }

    /// A frontier model by its id.
    pub fn frontier(&self, model: &roster::FrontierModel) -> Member<'_> {
        member(&self.frontiers, model.id, model.price)
    }

    /// The frontier model that `auto` escalates to.
    ///
    /// Assumed (auto-frontier): the first of the roster; the interface never shows which.
    pub fn auto_frontier(&self) -> Member<'_> {
        match roster::roster().first() {
            Some(model) => self.frontier(model),
            None => member::<&str>(&[], "", FRONTIER_PRICE),
        }
    }

    pub fn judge(&self) -> Option<&Remote> {
        self.judge.as_ref()
    }

    pub fn reasoner(&self) -> Option<&Remote> {
        self.reasoner.as_ref()
    }

    pub fn transcription(&self) -> Option<&Remote> {
        self.transcription.as_ref()
    }
}

/// Whether the place was taken before.
fn take<K: PartialEq>(places: &mut Vec<Replacement<K>>, new: Replacement<K>) -> bool {
    let taken = places.iter().any(|place| place.key == new.key);
    places.push(new);
    taken
}

/// The server of exactly this place, else the one for all others, else the built-in model.
fn member<K: PartialEq>(places: &[Replacement<K>], key: K, built_in: Price) -> Member<'_> {
    let exact = places.iter().find(|place| place.key.as_ref() == Some(&key));
    let place = exact.or_else(|| places.iter().find(|place| place.key.is_none()));
    Member {
        remote: place.map(|place| &place.remote),
        price: place.and_then(|place| place.price).unwrap_or(built_in),
        prompt_tokens_max: place.map_or(SPECIALIST_PROMPT_TOKENS_MAX, |place| {
            place.prompt_tokens_max
        }),
    }
}
