//! Which calls of the assistant's last turn have their results.
//!
//! Why: a model that is shown a call without its result, or a result of nothing, guesses what happened; services refuse
//! such a conversation in words of their own, after it was sent.
//!
//! Promise: as Anthropic has it, each call has one result, in the user's next turn, and each result has its call.
//! Assumed: messages of one role that follow each other are one turn, and a system message may stand between a call and
//! its result.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::super::json;
use super::super::members::Place;
use crate::protocol::translate::Untranslatable;

/// The calls of one turn.
#[derive(Debug, Default)]
pub struct Calls {
    /// In their order.
    calls: Vec<Call>,
    /// Where in the list the call of an id stands.
    by_id: HashMap<String, usize>,
    without_result: usize,
}

#[derive(Debug)]
struct Call {
    /// For a refusal.
    place: String,
    has_result: bool,
}

// === impl Calls ===

impl Calls {
    /// Adds a call that stands at `place`. Two of one id could not be told apart.
    pub fn add(&mut self, id: &RawValue, place: &Place<'_>) -> Result<(), Untranslatable> {
        if self.by_id.insert(text(id), self.calls.len()).is_some() {
            let message = "Another call of this turn has the same id.";
            return Err(place.member("id").refuse(message));
        }
        self.calls.push(Call {
            place: place.to_string(),
            has_result: false,
        });
        self.without_result += 1;
        Ok(())
    }

    /// Takes a result that stands at `place`.
    pub fn answer(&mut self, id: &RawValue, place: &Place<'_>) -> Result<(), Untranslatable> {
        let call = self.by_id.get(&text(id)).copied();
        let call = call.and_then(|call| self.calls.get_mut(call));
        let refused = |message| Err(place.member("tool_use_id").refuse(message));
        match call {
            None => refused("The assistant's turn before this one has no call of this id."),
            Some(call) if call.has_result => refused("The call of this id has its result."),
            Some(call) => {
                call.has_result = true;
                self.without_result -= 1;
                Ok(())
            }
        }
    }

    /// Every call has its result.
    pub fn are_answered(&self) -> bool {
        self.without_result == 0
    }

    /// The user's turn behind them is over.
    pub fn end(&mut self) -> Result<(), Untranslatable> {
        let ended = std::mem::take(self);
        let missing = ended.calls.into_iter().find(|call| !call.has_result);
        missing.map_or(Ok(()), |call| {
            let message =
                "This call has no result; the user's next message has to have one for each call.";
            Err(Untranslatable::new(call.place, message))
        })
    }
}

/// What an id says, however it is spelled; one with half a surrogate pair says its spelling.
fn text(id: &RawValue) -> String {
    json::text(id).unwrap_or_else(|| id.get().to_owned())
}
