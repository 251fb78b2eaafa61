//! One request, from its head to its last byte: the steps of the proxy in their order.
//!
//! Promise: a metered request leaves only after its intent is durable (rule I1); a request that ends
//! before it was sent costs nothing and says so.

mod arrive;
mod end;
mod predecessor;
mod prepare;
mod request;
mod room;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use self::end::Ended;
use self::prepare::Prepared;
use self::request::Request;
use self::turn::Admission;
use super::client_watch::ClientWatch;
use super::dispatch::Dispatch;
use super::dispatch::place::UpstreamPlace;
use super::dispatch::sending::Sending;
use super::door::admit::{self, AllowedOrigin, Inbound, LocalAnswer};
use super::door::buffer::{self, RequestBody};
use super::door::spoken;
use super::downstream::Downstream;
use super::gateway::Gateway;
use super::life::InFlight;
use super::limits::breaker::Asks;
use super::purchase::backoff::Backoff;
use super::purchase::claim::Claim;
use super::purchase::claimant::{Claimant, RequestKey};
use super::purchase::retry::Bounds;
use super::purchase::shared::{Follower, Purchase};
use super::refuse::{Code, Refusal};
use super::relay::given::Given;
use super::relay::{self, Led, Relay, own};
use super::report::{Report, report};
use super::request_head;
use super::settle::{EntryGuard, Measured};
use super::upstream::outgoing::Outgoing;
use crate::ledger::FingerprintParts;
use crate::ledger::entry::{EntryId, EntryKey, Intent, KeyOrigin};
use crate::ledger::kept_key::KeptKey;
use crate::places::{Place, Rest};
use crate::protocol::Dialect;
use crate::protocol::routes::{AnswerKind, Costs};
use crate::protocol::trace::TraceId;

/// A request that is refused before its body was read whole.
struct TurnedDown<'a> {
    refusal: &'a Refusal,
    report: Report<'a>,
    /// Whose page may read why.
    origin: Option<&'a AllowedOrigin>,
}

/// One request, from its head to its last byte. Whether its connection can be kept.
pub(super) async fn serve_request(
    gateway: &Arc<Gateway>,
    mut downstream: Downstream,
    place: &Place,
) -> bool {
    let _in_flight = InFlight::enter(&gateway.life, &gateway.metrics);
    let arrived = gateway.clock.monotonic();
    let entry_id = gateway.ledger.new_entry_id();
    let settings = gateway.settings.load_full();
    let admission = arrive::admit(gateway, &settings, &downstream).await;
    let admitted = match admission {
        Ok(Inbound::Relay(admitted)) => {
            downstream.speaks(admitted.dialect);
            admitted
        }
        Ok(Inbound::Local(answer)) => {
            return serve_local(gateway, downstream, place, &answer, entry_id, arrived).await;
        }
        Err(refusal) => {
            downstream.speaks(spoken::of_refused(&settings, downstream.head()));
            let origin = admit::refusal_reader(downstream.head(), &settings.config.listen);
            let turned = TurnedDown {
                refusal: &refusal,
                report: Report::of_refusal(&refusal, entry_id),
                origin: origin.as_ref(),
            };
            return turn_down(gateway, downstream, place, turned, arrived).await;
        }
    };
    let room = buffer::Intake {
        ledger: &gateway.ledger,
        budget: &gateway.budget,
        clock: &*gateway.clock,
        life: &gateway.life,
        waiters: &gateway.waiters,
        has_one_app: gateway.has_one_app(),
    };
    let body = match buffer::read_body(room, &mut downstream, &admitted, place).await {
        Ok(body) => body,
        Err(refusal) => {
            let turned = TurnedDown {
                refusal: &refusal,
                report: Report {
                    admitted: Some(&admitted),
                    ..Report::of_refusal(&refusal, entry_id)
                },
                origin: admitted.origin.as_ref(),
            };
            return turn_down(gateway, downstream, place, turned, arrived).await;
        }
    };
    // Until here nothing was done, and the connection may have given way.
    if !place.serves() {
        return false;
    }
    let request = Request {
        gateway,
        settings,
        app: Arc::clone(&admitted.caller.app),
        admitted: &admitted,
        arrived,
        body_took: body.app_took(),
        entry_id,
        model: None,
        key: None,
    };
    let keep = if admitted.route.is_metered() {
        serve_metered(request, &mut downstream, body).await
    } else {
        serve_free(request, &mut downstream, body).await
    };
    if keep {
        place.rests(Rest::Leaving, Duration::ZERO);
        downstream.into_reusable().await
    } else {
        // Whatever was given was not given to its end.
        downstream.mark_broken();
        false
    }
}

