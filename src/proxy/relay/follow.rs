//! A connection that takes over the answer of an equal request whose own connection has left: no
//! second upstream request, no second bill, and the real receipt.
//!
//! What is written and what counts as delivered is decided in [`crate::proxy::purchase::following`].

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use super::given::Given;
use super::own;
use crate::ledger::entry::EntryId;
use crate::protocol::routes::AnswerKind;
use crate::proxy::door::admit::AllowedOrigin;
use crate::proxy::downstream::Downstream;
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::following::{FollowAction, FollowEvent, FollowedEnd, Following};
use crate::proxy::purchase::shared::Follower;
use crate::proxy::upstream::heads;

/// The status in the report of an app that left before it was given a head ("client closed
/// request"). It is never sent.
const STATUS_LEFT: u16 = 499;

/// How following ended.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    pub status: u16,
    pub stream: bool,
    pub end: FollowedEnd,
    pub keep: bool,
}

/// Writes what the leader records, as it records it; `origin`: whose page may read it.
pub async fn follow(
    gateway: &Gateway,
    downstream: &mut Downstream,
    follower: &mut Follower,
    answer: AnswerKind,
    given: &Given,
    origin: Option<&AllowedOrigin>,
) -> Followed {
    let entry = follower.purchase().entry;
    // Among named events there is none of ours, and what breaks a translated stream is recorded with it.
    let reads_errors = answer != AnswerKind::NamedEvents && !given.is_live();
    let mut following = Following::new(reads_errors);
    let (mut status, mut stream) = (STATUS_LEFT, false);
    let mut as_events = false;
    let mut action = FollowAction::Wait;
    let keep = loop {
        let event = match action {
            FollowAction::Wait => {
                tokio::select! {
                    item = follower.next() => FollowEvent::Came(item),
                    // This app has left too. What was not handed out stays for its next attempt.
                    () = downstream.left() => FollowEvent::Left,
                }
            }
            FollowAction::WriteHead(head) => {
                status = head.status.as_u16();
                stream = head.status.is_success() && given.is_stream(&head.headers);
                as_events = given.reads_as_events(&head);
                if following.is_flowing() {
                    downstream.keeps(&follower.purchase().request_key.app);
                }
                let mut head = match as_events {
                    true => Given::event_head(&head),
                    false => ResponseHeader::clone(&head),
                };
                if mark(&mut head, entry, origin).is_err() || downstream.write_head(&head).is_err()
                {
                    FollowEvent::Lost
                } else {
                    FollowEvent::Did
                }
            }
            FollowAction::Write(chunk) => {
                // A document is kept in one piece.
                let events = match as_events {
                    true => given.events(&chunk),
                    false => None,
                };
                let chunk = events.unwrap_or(chunk);
                match downstream.write_chunk(chunk).await {
                    Ok(written) => FollowEvent::Wrote(written),
                    Err(_) => FollowEvent::Lost,
                }
            }
            FollowAction::Finish => {
                let purchase = Arc::clone(follower.purchase());
                let owes = following.is_answer().then_some(&*purchase);
                let finish = pin!(downstream.finish());
                match gateway.handed_over(owes, finish).await {
                    Ok(()) => FollowEvent::Did,
                    Err(_) => FollowEvent::Lost,
                }
            }
            FollowAction::Refuse(refusal) => {
                status = refusal.status().as_u16();
                break own::give_refusal(downstream, &refusal, entry, Some(entry), origin).await;
            }
            FollowAction::Break(event) => {
                break_off(downstream, event).await;
                break false;
            }
            FollowAction::Done => break following.end().is_whole,
        };
        if following.asks_for_app() {
            downstream.look_closely();
        }
        let is_event_stream = |head: &ResponseHeader| heads::is_event_stream(&head.headers);
        action = following.on(event, downstream.presence(), follower, is_event_stream);
    };
    Followed {
        status,
        stream,
        end: following.end(),
        keep,
    }
}

async fn break_off(downstream: &mut Downstream, event: Option<Bytes>) {
    if let Some(event) = event {
        // The connection breaks either way.
        downstream.write_chunk(event).await.ok();
    }
    downstream.take_up().await.ok();
    downstream.mark_broken();
}

/// The answer belongs to the entry of the request that was joined.
fn mark(
    head: &mut ResponseHeader,
    entry: EntryId,
    origin: Option<&AllowedOrigin>,
) -> Result<(), heads::HeadError> {
    own::mark(head, entry, Some(entry), origin)
}
