//! A logical request that is running, seen from both sides: the connection that leads it, and at
//! most one follower that takes its answer over when the first app connection has left.
//!
//! Promise: nothing is recorded while the leading app is there, and for no app at most 1 MiB; with a follower
//! the leader waits instead of piling up. A follower that hung up before it was given anything has its place
//! taken by the next. The ledger is sent only what it does not take for granted: a clean request costs no line.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pingora::http::ResponseHeader;
use tokio::sync::watch;

use super::age;
use super::claimant::{Claimant, RequestKey, is_apps_own};
use super::client::{AppProbe, Presence};
use super::delivery::{Cursor, DeliveryState};
pub use super::delivery::{Received, ReplayEnd, ReplayItem};
use super::repeats::AvoidedRepeats;
use crate::clock::{Clock, SharedClock};
use crate::ledger::entry::{EntryId, EntryKey, InDoubt, KeyOrigin, State};
use crate::ledger::undelivered::{Delivery, FirstSent, KeyUse, Undelivered};
use crate::proxy::refuse::Code;

/// One running request.
#[derive(Debug)]
pub struct Purchase {
    pub request_key: RequestKey,
    pub entry: EntryId,
    pub key: Option<EntryKey>,
    /// When the key was first used.
    pub first: FirstSent,
    /// How often the key was taken over.
    pub adoptions: u32,
    /// Its app said that it is a retry.
    pub(super) marked_retry: bool,
    /// See [`Claimant::keeps_answer`].
    may_be_kept: bool,
    ledger_view: Mutex<LedgerView>,
    pub repeats: AvoidedRepeats,
    /// The connection of the leading app.
    app: OnceLock<Box<dyn AppProbe>>,
    clock: SharedClock,
    shared: Mutex<Shared>,
    /// Ticks whenever the delivery changes.
    changed: watch::Sender<()>,
    /// The table's: ticks when an app leaves.
    left: watch::Sender<()>,
}

/// The answer, and the connection that follows it.
#[derive(Debug, Default)]
struct Shared {
    progress: SendState,
    delivery: DeliveryState,
    follower_app: Option<Box<dyn AppProbe>>,
}

/// How far the request is on its way to the service and back. Times are monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SendState {
    /// Its app may still give it up.
    #[default]
    Waits,
    /// Nothing but its connection's reset keeps it from the service.
    Goes,
    /// An app began to be given the answer; the last one counts.
    Answered { since: Duration },
}

/// What the ledger takes the request for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LedgerView {
    /// It has no outcome yet.
    Open,
    Undelivered,
    Delivered,
}

/// What became of an answer, as the table of undelivered requests has to remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The app has it, or nothing ran: nothing to remember.
    Closed,
    /// The app never received it, and the service may have run it.
    Undelivered,
    /// Nothing was sent under a key that was adopted: the request before it is undelivered as it was.
    /// `in_ledger`: this one's intent is in the ledger, and stands for both there.
    Unsent { in_ledger: bool },
}

/// A connection that takes the answer over. Dropping it lets another one follow, as long as
/// nothing was handed out.
#[derive(Debug)]
pub struct Follower {
    purchase: Arc<Purchase>,
    cursor: Cursor,
    changed: watch::Receiver<()>,
}

// === impl Purchase ===

impl Purchase {
    pub(super) fn new(
        claimant: &Claimant,
        key: Option<EntryKey>,
        first: FirstSent,
        adoptions: u32,
        clock: SharedClock,
        left: watch::Sender<()>,
    ) -> Arc<Self> {
        Arc::new(Self {
            request_key: claimant.request_key.clone(),
            entry: claimant.entry,
            key,
            first,
            adoptions,
            marked_retry: claimant.marked_retry,
            may_be_kept: claimant.keeps_answer,
            ledger_view: Mutex::new(LedgerView::Open),
            repeats: AvoidedRepeats::new(adoptions.min(1)),
            app: OnceLock::new(),
            clock,
            shared: Mutex::default(),
            changed: watch::Sender::new(()),
            left,
        })
    }

