//! What the interface leaves open and this sandbox chose, once.
//!
//! `bursar sandbox --assumptions` prints the list; an answer whose shape rests on one names its id in
//! `X-Sandbox-Assumed`. Promise: a choice that is not in this list is not made anywhere.

use serde::Serialize;

/// One choice: its id on the wire, the clause it fills, and what was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    pub id: &'static str,
    pub clause: &'static str,
    pub text: &'static str,
}

const fn assumed(id: &'static str, clause: &'static str, text: &'static str) -> Assumption {
    Assumption { id, clause, text }
}

pub fn assumptions() -> &'static [Assumption] {
    ALL
}

#[rustfmt::skip]
const ALL: &[Assumption] = &[
    assumed("repeat-billed", "Idempotency-Key, not stored",
        "A repeat that runs again and is not billed again reports 0; the setting repeat_billed = \"same\" reports the amount billed once."),
    assumed("aborted-stream", "Metering; Streaming",
        "A stream whose client leaves is generated to its end and debited; the setting bill_aborted_stream = false makes it free."),
    assumed("key-after-failure", "Idempotency-Key, first request failed",
        "A key with which nothing has succeeded is bound to nothing: another body may use it."),
    assumed("key-form", "Idempotency-Key",
        "An empty key counts as none; one that is not printable is 400."),
    assumed("replay-window-start", "Idempotency-Key, 24 hours",
        "The 24 hours begin when the first request with the key begins to run."),
    assumed("replay-request-id", "Idempotency-Key, replay",
        "A replay has an x-request-id of its own."),
    assumed("retry-after-409", "Idempotency-Key, still running",
        "The 409 says Retry-After: 30."),
    assumed("duplicate-waits-in-flight", "Limits, concurrency",
        "A duplicate that waits for a running first request counts as in flight."),
    assumed("unstored-duplicate-waits", "Idempotency-Key, not stored",
        "A duplicate of a running embeddings request, or of one whose answer turns out over 1 MB, waits for its end and then runs, unbilled."),
    assumed("stored-size-unit", "Limits, stored response size",
        "1 MB is 1024 x 1024 bytes of body."),
    assumed("body-size-unit", "Limits, request body size",
        "30 MB is 30 x 1024 x 1024 bytes."),
    assumed("rate-window", "Limits, rate",
        "A sliding window of 60 s over admitted requests; refused ones do not count."),
    assumed("limited-routes", "Limits, inference",
        "Both chat routes and embeddings are limited; the frontier comparison is not."),
    assumed("order-of-checks", "Errors",
        "413, key (401, 403), limits (429), form (400, 404, 422), Idempotency-Key (422, wait, 409), balance (402), work (400, 502)."),
    assumed("status-400-or-422", "Errors",
        "Malformed JSON, n over 1 and unusable schemas are 400; a missing or mistyped field is 422."),
    assumed("unsupported-field", "POST /v1/chat/completions",
        "A field that is no OpenAI chat field is 422 on /v1."),
    assumed("n-on-v1", "POST /v1/chat/completions",
        "n over 1 is 400 on /v1 as on the agent lane."),
    assumed("context-window", "Limits, context window",
        "A transcript over 131,072 tokens is 400 on both lanes."),
    assumed("clarification-rule", "X-Service-Input-Required",
        "The last user message says attached, enclosed or uploaded, or points at \"this\" picture, pdf or scan, and no message carries one; the header says document or image."),
    assumed("clarification-form", "X-Service-Input-Required",
        "A clarification is a completion that finished with stop; it shows no tokens used and would have cost 0."),
    assumed("stream-clarification", "X-Service-Input-Required",
        "A streamed clarification carries the header in its head and the four comments before [DONE]."),
    assumed("escalated-false", "X-Service-Escalated",
        "The header says false when there was no escalation."),
    assumed("agent-receipt-headers", "Agent lane",
        "A whole agent answer carries X-Service-Billed and X-Service-Route-Version and no other receipt header; an agent stream carries none."),
    assumed("agent-error-body", "Errors, agent lane",
        "Error bodies of the agent lane have the same {detail} form."),
    assumed("object-members", "Chat completion; GET /v1/models",
        "Completions, chunks, the list and its entry also carry OpenAI's object member."),
    assumed("model-created", "Model entry",
        "created is a fixed time."),
    assumed("stream-head", "Streaming",
        "The head of a stream carries no receipt header; a stream tells neither escalation nor specialist."),
    assumed("error-receipt", "Errors",
        "An error carries no receipt header."),
    assumed("unknown-route", "Errors",
        "An unknown path is 404 and an unknown method 405, with a detail."),
    assumed("forbidden", "Authentication, 403",
        "Keys configured as forbidden get 403 on every route."),
    assumed("tool-calls-on-v1", "POST /v1/chat/completions",
        "tool_calls come back on /v1 in the same shape as on the agent lane."),
    assumed("endpoint-model", "POST /v1/chat/completions",
        "auto is the only model; an endpoint's id is 404."),
    assumed("max-completion-tokens", "Limits, default max_tokens",
        "max_completion_tokens counts as max_tokens and goes before it."),
    assumed("one-waiter-runs", "Idempotency-Key, first fails",
        "When a first request fails, one of those that wait runs and the others wait for it."),
    assumed("query-string", "Idempotency-Key, endpoint",
        "The endpoint is the path; a query string does not count."),
    assumed("free-repeat-empty-balance", "Metering, empty balance",
        "A repeat that runs again and would not be billed again runs even with an empty balance."),
    assumed("negative-balance", "Metering, empty balance",
        "A request runs while the balance is above zero, and the last one may overdraw it."),
    assumed("tokenizer", "usage",
        "Six letters or digits of a word, or one other character, are a token; a message costs 4 more, a picture or file 256."),
    assumed("prices", "Metering, published rates",
        "Micro-USD per million tokens, prompt/completion: general-chat 200,000/600,000; coding 300,000/1,200,000; vision 400,000/1,000,000; extraction 150,000/450,000; summarization 100,000/400,000; frontier 3,000,000/15,000,000; embeddings 20,000. One rounding up per request."),
    assumed("plan", "Routing",
        "The category is told by words and parts of the last user message; over 4,000 prompt tokens no specialist is tried."),
    assumed("judge", "Routing, quality bar",
        "A specialist's answer is escalated when it misses the schema asked for, or when the last user message holds \"hard:\" or the words prove, proof or theorem."),
    assumed("tool-rule", "tools",
        "A tool is called when the last user message shares a word with its name or description and no result has come since; tool_choice overrides."),
    assumed("pin-escalations", "X-Service-Session",
        "A conversation that escalated twice stays on the frontier route until its pin expires."),
    assumed("auto-metrics", "GET /v1/auto/metrics",
        "billed_micro_usd_30d is the billed spend; sums are by whole hours, the oldest counted whole; requests are those of chat, agent turns, embeddings and the frontier comparison, and what is not 2xx failed; hourly_7d has hour, requests, errors, p50_ms and p95_ms (to the head of the answer), daily_30d has day (UTC), requests, successes and success_rate; null where there was no request."),
    assumed("embeddings", "/v1/embeddings",
        "OpenAI's request and answer; any model name; X-Service-Billed on the answer."),
    assumed("frontier-ids", "POST /v1/playground/frontier",
        "The four ids are frontier-a, frontier-b, frontier-c and frontier-d, each with a price of its own; no Idempotency-Key is honored."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_one_word_and_stands_once() {
        for (at, one) in ALL.iter().enumerate() {
            assert!(
                one.id
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{}",
                one.id
            );
            assert!(
                ALL.iter().skip(at + 1).all(|other| other.id != one.id),
                "{}",
                one.id
            );
            assert!(
                !one.text.is_empty() && one.text.ends_with('.'),
                "{}",
                one.id
            );
        }
    }
}
