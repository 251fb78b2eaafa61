//! One request, from its head to its last byte: the steps of the proxy in their order.
//!
//! Promise: a metered request leaves only after its intent is durable (rule I1); a request that ends
//! before it was sent costs nothing and says so.

mod arrive;
mod predecessor;
mod prepare;
mod spend;
mod turn;
mod unsent;

use std::sync::Arc;
use std::time::Duration;

use pingora::protocols::http::ReusableHttpStream;

use self::predecessor::Unclaimed;
use self::prepare::Prepared;
use self::spend::NoPermit;
pub(super) use self::spend::refusal;
use self::turn::{Going, patience};
use self::unsent::Entered;
use super::admit::{Admission, Admitted, LocalAnswer};
use super::attend::Attendance;
use super::breaker::Asks;
use super::buffer::{self, RequestBody};
use super::claim::live::{Follower, Live};
use super::claim::{Claim, Claimant, Mark};
use super::dispatch::Dispatch;
use super::dispatch::backoff::Backoff;
use super::dispatch::decision::Bounds;
use super::downstream::{Downstream, Presence};
use super::exchange::{Outgoing, heads};
use super::refuse::{Code, Refusal};
use super::relay::{self, Relay};
use super::report::{Report, report};
use super::settle::{Measured, OpenEntry};
use super::{Gateway, InFlight, Settings};
use crate::config::App;
use crate::ledger::FingerprintParts;
use crate::ledger::entry::{EntryId, EntryKey, Intent, KeyOrigin};
use crate::ledger::kept_key::KeptKey;
use crate::places::{Place, Rest};
use crate::protocol::routes::{AnswerKind, Costs};

/// One request, from its head to its last byte. Returns the connection when it can be kept.
pub(super) async fn serve_request(
    gateway: &Arc<Gateway>,
    mut downstream: Downstream,
    place: &Place,
) -> Option<ReusableHttpStream> {
    let _in_flight = InFlight::enter(gateway);
    let arrived = gateway.clock.monotonic();
    let entry_id = gateway.ledger.new_entry_id();
    let settings = gateway.settings.load_full();
    let admission = arrive::admit(gateway, &settings, &downstream).await;
    let admitted = match admission {
        Ok(Admission::Relay(admitted)) => admitted,
        Ok(Admission::Local(answer)) => {
            return serve_local(gateway, downstream, place, &answer, entry_id, arrived).await;
        }
        Err(refusal) => {
            return turn_down(gateway, downstream, place, refusal, None, entry_id, arrived).await;
        }
    };
    let body = match buffer::read_body(gateway, &mut downstream, &admitted, place).await {
        Ok(body) => body,
        Err(refusal) => {
            let admitted = Some(&*admitted);
            return turn_down(
                gateway, downstream, place, refusal, admitted, entry_id, arrived,
            )
            .await;
        }
    };
    // Until here nothing was done, and the connection may have given way.
    if !place.serves() {
        return None;
    }
    let request = Request {
        gateway,
        settings,
        app: Arc::clone(&admitted.caller.app),
        admitted: &admitted,
        arrived,
        body_took: body.app_took(),
        entry_id,
        key: None,
    };
    let keep = if admitted.route.is_metered() {
        request.serve_metered(&mut downstream, body).await
    } else {
        request.serve_free(&mut downstream, body).await
    };
    if keep {
        place.rests(Rest::Leaving, Duration::ZERO);
        downstream.into_reusable().await
    } else {
        // Whatever was given was not given to its end.
        downstream.mark_broken();
        None
    }
}

/// A request that came in, on its way to the service.
struct Request<'a> {
    gateway: &'a Arc<Gateway>,
    settings: Arc<Settings>,
    /// Who spends.
    app: Arc<App>,
    admitted: &'a Admitted,
    arrived: Duration,
    /// How long its app took to send its body.
    body_took: Duration,
    entry_id: EntryId,
    /// Under which it goes, as the ledger keeps it; from the claim on.
    key: Option<KeptKey>,
}

// === impl Request ===