    /// The connection that leads. Once: a second one would be another request's.
    pub fn led_by(&self, app: impl AppProbe + 'static) {
        let _ = self.app.set(Box::new(app));
    }

    /// An equal request has come. When the leading app hung up before it, and its task has not noticed yet,
    /// this is its retry: the kernel knows the order.
    pub(super) fn look_at_app(&self) {
        if !self.has_app_left() && self.app.get().is_some_and(|app| app.has_hung_up()) {
            self.app_left();
        }
    }

    /// The leading app has left, or is suspected to: from now on a follower may take over.
    pub fn app_left(&self) {
        self.shared.lock().delivery.app_leaves();
        self.changed.send_replace(());
        self.left.send_replace(());
    }

    /// The leader is about to write to its own app. `false`: an equal request follows, record it.
    /// After `true` none can follow, until the write has failed.
    pub fn take(&self) -> bool {
        let mut shared = self.shared.lock();
        let takes = shared.delivery.take();
        if takes {
            shared.progress = self.answered_now();
        }
        takes
    }

    /// Before a byte of it goes out: an app that has read it cannot have asked again before this.
    fn answered_now(&self) -> SendState {
        let since = self.clock.monotonic();
        SendState::Answered { since }
    }

    pub(super) fn given_at(&self) -> Option<Duration> {
        match self.shared.lock().progress {
            SendState::Waits | SendState::Goes => None,
            SendState::Answered { since } => Some(since),
        }
    }

    /// A request of which nothing was sent is to end, for whatever reason. `false`: an equal request follows,
    /// and is given the reason. After `true` none can follow, and an equal request that comes looks
    /// again when this one's end is in the table.
    pub fn gives_up(&self) -> bool {
        self.shared.lock().delivery.ends_unsent()
    }

    /// Its intent is written. `true`: its app's connection is broken, and no other request waits for the answer:
    /// nothing is sent. An end of input is no reason any more.
    pub fn is_abandoned(&self, presence: Presence) -> bool {
        presence == Presence::Gone && self.gives_up()
    }

    /// It goes to the service: an equal request whose app has left gives way to it.
    pub fn goes(&self) {
        let progress = &mut self.shared.lock().progress;
        if *progress == SendState::Waits {
            *progress = SendState::Goes;
        }
    }

    pub(super) fn is_going(&self) -> bool {
        self.shared.lock().progress != SendState::Waits
    }

    /// bursar's stop ends the answer, or the giving of one of which something was given. Before its end is
    /// known: a first byte counts as delivered only as long as bursar lives.
    pub fn cuts_short(&self) {
        self.shared.lock().delivery.cut_short();
    }

    /// After [`Self::take`]: what is written is an error. Its app may ask again before the table
    /// has heard of the end.
    pub fn fails(&self) {
        self.shared.lock().delivery.fails();
    }

    /// The leader's own app did not take what was written.
    pub fn write_failed(&self) {
        self.shared.lock().delivery.write_failed();
        self.left.send_replace(());
    }

    /// The app was given what counts as delivered: no request may join any more.
    pub fn delivered(&self) {
        self.shared.lock().delivery.is_delivered_to_app();
        // An equal request may have waited to hear of it.
        self.left.send_replace(());
    }

    /// The leading app has the beginning of a document, which counts as delivered when whole: no request
    /// may join any more, and what was not given to its end can be adopted.
    pub fn begins(&self) {
        self.shared.lock().delivery.begins();
        // A claim that waited to see whether it is read waits for its end now.
        self.left.send_replace(());
    }

    /// When it ends its key can be adopted, and it can be joined no more.
    pub(super) fn is_to_be_adopted(&self) -> bool {
        let is_minted = self.key.as_ref().is_some_and(|key| !is_apps_own(key));
        is_minted && self.shared.lock().delivery.is_only_adoptable()
    }