/// A request that makes no entry.
async fn serve_free(
    request: Request<'_>,
    downstream: &mut Downstream,
    mut body: RequestBody,
) -> bool {
    let may_go = || {
        if request.admitted.route.costs == Costs::FromThenOn
            && let Some(refusal) = request.guard().holds()
        {
            return Err(refusal);
        }
        request.gateway.breaker.pass(Asks::Free)
    };
    match may_go() {
        Ok(pass) => match prepare::prepare(&request, downstream, &mut body) {
            Ok(prepared) => {
                let going = Admission::free(pass);
                exchange(request, downstream, prepared, going, None).await
            }
            Err(refusal) => end::unclaimed(&request, downstream, refusal.into()).await,
        },
        Err(refusal) => end::unclaimed(&request, downstream, refusal.into()).await,
    }
}

async fn serve_metered(
    mut request: Request<'_>,
    downstream: &mut Downstream,
    mut body: RequestBody,
) -> bool {
    let admitted = request.admitted;
    // As the app sent it.
    let request_bytes = u64::try_from(body.bytes().len()).unwrap_or(u64::MAX);
    let mut prepared = match prepare::prepare(&request, downstream, &mut body) {
        Ok(prepared) => prepared,
        Err(refusal) => return end::unclaimed(&request, downstream, refusal.into()).await,
    };
    if prepared.given.dialect() != Dialect::Chat {
        let metrics = &request.gateway.metrics;
        metrics.translated(prepared.given.dialect(), &prepared.dropped);
    }
    request.model = prepared.peek.model.take();
    let parts = FingerprintParts {
        // As it is sent: a key goes with the same bytes, also when an alias was changed.
        body: &prepared.body,
        given_as: prepared.given.kind(),
        ..admitted.without_body()
    };
    let ledger = &request.gateway.ledger;
    let claimant = Claimant {
        request_key: RequestKey {
            app: Arc::clone(&request.app.name),
            fingerprint: match body.take_hash() {
                Some(hash) => hash.fingerprint(prepared.given.kind()),
                None => ledger.fingerprint(&parts),
            },
        },
        entry: request.entry_id,
        own_key: admitted.own_key.clone().filter(|_| admitted.route.keyed),
        keyed: admitted.route.keyed,
        marked_retry: admitted.marked_retry,
        keeps_answer: admitted.route.answer != AnswerKind::NamedEvents,
    };
    let purchase = match predecessor::claim(&request, downstream, &claimant).await {
        Ok(Claim::Lead(purchase)) => purchase,
        Ok(Claim::Follow(follower)) => {
            return follow(request, downstream, follower, &prepared.given).await;
        }
        // A second look always decides.
        Ok(Claim::LookAgain { .. } | Claim::ReadOn(_)) => {
            let ended = Refusal::new(Code::Internal).into();
            return end::unclaimed(&request, downstream, ended).await;
        }
        Err(ended) => return end::unclaimed(&request, downstream, ended).await,
    };
    // From here on, whatever ends the request reports to a follower how.
    purchase.led_by(downstream.probe());
    let kept = |key| KeptKey {
        asked: prepared.asked,
        ..ledger.kept_key(key, request.settings.organization, &parts)
    };
    request.key = purchase.key.as_ref().map(kept);
    let mut entry = EntryGuard::new(request.gateway, purchase);
    match intend(&request, downstream, &mut entry, &prepared, request_bytes).await {
        Ok(going) => exchange(request, downstream, prepared, going, Some(entry)).await,
        Err(ended) => end::unsent(&request, downstream, &mut entry, ended).await,
    }
}

