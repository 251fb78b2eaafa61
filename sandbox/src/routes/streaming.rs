//! A streamed chat completion: role chunk, deltas, finish chunk, usage, receipt comments, `[DONE]`.
//!
//! A task of its own writes the frames, so that a client that leaves does not stop the generation.
//! Promise: the debit is made when the generation is complete and before the receipt is written; a client that
//! received a receipt was billed its amount. A stream of an endpoint has no receipt, as direct model calls
//! carry none; it is in the endpoint's metrics once, with its actual result.

use super::{chunks::ChunkStream, seller::Seller};
use crate::{
    error::{ServiceError, mark_assumed},
    fleet::Completion,
    models::{Lane, request::ChatRequest},
    purchase::Sale,
    receipt::{self, Receipt},
    spec,
    sse::{self, writer::EventWriter},
};
use axum::response::Response;
use std::sync::Arc;

/// An answer that will be streamed, or that is whole and sent in pieces.
pub struct Flowing {
    pub seller: Seller,
    pub request: ChatRequest,
    pub answer: Completion,
}

/// Returns the head and leaves the rest to a task.
pub fn start(sale: Sale, flowing: Flowing) -> Response {
    let (frames, body) = sse::body(sale.inbound.connection_end.clone());
    let mut response = sse::response(body);
    match &flowing.seller {
        Seller::Auto(lane) => {
            let missing_input = match &flowing.answer {
                Completion::Whole(served) => served.missing_input,
                Completion::Flowing(_) => None,
            };
            if let (Some(missing), Lane::Inference) = (missing_input, lane) {
                // Assumed (stream-clarification): a streamed clarification names the input in its head.
                receipt::set(
                    response.headers_mut(),
                    spec::INPUT_REQUIRED,
                    missing.names().0,
                );
            }
            mark_assumed(&mut response, "object-members");
            mark_assumed(&mut response, "stream-head");
            if missing_input.is_some() {
                mark_assumed(&mut response, "stream-clarification");
            }
        }
        Seller::Endpoint(_) => {
            mark_assumed(&mut response, "endpoint-inference");
        }
    }
    let (state, fault) = (Arc::clone(&sale.state), sale.inbound.fault.clone());
    let writer = state.event_writer(fault, frames);
    state.tasks.spawn(produce(sale, flowing, writer));
    response
}

async fn produce(sale: Sale, flowing: Flowing, mut writer: EventWriter) {
    let (state, fault) = (Arc::clone(&sale.state), sale.inbound.fault.clone());
    let Flowing {
        seller,
        request,
        answer,
    } = flowing;
    let took_ms = match &answer {
        Completion::Whole(_) => Some(seller.took_ms(&state)),
        Completion::Flowing(_) => None,
    };
    let mut stream = ChunkStream::new(&state, &mut writer, seller.model(), request.include_usage);
    let given = stream.give(answer, &request, seller.lane()).await;
    let took_ms = took_ms.unwrap_or_else(|| seller.took_ms(&state));
    let org = sale.inbound.org.clone();
    let ended = async {
        // Assumed (broken-relay): no [DONE], nothing billed, and the key is as if nothing had run.
        let served = given?;
        if writer.aborted() && !state.settings().bill_aborted_stream {
            // Assumed (aborted-stream): a setting; off means that an unfinished stream is free.
            seller.count(&state, &org, &request, &served, None, took_ms);
            sale.end_unbilled();
            return Ok(None);
        }
        let price = seller.price(&served)?;
        // Breaks off rather than end a stream that was not billed, or whose debit is on no disk.
        let charged = sale.end(price).await?;
        let sold = Some((price, &charged));
        seller.count(&state, &org, &request, &served, sold, took_ms);
        Ok::<_, ServiceError>(Some(Receipt::new(&served, charged.shown)))
    };
    let receipt = match ended.await {
        Ok(Some(receipt)) => receipt,
        Ok(None) => return,
        Err(error) => {
            seller.count_failed(&state, error.status(), took_ms);
            return writer.cut().await;
        }
    };
    if fault.cut_before_receipt {
        writer.cut().await;
    }
    let has_receipt = match seller {
        Seller::Auto(lane) => lane == Lane::Inference || fault.agent_stream_receipt,
        Seller::Endpoint(_) => false,
    };
    if has_receipt {
        writer.lines(&receipt.comments(&fault)).await;
    }
    if fault.cut_before_done {
        writer.cut().await;
    }
    if !fault.no_done {
        writer
            .lines(&[format!("data: {}", spec::DONE), String::new()])
            .await;
    }
}