    pub(super) fn is_given_in_doubt(&self) -> bool {
        self.shared.lock().delivery.is_given_in_doubt()
    }

    pub(super) fn is_failing(&self) -> bool {
        self.shared.lock().delivery.is_failing()
    }

    /// The app, or a follower, has what counts as the answer.
    pub fn is_delivered(&self) -> bool {
        self.shared.lock().delivery.is_delivered()
    }

    pub fn is_followed(&self) -> bool {
        self.shared.lock().delivery.is_followed()
    }

    /// An app takes the answer just now, or has it: its key goes on only if that fails, or if all there
    /// is to take is an error.
    pub(super) fn is_being_taken(&self) -> bool {
        let delivery = &self.shared.lock().delivery;
        delivery.is_delivered() || (delivery.is_followed() && !delivery.is_error())
    }

    /// The leading app has left, noticed or suspected.
    pub(super) fn has_app_left(&self) -> bool {
        self.shared.lock().delivery.has_app_left()
    }

    pub fn record_head(&self, head: Arc<ResponseHeader>, flowing: bool) {
        self.shared.lock().delivery.record_head(head, flowing);
        self.changed.send_replace(());
    }

    /// Records a chunk. With a follower that is slow this waits for it; without one, what would grow
    /// beyond its bound is given up (the key can still be adopted).
    pub async fn record_chunk(&self, mut chunk: Bytes) {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let mut shared = self.shared.lock();
                match shared.delivery.record_chunk(chunk) {
                    Ok(()) => break,
                    Err(waits) => chunk = waits,
                }
                changed.mark_unchanged();
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
        self.changed.send_replace(());
    }

    pub fn record_end(&self, end: ReplayEnd) {
        self.shared.lock().delivery.record_end(end);
        self.changed.send_replace(());
    }

    /// The leader is done.
    pub(super) fn finish(&self) {
        self.shared.lock().delivery.close();
        self.changed.send_replace(());
    }

    /// Attaches a follower, if the leading app has left, no app has any of the answer, and no other
    /// follows. One that has hung up, noticed or not, gives way unless it has begun to read.
    pub(super) fn follow(self: &Arc<Self>) -> Option<Follower> {
        let mut shared = self.shared.lock();
        let Shared {
            delivery,
            follower_app,
            progress: _,
        } = &mut *shared;
        let cursor =
            delivery.follow(|| follower_app.as_ref().is_some_and(|app| app.has_hung_up()))?;
        *follower_app = None;
        drop(shared);
        // The leader may be waiting to learn whether its attempts still have a reader.
        self.changed.send_replace(());
        Some(Follower {
            purchase: Arc::clone(self),
            cursor,
            changed: self.changed.subscribe(),
        })
    }

    /// Resolves when no request follows any more. For a leader that reads on for its follower.
    pub async fn unfollowed(&self) {
        self.until_followed(false).await;
    }

    /// Resolves when an equal request follows.
    pub async fn followed(&self) {
        self.until_followed(true).await;
    }