impl Request<'_> {
    /// A request that makes no entry.
    async fn serve_free(self, downstream: &mut Downstream, mut body: RequestBody) -> bool {
        if self.admitted.route.costs == Costs::FromThenOn
            && let Some(refusal) = self.spender().holds()
        {
            return self.refuse(downstream, &refusal).await;
        }
        let prepared = self.prepare(&mut body);
        let going = match self.gateway.breaker.pass(Asks::Free) {
            Ok(pass) => Going::free(pass),
            Err(refusal) => return self.refuse(downstream, &refusal).await,
        };
        self.exchange(downstream, prepared, going, None, None).await
    }

    async fn serve_metered(mut self, downstream: &mut Downstream, mut body: RequestBody) -> bool {
        let admitted = self.admitted;
        // As the app sent it.
        let request_bytes = u64::try_from(body.bytes().len()).unwrap_or(u64::MAX);
        let prepared = self.prepare(&mut body);
        let parts = FingerprintParts {
            method: admitted.method.as_str(),
            path_and_query: &admitted.target,
            // As it is sent: a key goes with the same bytes, also when an alias was changed.
            body: &prepared.body,
            session: admitted.session.as_ref().map(http::HeaderValue::as_bytes),
            rte_query: admitted.rte_query.as_ref().map(http::HeaderValue::as_bytes),
            made_stream: prepared.made_stream,
        };
        let fingerprint = self.gateway.ledger.fingerprint(&parts);
        let claimant = Claimant {
            mark: Mark {
                app: Arc::clone(&self.app.name),
                fingerprint,
            },
            entry: self.entry_id,
            own_key: admitted.own_key.clone().filter(|_| admitted.route.keyed),
            keyed: admitted.route.keyed,
            marked_retry: admitted.marked_retry,
            keeps_answer: admitted.route.answer != AnswerKind::NamedEvents,
        };
        let live = match self.claim(downstream, &claimant).await {
            Ok(Claim::Lead(live)) => live,
            Ok(Claim::Follow(follower)) => return self.follow(downstream, follower).await,
            // A second look always decides.
            Ok(Claim::LookAgain { .. } | Claim::ReadOn(_)) => {
                let refusal = Refusal::new(Code::Internal);
                return self.refuse(downstream, &refusal).await;
            }
            Err(Unclaimed::Left) => {
                self.gateway.metrics.disconnect("waiting");
                return false;
            }
            Err(Unclaimed::Refused(refusal)) => return self.refuse(downstream, &refusal).await,
        };
        // From here on, whatever ends the request tells a follower how.
        live.led_by(downstream.sight());
        let kept = |key| {
            let organization = self.settings.organization;
            self.gateway.ledger.kept_key(key, organization, &parts)
        };
        self.key = live.key.as_ref().map(kept);
        let mut entry = OpenEntry::new(self.gateway, Arc::clone(&live), &admitted.route);
        let waiting = match self.may_wait(downstream, &mut entry).await {
            Ok(waiting) => waiting,
            Err(keep) => return keep,
        };
        let asked = self.gateway.clock.monotonic();
        let reserved = match self.permit(downstream, &mut entry, request_bytes).await {
            Ok(reserved) => Some(reserved),
            Err(NoPermit { keep }) => return keep,
        };
        let for_room = self.gateway.clock.monotonic().saturating_sub(asked);
        let mut going = match self.turn(downstream, &mut entry).await {
            Ok(going) => going,
            Err(keep) => return keep,
        };
        going.waited_before(for_room);
        drop(waiting);
        if self.is_given_up(downstream, &live).await {
            drop(going);
            let ended = self.end_unsent(downstream, &mut entry, Entered::No, None);
            return ended.await;
        }
        let intent = Intent {
            id: self.entry_id,
            at_ms: self.gateway.clock.wall_ms(),
            app: Arc::clone(&claimant.mark.app),
            lane: admitted.route.lane,
            operation: admitted.route.operation,
            model: prepared.peek.model.clone(),
            stream: prepared.peek.stream,
            key: self.key.clone(),
            fingerprint,
            key_use: live.key_use(),
            request_bytes,
            reserved,
            run: admitted.caller.run.as_ref().map(|run| run.id.to_string()),
        };
        // Rule I1: nothing leaves before its intent is durable.
        if let Err(error) = self.gateway.ledger.intend(intent).await {
            tracing::error!(%error, "an intent could not be written; the request was not sent");
            drop(going);
            let refusal = Refusal::new(Code::LedgerUnavailable);
            let ended = self.end_unsent(downstream, &mut entry, Entered::No, Some(&refusal));
            return ended.await;
        }
        // Nobody waits for the answer.
        if downstream.look() == Presence::Gone && live.gives_up() {
            drop(going);
            let ended = self.end_unsent(downstream, &mut entry, Entered::Intent, None);
            return ended.await;
        }
        // Meanwhile an operator may have frozen the app, or its run has ended.
        if let Some(halt) = self.spender().halts() {
            drop(going);
            let ended = self.end_unsent(downstream, &mut entry, Entered::Intent, Some(&halt));
            return ended.await;
        }
        let adopted = adopted_from(live.key.as_ref());
        if adopted.is_some() {
            self.gateway.metrics.adopted();
        }
        self.exchange(downstream, prepared, going, Some(entry), adopted)
            .await
    }

    /// Attempts and answer.
    async fn exchange(
        self,
        downstream: &mut Downstream,
        prepared: Prepared,
        going: Going,
        entry: Option<OpenEntry>,
        adopted: Option<EntryId>,
    ) -> bool {
        let route = &self.admitted.route;
        let key = entry
            .as_ref()
            .and_then(|entry| entry.live.key.as_ref())
            .map(|key| Arc::clone(&key.value));
        let header = heads::request_head(
            &self.settings,
            self.admitted,
            &downstream.head().headers,
            key.as_deref(),
            prepared.body.len(),
        );
        let Ok(header) = header.and_then(|header| prepared.head(header)) else {
            let refusal = Refusal::new(Code::HeaderRefused);
            let Some(mut entry) = entry else {
                return self.refuse(downstream, &refusal).await;
            };
            let ended = self.end_unsent(downstream, &mut entry, Entered::Intent, Some(&refusal));
            return ended.await;
        };
        let whole_bytes_max = prepared.whole_bytes_max();
        let outgoing = Outgoing {
            header,
            body: prepared.body,
            // Where an answer that is missing may not be asked for again, a stale pooled connection
            // must not be what it is missing for.
            fresh_connection: !route.retry.no_head,
            read_timeout: self.settings.config.upstream.read_timeout,
            whole_bytes_max,
        };
        let mut dispatch = Dispatch {
            gateway: self.gateway,
            settings: Arc::clone(&self.settings),
            route,
            outgoing: &outgoing,
            bounds: Bounds {
                backoff: Backoff::of(&self.settings.config.retry),
                deadline: self.arrived.saturating_add(patience(self.admitted)),
            },
            attempts: Vec::new(),
            waited: Duration::ZERO,
            service_time: Duration::ZERO,
            first_byte_at: None,
            slot: going.slot,
            queued: going.queued,
            pass: going.pass,
            app: Arc::clone(&self.app.name),
            spender: (route.costs != Costs::Nothing).then(|| self.spender()),
            unreached: None,
        };
        let live = entry.as_ref().map(|entry| Arc::clone(&entry.live));
        let mut app = Attendance::new(self.gateway, Arc::clone(&self.settings), downstream, live);
        let (reached, exhausted) = dispatch.run(&mut app).await;
        let relay = Relay {
            gateway: self.gateway,
            settings: self.settings,
            admitted: self.admitted,
            declared: self.app,
            app,
            dispatch,
            entry,
            entry_id: self.entry_id,
            place: None,
            adopted,
            foreign_model: prepared.foreign_model,
            made_stream: prepared.made_stream,
            exhausted,
            arrived: self.arrived,
            own: None,
            app_time: self.body_took,
            state: None,
            delivered: false,
        };
        relay.run(reached).await
    }

    /// Takes over the answer of an equal request whose connection has left.
    async fn follow(self, downstream: &mut Downstream, mut follower: Follower) -> bool {
        self.gateway.metrics.joined();
        follower.reads_on(downstream.sight());
        let leader: Arc<Live> = Arc::clone(&follower.live);
        let answer = self.admitted.route.answer;
        let followed = relay::follow::follow(self.gateway, downstream, &mut follower, answer).await;
        if followed.delivered && downstream.is_cut() {
            leader.cuts_short();
        }
        // Before the last word, which is this one's.
        drop(follower);
        if followed.delivered {
            self.gateway.delivered(&leader);
        }
        report(
            self.gateway,
            &Report {
                app: Some(&self.app.name),
                route: Some(&self.admitted.route),
                entry: Some(leader.entry),
                adopted: Some(leader.entry),
                stream: followed.stream,
                status: followed.status,
                code: followed.code.map(Code::as_str),
                attempts: 0,
                state: None,
                measured: Measured {
                    total: self.gateway.clock.monotonic().saturating_sub(self.arrived),
                    ..Measured::default()
                },
            },
        );
        followed.keep
    }

    /// An answer of our own to a request whose body was read.
    async fn refuse(&self, downstream: &mut Downstream, refusal: &Refusal) -> bool {
        let keep = relay::give_refusal(downstream, refusal, self.entry_id).await;
        report_refusal(
            self.gateway,
            refusal,
            Some(self.admitted),
            self.entry_id,
            self.arrived,
        );
        keep
    }
}