/// Waits for room and for a turn, and writes the intent: behind it the request may be sent.
async fn intend(
    request: &Request<'_>,
    downstream: &mut Downstream,
    entry: &mut EntryGuard,
    prepared: &Prepared,
    request_bytes: u64,
) -> Result<Admission, Ended> {
    let (gateway, admitted) = (request.gateway, request.admitted);
    let purchase = Arc::clone(entry.purchase());
    predecessor::check_translation(request, &purchase).await?;
    let waiting = gateway.among_waiters(&request.app.name)?;
    let asked = gateway.clock.monotonic();
    let permit = room::permit(request, downstream, &purchase, request_bytes).await?;
    let (reserved, leases) = (permit.reserved(), permit.leases().clone());
    entry.reserves(permit);
    let for_room = gateway.clock.monotonic().saturating_sub(asked);
    let going = turn::turn(request, downstream, &purchase).await?;
    let going = going.having_waited(for_room);
    drop(waiting);
    if predecessor::is_given_up(request, downstream, &purchase).await {
        return Err(Ended::AppLeft);
    }
    let intent = Intent {
        model: request.model.clone(),
        stream: prepared.peek.stream,
        key: request.key.clone(),
        key_use: purchase.key_use(),
        request_bytes,
        reserved: Some(reserved),
        leases,
        run: admitted.caller.run.as_ref().map(|run| run.id.to_string()),
        trace_id: TraceId::of(&downstream.head().headers),
        spoken: prepared.given.dialect(),
        dropped: prepared.dropped.clone(),
        marks: admitted.marks.clone(),
        ..Intent::new(
            request.entry_id,
            gateway.clock.wall_ms(),
            Arc::clone(&purchase.request_key.app),
            admitted.route.lane,
            admitted.route.operation,
            purchase.request_key.fingerprint,
        )
    };
    // Rule I1: nothing leaves before its intent is durable.
    if let Err(error) = gateway.ledger.intend(intent).await {
        tracing::error!(%error, "an intent could not be written; the request was not sent");
        return Err(Refusal::new(Code::LedgerUnavailable).into());
    }
    entry.intended();
    if purchase.is_abandoned(downstream.look_closely()) {
        return Err(Ended::AppLeft);
    }
    // Meanwhile an operator may have frozen the app, or its run has ended.
    if let Some(halt) = request.guard().halts() {
        return Err(halt.into());
    }
    Ok(going)
}

/// Attempts and answer.
async fn exchange(
    request: Request<'_>,
    downstream: &mut Downstream,
    prepared: Prepared,
    going: Admission,
    entry: Option<EntryGuard>,
) -> bool {
    let route = &request.admitted.route;
    let adopted = entry
        .as_ref()
        .and_then(|entry| adopted_from(entry.purchase().key.as_ref()));
    let key = entry
        .as_ref()
        .and_then(|entry| entry.purchase().key.as_ref())
        .map(|key| Arc::clone(&key.value));
    let header = request_head::request_head(
        &request.settings,
        request.admitted,
        &downstream.head().headers,
        key.as_deref(),
        prepared.body.len(),
    );
    let Ok(header) = header.and_then(|header| prepared.head(header)) else {
        let ended = Refusal::new(Code::HeaderRefused).into();
        return match entry {
            Some(mut entry) => end::unsent(&request, downstream, &mut entry, ended).await,
            None => end::unclaimed(&request, downstream, ended).await,
        };
    };
    let whole_bytes_max = prepared.whole_bytes_max();
    let whole_copies = prepared.whole_copies();
    let echoed_bytes = prepared.given.echoed_bytes();
    let outgoing = Outgoing {
        header,
        authorization: request.settings.key.header_value(),
        body: prepared.body,
        // Where an answer that is missing may not be asked for again, a stale pooled connection
        // must not be what it is missing for.
        fresh_connection: !route.retry.no_head,
        read_timeout: request.settings.config.upstream.read_timeout,
        whole_bytes_max,
        whole_copies,
        echoed_bytes,
    };
    let bounds = Bounds {
        backoff: Backoff::of(&request.settings.config.retry),
        deadline: request.deadline(),
    };
    let place = UpstreamPlace::new(
        going.slot,
        going.pass,
        Arc::clone(&request.settings.key_record),
        route.is_metered(),
    );
    let sending = Sending {
        gateway: request.gateway,
        settings: Arc::clone(&request.settings),
        route,
        outgoing: &outgoing,
        app: Arc::clone(&request.app.name),
        guard: (route.costs != Costs::Nothing).then(|| request.guard()),
    };
    let mut dispatch = Dispatch::new(sending, bounds, place, going.queued);
    let purchase = entry.as_ref().map(|entry| Arc::clone(entry.purchase()));
    let mut app = ClientWatch::new(request.gateway, downstream, purchase);
    let reached = dispatch.run(&mut app).await;
    let led = Led {
        gateway: request.gateway,
        settings: request.settings,
        admitted: request.admitted,
        declared: request.app,
        entry_id: request.entry_id,
        adopted,
        model: request.model,
        foreign_model: prepared.foreign_model,
        given: prepared.given,
        arrived: request.arrived,
        shows_cost: prepared.shows_cost,
    };
    let relay = Relay::new(led, app, dispatch, entry, request.body_took);
    relay::give::give(relay, reached).await
}