    async fn until_followed(&self, is_wanted: bool) {
        let mut changed = self.changed.subscribe();
        while self.is_followed() != is_wanted {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Bytes that the follower's socket has taken: a number that stands still while it takes nothing.
    pub fn follower_went(&self) -> u64 {
        let shared = self.shared.lock();
        shared
            .follower_app
            .as_ref()
            .map_or(0, |app| app.taken_bytes())
    }

    /// The follower takes nothing, and is in the way of others: it is shown a break, and no request may
    /// join any more.
    pub fn gives_up_follower(&self) {
        self.shared.lock().delivery.give_up_follower();
        self.changed.send_replace(());
        self.left.send_replace(());
    }

    /// Bytes that are kept now.
    pub(super) fn kept_bytes(&self) -> usize {
        self.shared.lock().delivery.kept_bytes()
    }

    /// A complete answer that no app took lies here.
    pub(super) fn keeps_answer(&self) -> bool {
        self.may_be_kept && self.shared.lock().delivery.holds_answer()
    }

    /// For the intent: `None` where there is no key to pass on.
    pub fn key_use(&self) -> Option<KeyUse> {
        self.key.as_ref().filter(|key| !is_apps_own(key))?;
        Some(KeyUse {
            first_sent: self.first,
            adoptions: self.adoptions,
        })
    }

    /// Rule I6: a key is not sent again once its age is in doubt.
    pub fn may_repeat(&self, clock: &dyn Clock) -> bool {
        self.key.is_none() || age::may_repeat(&self.first, clock)
    }

    /// Rule I6, before the first attempt: the machine may have slept since an old key was taken over.
    pub fn may_begin(&self, clock: &dyn Clock) -> bool {
        self.adoptions == 0 || age::may_repeat(&self.first, clock)
    }

    /// For an outcome behind which the app gets nothing more.
    pub fn delivery_if_missed(&self) -> Delivery {
        let delivery = &self.shared.lock().delivery;
        if delivery.is_delivered() && !delivery.is_cut_short() {
            Delivery::Given
        } else {
            Delivery::Missed
        }
    }

    /// `state`: what the outcome became, or `None` when it could not be written: then its entry is undelivered
    /// unless the app has it.
    pub fn settled_as(&self, delivery: Delivery, state: Option<State>) {
        let undelivered = match state {
            Some(state) => delivery.leaves_undelivered(state, self.adoptions),
            None => self.delivery_if_missed() != Delivery::Given,
        };
        *self.ledger_view.lock() = LedgerView::of(undelivered);
    }

    /// How the answer stands with the app before its outcome is written, for the case that bursar
    /// dies before it is given to its end. A stream that has begun is delivered as long as bursar lives; if
    /// it dies now, or its stop cuts the answer, the app has no end of it.
    pub fn delivery(
        &self,
        is_answered: bool,
        cut_by: Option<InDoubt>,
        presence: Presence,
    ) -> Delivery {
        if cut_by == Some(InDoubt::Shutdown) {
            self.cuts_short();
        }
        let has_reader = presence != Presence::Gone || self.is_followed();
        if is_answered && cut_by.is_none() && has_reader {
            Delivery::Pending
        } else {
            self.delivery_if_missed()
        }
    }

    /// Nothing was billed for this purchase, by this request or by those whose key it adopted.
    pub fn is_known_zero(&self, state: Option<State>) -> bool {
        state == Some(State::Failed) && self.adoptions == 0
    }

    /// A request that cost nothing, or whose answer the app has, is closed. Anything else may have
    /// run and was not received: the app's next equal request belongs to it. Where an adopted key
    /// failed, the request that it was adopted from may still have run.
    pub fn fate(&self, state: Option<State>) -> Fate {
        if self.is_known_zero(state) || self.is_delivered() {
            Fate::Closed
        } else {
            Fate::Undelivered
        }
    }

    /// Of a request that was not sent. An adopted key stands for one that may have run: it is passed
    /// on. `in_ledger`: its intent was written.
    pub fn fate_unsent(&self, in_ledger: bool) -> Fate {
        if self.adoptions > 0 {
            Fate::Unsent { in_ledger }
        } else {
            Fate::Closed
        }
    }

    /// The entry that the next request takes the key over from, and how often the key was taken over
    /// and sent. What was not sent is no adoption, and without an intent no entry of the ledger.
    pub(super) fn stands_as(&self, fate: Fate) -> (EntryId, u32) {
        let Fate::Unsent { in_ledger } = fate else {
            return (self.entry, self.adoptions);
        };
        let before = self.key.as_ref().and_then(|key| match key.origin {
            KeyOrigin::Adopted { from } => Some(from),
            KeyOrigin::Minted | KeyOrigin::App => None,
        });
        let entry = before.filter(|_| !in_ledger).unwrap_or(self.entry);
        (entry, self.adoptions.saturating_sub(1))
    }

    /// What the ledger has to note of an answer whose outcome is written, if it takes it otherwise: the row,
    /// and whether the app has the answer. `Given` is not the last word as long as an equal request follows,
    /// and where bursar's stop cut the giving. If bursar dies while it is pending, the app has no end of it.
    /// Noted one after the other, so that the last word is the right one.
    pub fn note_delivery(
        &self,
        delivery: Delivery,
        at_ms: u64,
        note: impl FnOnce(Undelivered, bool),
    ) {
        let mut view = self.ledger_view.lock();
        let (is_delivered, lacks_end) = {
            let delivery = &self.shared.lock().delivery;
            (delivery.is_delivered(), delivery.lacks_end())
        };
        let undelivered = match delivery {
            Delivery::Given => lacks_end,
            Delivery::Missed => lacks_end || !is_delivered,
            Delivery::Pending => true,
        };
        let now = LedgerView::of(undelivered);
        if matches!(*view, LedgerView::Open) || *view == now {
            return;
        }
        *view = now;
        if let Some(row) = self.row(at_ms) {
            note(row, !undelivered);
        }
    }

    fn row(&self, at_ms: u64) -> Option<Undelivered> {
        Some(Undelivered {
            id: self.entry,
            at_ms,
            app: self.request_key.app.clone(),
            fingerprint: self.request_key.fingerprint,
            key: self.key.clone()?,
            key_use: self.key_use()?,
        })
    }
}

// === impl Fate ===

impl From<Fate> for Delivery {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Closed => Self::Given,
            Fate::Undelivered | Fate::Unsent { .. } => Self::Missed,
        }
    }
}

