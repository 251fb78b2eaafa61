//! A connection that takes over the answer of an equal request whose own connection has left: no
//! second upstream request, no second bill, and the real receipt.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use crate::ledger::entry::EntryId;
use crate::protocol::routes::AnswerKind;
use crate::proxy::downstream::Downstream;
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::client::{Presence, Written};
use crate::proxy::purchase::shared::{Follower, ReplayEnd, ReplayItem};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::upstream::heads;

use super::own;

/// The status in the report of an app that left before it was given a head ("client closed
/// request"). It is never sent.
const STATUS_LEFT: u16 = 499;

/// How following ended.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    pub status: u16,
    pub code: Option<Code>,
    pub stream: bool,
    pub delivered: bool,
    pub keep: bool,
}

/// Writes what the leader records, as it records it.
pub async fn follow(
    gateway: &Gateway,
    downstream: &mut Downstream,
    follower: &mut Follower,
    answer: AnswerKind,
) -> Followed {
    let mut followed = Followed {
        status: 0,
        code: None,
        stream: false,
        delivered: false,
        keep: false,
    };
    let entry = follower.purchase.entry;
    let mut is_answer = false;
    let mut is_flowing = false;
    let mut has_begun = false;
    let mut ends_in_newline = true;
    loop {
        let item = tokio::select! {
            item = follower.next() => Some(item),
            // This app has left too. What was not handed out stays for its next attempt.
            () = downstream.left() => None,
        };
        // Both may be ready: bytes for who has left would count as given.
        let item = item.filter(|_| followed.delivered || downstream.look() == Presence::Here);
        let Some(item) = item else {
            if followed.status == 0 {
                followed.status = STATUS_LEFT;
            }
            return followed;
        };
        match item {
            ReplayItem::Head { head, flowing } => {
                followed.status = head.status.as_u16();
                followed.stream = heads::is_event_stream(&head.headers);
                is_flowing = flowing;
                if flowing {
                    downstream.keeps(&follower.purchase.request_key.app);
                }
                is_answer = head.status.is_success();
                let mut head = ResponseHeader::clone(&head);
                if mark(&mut head, entry).is_err() || downstream.write_head(head).await.is_err() {
                    return followed;
                }
            }
            ReplayItem::Chunk(chunk) => {
                ends_in_newline = chunk.last() == Some(&b'\n');
                let Ok(written) = downstream.write_chunk(chunk).await else {
                    return followed;
                };
                // The beginning of a document need not be out to be gone from the tape: the leader
                // waits for room there.
                let counts = written == Written::Out || !followed.stream;
                if is_flowing && counts && !has_begun {
                    has_begun = true;
                    if followed.stream {
                        followed.delivered = true;
                        follower.delivered();
                    } else {
                        follower.begins();
                    }
                }
            }
            ReplayItem::End(ReplayEnd::Complete) => {
                let purchase = Arc::clone(&follower.purchase);
                let finish = pin!(downstream.finish());
                let finished = gateway
                    .handed_over(is_answer.then_some(&*purchase), finish)
                    .await;
                if finished.is_ok() {
                    followed.keep = true;
                    // An error is not the answer that the app wanted, even when it was received.
                    if is_answer && !followed.delivered {
                        followed.delivered = true;
                        follower.delivered();
                    }
                }
                return followed;
            }
            ReplayItem::End(ReplayEnd::Broken(refusal)) => {
                let refusal = of_ones_own(refusal);
                // Among named events there is none of ours.
                let takes_event = followed.stream && answer != AnswerKind::NamedEvents;
                let event = takes_event.then(|| refusal.event_behind(ends_in_newline));
                return broken(downstream, followed, refusal, event, entry).await;
            }
        }
    }
}

/// The run of the request that was joined is not this one's: what ended it is no answer here.
fn of_ones_own(refusal: Refusal) -> Refusal {
    match refusal.code {
        Code::RunEnded => Refusal::saying(
            Code::RunAwaited,
            "This request had joined an equal one, of a run that has ended. Nothing was sent for it; try again."
                .to_owned(),
        ),
        _ => refusal,
    }
}

async fn broken(
    downstream: &mut Downstream,
    mut followed: Followed,
    refusal: Refusal,
    event: Option<Bytes>,
    entry: EntryId,
) -> Followed {
    followed.code = Some(refusal.code);
    if followed.status != 0 {
        if let Some(event) = event {
            // The connection breaks either way.
            downstream.write_chunk(event).await.ok();
        }
        downstream.take_up().await.ok();
        downstream.mark_broken();
        return followed;
    }
    followed.status = refusal.status().as_u16();
    if let Ok((mut head, body)) = own::refusal_answer(&refusal)
        && mark(&mut head, entry).is_ok()
        && downstream.write_head(head).await.is_ok()
        && downstream.write_chunk(body).await.is_ok()
    {
        followed.keep = downstream.finish().await.is_ok();
    }
    followed
}

/// The answer belongs to the entry of the request that was joined.
fn mark(head: &mut ResponseHeader, entry: EntryId) -> Result<(), heads::HeadError> {
    own::mark(head, entry, Some(entry), None)
}