/// Takes over the answer of an equal request whose connection has left.
async fn follow(
    request: Request<'_>,
    downstream: &mut Downstream,
    mut follower: Follower,
    given: &Given,
) -> bool {
    request.gateway.metrics.joined();
    follower.reads_on(downstream.probe());
    let leader: Arc<Purchase> = Arc::clone(follower.purchase());
    if let Some(price) = leader.repeats.joined() {
        request.gateway.metrics.repeats_avoided(price, 1);
    }
    let answer = request.admitted.route.answer;
    let origin = request.admitted.origin.as_ref();
    let followed = relay::follow::follow(
        request.gateway,
        downstream,
        &mut follower,
        answer,
        given,
        origin,
    )
    .await;
    if followed.end.is_delivered && downstream.is_cut() {
        leader.cuts_short();
    }
    // Before the last word, which is this one's.
    drop(follower);
    if followed.end.is_delivered {
        request.gateway.delivered(&leader);
    }
    report(
        request.gateway,
        downstream,
        &Report {
            admitted: Some(request.admitted),
            model: request.model.as_deref(),
            adopted: Some(leader.entry),
            stream: followed.stream,
            status: followed.status,
            code: followed.end.code,
            measured: request.measured(None),
            ..Report::new(leader.entry)
        },
    );
    followed.keep
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
) -> bool {
    let (status, written) = own::send_local(&mut downstream, answer, entry_id).await;
    report(
        gateway,
        &downstream,
        &Report {
            status,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                ..Measured::default()
            },
            ..Report::new(entry_id)
        },
    );
    if written {
        // What is left of a body that was not asked for is read first.
        place.rests(Rest::Leaving, Duration::ZERO);
        downstream.into_reusable().await
    } else {
        false
    }
}

/// Refuses a request whose body was not read whole: answer, then discard what is still sent.
async fn turn_down(
    gateway: &Arc<Gateway>,
    downstream: Downstream,
    place: &Place,
    turned: TurnedDown<'_>,
    arrived: Duration,
) -> bool {
    let TurnedDown {
        refusal,
        report: mut refused,
        origin,
    } = turned;
    refused.measured.total = gateway.clock.monotonic().saturating_sub(arrived);
    report(gateway, &downstream, &refused);
    let framing_is_clear = !matches!(
        refusal.code,
        Code::LengthRefused | Code::HeadMalformed | Code::BodyBroken | Code::BodyTooSlow
    );
    let (mut downstream, written) =
        own::send_refusal(downstream, refusal, refused.entry, origin).await;
    place.rests(Rest::Leaving, Duration::ZERO);
    let discard = async {
        if written && framing_is_clear {
            buffer::drain(&mut downstream).await;
        } else if written {
            buffer::drain_raw(downstream).await;
        }
    };
    let mut cut = gateway.life.cut_signal();
    tokio::select! {
        biased;
        () = discard => {}
        () = cut.wait() => {}
    }
    false
}