// === impl LedgerView ===

impl LedgerView {
    fn of(undelivered: bool) -> Self {
        if undelivered {
            Self::Undelivered
        } else {
            Self::Delivered
        }
    }
}

// === impl Follower ===

impl Follower {
    pub fn purchase(&self) -> &Arc<Purchase> {
        &self.purchase
    }

    /// The connection that follows: an equal request that comes asks the kernel whether it is there.
    pub fn reads_on(&self, app: impl AppProbe + 'static) {
        let mut shared = self.purchase.shared.lock();
        if shared.delivery.is_last(&self.cursor) {
            shared.follower_app = Some(Box::new(app));
        }
    }

    /// The next piece of the answer. Pends for ever when another has taken its place, which comes of
    /// its app's having hung up.
    pub async fn next(&mut self) -> ReplayItem {
        loop {
            self.changed.mark_unchanged();
            if let Some(item) = self.take() {
                return item;
            }
            if self.changed.changed().await.is_err() {
                return ReplayItem::End(ReplayEnd::Broken(Code::Internal.into()));
            }
        }
    }

    fn take(&mut self) -> Option<ReplayItem> {
        let item = {
            let mut shared = self.purchase.shared.lock();
            let item = shared.delivery.read(&mut self.cursor);
            if let Some(ReplayItem::Head { .. }) = &item {
                shared.progress = self.purchase.answered_now();
            }
            item
        };
        if let Some(ReplayItem::Chunk(_)) = &item {
            // A leader may wait for the room.
            self.purchase.changed.send_replace(());
        }
        item
    }

    /// What this connection has taken by now.
    pub fn received(&mut self, received: Received) {
        let mut shared = self.purchase.shared.lock();
        shared
            .delivery
            .follower_received(&mut self.cursor, received);
        drop(shared);
        self.purchase.changed.send_replace(());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.purchase.shared.lock().delivery.unfollow(&self.cursor);
        self.purchase.changed.send_replace(());
        // An equal request may wait for what becomes of this one.
        self.purchase.left.send_replace(());
    }
}
