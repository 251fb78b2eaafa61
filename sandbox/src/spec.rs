//! The literals of the interface, as this side spells them.
//!
//! The daemon spells its own: agreement is checked against the written interface, never against each other.
//! Promise: a name, limit or status text of the interface is in this file and nowhere else.

/// The only model id on both lanes.
pub const MODEL: &str = "auto";

// === routes served today ===
pub const CHAT: &str = "/v1/chat/completions";
pub const AGENT_CHAT: &str = "/agent/v1/chat/completions";
pub const AGENT_PREFIX: &str = "/agent/v1/";
pub const MODELS: &str = "/v1/models";
pub const AGENT_MODELS: &str = "/agent/v1/models";
pub const AUTO_METRICS: &str = "/v1/auto/metrics";
pub const EMBEDDINGS: &str = "/v1/embeddings";
pub const RERANK: &str = "/v1/rerank";
pub const IMAGE_GENERATIONS: &str = "/v1/images/generations";
pub const IMAGE_EDITS: &str = "/v1/images/edits";
pub const PLAYGROUND_FRONTIER: &str = "/v1/playground/frontier";
pub const EVAL_SETS: &str = "/v1/eval-sets";
pub const EVAL_SET: &str = "/v1/eval-sets/{eval_set_id}";
pub const ATTACH_BLOB: &str = "/v1/eval-sets/{eval_set_id}/attach-blob";
pub const BLOB_UPLOAD_URL: &str = "/v1/eval-sets/{eval_set_id}/blob-upload-url";
pub const BLOB_UPLOAD_COMPLETE: &str = "/v1/eval-sets/{eval_set_id}/blob-upload-complete";
pub const EVAL_RUNS: &str = "/v1/eval-runs";
pub const EVAL_RUN: &str = "/v1/eval-runs/{run_id}";
pub const ENDPOINTS: &str = "/v1/endpoints";
pub const ENDPOINT: &str = "/v1/endpoints/{endpoint_id}";
pub const ENDPOINT_START: &str = "/v1/endpoints/{endpoint_id}/start";
pub const ENDPOINT_STOP: &str = "/v1/endpoints/{endpoint_id}/stop";
pub const TASKS: &str = "/v1/tasks";
pub const TASK: &str = "/v1/tasks/{task_id}";
pub const TASKS_MATCH: &str = "/v1/tasks/match";
pub const FRONTIER_MODELS: &str = "/v1/eval/frontier-models";
pub const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
pub const SPEECH: &str = "/v1/audio/speech";

/// The routes whose requests are inference, as the metrics count them.
pub const INFERENCE: &[&str] = &[
    CHAT,
    AGENT_CHAT,
    EMBEDDINGS,
    PLAYGROUND_FRONTIER,
    RERANK,
    IMAGE_GENERATIONS,
    IMAGE_EDITS,
    TRANSCRIPTIONS,
    SPEECH,
];

/// Interface, Idempotency-Key: where it is honored.
pub const KEYED: &[&str] = &[
    CHAT,
    AGENT_CHAT,
    EMBEDDINGS,
    RERANK,
    IMAGE_GENERATIONS,
    IMAGE_EDITS,
];

// === request headers ===
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
pub const SESSION: &str = "X-Service-Session";
pub const RTE_QUERY: &str = "X-Service-RTE-Query";

// === response headers ===
pub const BILLED: &str = "X-Service-Billed";
pub const WOULD_HAVE_COST: &str = "X-Service-Frontier-Would-Have-Cost";
pub const SERVED_BY: &str = "X-Service-Served-By";
pub const SPECIALIST: &str = "X-Service-Specialist";
pub const ESCALATED: &str = "X-Service-Escalated";
pub const ROUTE_VERSION: &str = "X-Service-Route-Version";
pub const INPUT_REQUIRED: &str = "X-Service-Input-Required";
pub const REPLAYED: &str = "Idempotent-Replayed";
pub const REQUEST_ID: &str = "x-request-id";

/// No part of the interface: marks an answer whose shape this sandbox had to choose.
pub const ASSUMED: &str = "X-Sandbox-Assumed";

// === stream comments, written `: name value` just before `data: [DONE]` ===
pub const COMMENT_BILLED: &str = "service-billed-micro-usd";
pub const COMMENT_WOULD_HAVE_COST: &str = "service-frontier-would-have-cost-micro-usd";
pub const COMMENT_SERVED_BY: &str = "service-served-by";
pub const COMMENT_ROUTE_VERSION: &str = "service-route-version";
pub const DONE: &str = "[DONE]";

// === values ===
pub const REQUESTS_30D: &str = "requests_30d";
pub const SUCCESS_RATE_30D: &str = "success_rate_30d";
pub const SAVINGS_30D: &str = "savings_vs_frontier_micro_usd_30d";
pub const INPUT_MODALITY_UNSUPPORTED: &str = "input_modality_unsupported";
/// The deploy stamp of this revision. The word holds no promise beyond "the same until it changes".
pub const ROUTE_VERSION_VALUE: &str = concat!("sandbox-", env!("CARGO_PKG_VERSION"));
/// `owned_by` of the model entries: the service's name.
pub const OWNER: &str = "service";

/// The stages of a deploy and their share of the whole, in percent. Assumed (deploy-stages).
pub const DEPLOY_STAGES: &[(&str, u8)] = &[
    ("validated", 10),
    ("allocating", 30),
    ("loading", 50),
    ("warming", 75),
    ("health_check", 95),
];

// === limits ===
pub const CONTEXT_WINDOW_TOKENS: u64 = 131_072;
pub const MAX_TOKENS_DEFAULT: u64 = 8192;
// Assumed (body-size-unit): 30 MB is 30 x 1024 x 1024 bytes.
pub const BODY_BYTES_MAX: usize = 30 * 1024 * 1024;
pub const IN_FLIGHT_MAX: usize = 8;
pub const IN_FLIGHT_RETRY_AFTER_S: u32 = 5;
pub const PER_MINUTE_MAX: u32 = 120;
pub const PER_MINUTE_RETRY_AFTER_S: u32 = 15;
pub const KEY_CHARS_MAX: usize = 256;
pub const REPLAY_WINDOW_S: u64 = 24 * 60 * 60;
pub const DUPLICATE_WAIT_S: u64 = 9 * 60;
// Assumed (stored-size-unit): 1 MB is 1024 x 1024 bytes.
pub const STORED_BYTES_MAX: usize = 1024 * 1024;
pub const IMAGE_STORED_BYTES_MAX: usize = 16 * 1024 * 1024;
pub const PIN_IDLE_S: u64 = 30 * 60;
pub const EVAL_PROMPT_CHARS_MAX: usize = 500;
/// A file of this size or more is no inline upload: "under 5 MiB inline".
pub const INLINE_BLOB_BYTES: usize = 5 * 1024 * 1024;
pub const PLAYGROUND_MESSAGES_MAX: usize = 40;
pub const SPEECH_CHARS_MAX: usize = 5_000;
pub const AGENT_WARM_UP_RETRY_AFTER_S: u32 = 30;
