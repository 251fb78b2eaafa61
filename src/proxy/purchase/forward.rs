//! Where the pieces of one answer go: to the app, or into the replay buffer for a follower.
//!
//! | had by the app | an equal request follows by the next piece | a piece went out | the write failed | the whole went out |
//! |---|---|---|---|---|
//! | nothing | replay | part | replay | delivered |
//! | part | part | part | part | delivered |
//!
//! A *part* is what counts for the kind of answer: the first byte of a stream, which delivers it, or of a
//! document, which can be joined no more and is delivered when whole. A whole answer that is written at once
//! has no part, and an error is never delivered.
//!
//! Promise: pure. An app is not given the answer beside a follower, and what it holds back for its successor
//! counts as nothing.

use std::sync::Arc;

use pingora::http::ResponseHeader;

use super::event::AnswerForm;
use super::shared::Purchase;

/// The way of one answer.
#[derive(Clone, Copy, Debug)]
pub struct Forward {
    form: AnswerForm,
    to: To,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    App(Had),
    Replay,
}

/// What the app had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Had {
    Nothing,
    Part,
}

// === impl Forward ===

impl Forward {
    pub fn new(form: AnswerForm) -> Self {
        Self {
            form,
            to: To::App(Had::Nothing),
        }
    }

    pub fn is_to_app(&self) -> bool {
        matches!(self.to, To::App(_))
    }

    /// Whether it matters just now if the app has hung up: then its repeat may come, and take over. An app
    /// that has all pieces may leave; `gives_more`: another is to come.
    pub fn asks_for_app(&self, gives_more: bool) -> bool {
        match self.to {
            To::App(Had::Nothing) => true,
            To::App(Had::Part) => gives_more && !self.form.is_stream(),
            To::Replay => false,
        }
    }

    /// Before the next piece. `true`: an equal request follows by now, and it goes into the replay buffer from here
    /// on, with what was held back for the app.
    pub fn gives_way(&mut self, purchase: Option<&Purchase>, head: &Arc<ResponseHeader>) -> bool {
        let gives_way =
            self.to == To::App(Had::Nothing) && purchase.is_some_and(|purchase| !purchase.take());
        if gives_way {
            self.turn(purchase, head);
        } else if self.form == AnswerForm::Error
            && self.is_to_app()
            && let Some(purchase) = purchase
        {
            purchase.fails();
        }
        gives_way
    }

    /// A piece was written to the app. `is_out`: it was not held back for its successor.
    pub fn wrote(&mut self, purchase: Option<&Purchase>, is_out: bool) {
        if self.to != To::App(Had::Nothing) {
            return;
        }
        match (self.form, purchase) {
            (_, Some(purchase)) if !is_out => purchase.write_failed(),
            (AnswerForm::Document, Some(purchase)) => purchase.begins(),
            (form, Some(purchase)) if form.is_stream() => purchase.delivered(),
            (_, _) => {}
        }
        if is_out && self.form.flows() {
            self.to = To::App(Had::Part);
        }
    }

    /// A write to the app failed. `true`: it had nothing, and the answer goes into the replay buffer, with
    /// what was held back for it.
    pub fn failed(&mut self, purchase: Option<&Purchase>, head: &Arc<ResponseHeader>) -> bool {
        if self.to == To::App(Had::Part) {
            return false;
        }
        if self.is_to_app() {
            if let Some(purchase) = purchase {
                purchase.write_failed();
            }
            self.turn(purchase, head);
        }
        true
    }

    /// The app has the whole of it.
    pub fn finished(&mut self, purchase: Option<&Purchase>) {
        if self.form != AnswerForm::Error
            && let Some(purchase) = purchase
        {
            purchase.delivered();
        }
    }

    fn turn(&mut self, purchase: Option<&Purchase>, head: &Arc<ResponseHeader>) {
        self.to = To::Replay;
        if let Some(purchase) = purchase {
            purchase.record_head(Arc::clone(head), self.form.flows());
        }
    }
}