fn adopted_from(key: Option<&EntryKey>) -> Option<EntryId> {
    match key?.origin {
        KeyOrigin::Adopted { from } => Some(from),
        KeyOrigin::Minted | KeyOrigin::App => None,
    }
}

async fn serve_local(
    gateway: &Arc<Gateway>,
    mut downstream: Downstream,
    place: &Place,
    answer: &LocalAnswer,
    entry_id: EntryId,
    arrived: Duration,
) -> Option<ReusableHttpStream> {
    let (status, written) = relay::send_local(&mut downstream, answer, entry_id).await;
    report(
        gateway,
        &Report {
            app: None,
            route: None,
            entry: Some(entry_id),
            adopted: None,
            stream: false,
            status,
            code: None,
            attempts: 0,
            state: None,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                ..Measured::default()
            },
        },
    );
    if written {
        // What is left of a body that nobody asked for is read first.
        place.rests(Rest::Leaving, Duration::ZERO);
        downstream.into_reusable().await
    } else {
        None
    }
}

/// Refuses a request whose body was not read whole: answer, then discard what is still sent.
async fn turn_down(
    gateway: &Arc<Gateway>,
    downstream: Downstream,
    place: &Place,
    refusal: Refusal,
    admitted: Option<&Admitted>,
    entry_id: EntryId,
    arrived: Duration,
) -> Option<ReusableHttpStream> {
    report_refusal(gateway, &refusal, admitted, entry_id, arrived);
    let framing_is_clear = !matches!(
        refusal.code,
        Code::LengthRefused | Code::HeadMalformed | Code::BodyBroken | Code::BodyTooSlow
    );
    let (mut downstream, written) = relay::send_refusal(downstream, &refusal, Some(entry_id)).await;
    place.rests(Rest::Leaving, Duration::ZERO);
    let discard = async {
        if written && framing_is_clear {
            buffer::drain(&mut downstream).await;
        } else if written {
            buffer::drain_raw(downstream).await;
        }
    };
    let mut cut = gateway.cut_signal();
    tokio::select! {
        biased;
        () = discard => {}
        () = cut.wait() => {}
    }
    None
}

fn report_refusal(
    gateway: &Gateway,
    refusal: &Refusal,
    admitted: Option<&Admitted>,
    entry_id: EntryId,
    arrived: Duration,
) {
    report(
        gateway,
        &Report {
            app: admitted.map(|admitted| &*admitted.caller.app.name),
            route: admitted.map(|admitted| &admitted.route),
            entry: Some(entry_id),
            adopted: None,
            stream: false,
            status: refusal.status().as_u16(),
            code: Some(refusal.code.as_str()),
            attempts: 0,
            state: None,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                queue: refusal.queued.unwrap_or_default(),
                ..Measured::default()
            },
        },
    );
}
