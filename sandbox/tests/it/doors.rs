//! What every route of the interface has in common: who may pass, and how large a request may be.

use crate::support::*;
use bursar_sandbox::Options;
use serde_json::{Value, json};

/// Interface, Route table, and the four routes that are named beside it. `id` stands for any id.
pub const ROUTES: &[(&str, &str)] = &[
    ("POST", "/v1/chat/completions"),
    ("GET", "/v1/models"),
    ("GET", "/agent/v1/models"),
    ("POST", "/agent/v1/chat/completions"),
    ("GET", "/v1/tasks"),
    ("GET", "/v1/tasks/id"),
    ("POST", "/v1/tasks/match"),
    ("GET", "/v1/auto/metrics"),
    ("POST", "/v1/playground/frontier"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/audio/speech"),
    ("GET", "/v1/eval/frontier-models"),
    ("POST", "/v1/eval-sets"),
    ("GET", "/v1/eval-sets"),
    ("GET", "/v1/eval-sets/id"),
    ("DELETE", "/v1/eval-sets/id"),
    ("POST", "/v1/eval-sets/id/attach-blob"),
    ("POST", "/v1/eval-sets/id/blob-upload-url"),
    ("POST", "/v1/eval-sets/id/blob-upload-complete"),
    ("POST", "/v1/eval-runs"),
    ("GET", "/v1/eval-runs/id"),
    ("POST", "/v1/endpoints"),
    ("GET", "/v1/endpoints"),
    ("GET", "/v1/endpoints/id"),
    ("POST", "/v1/endpoints/id/start"),
    ("POST", "/v1/endpoints/id/stop"),
    ("DELETE", "/v1/endpoints/id"),
    ("GET", "/v1/endpoints/id/performance"),
    ("GET", "/v1/endpoints/id/uptime"),
    ("GET", "/v1/endpoints/id/cost"),
    ("GET", "/v1/endpoints/id/quality"),
    ("GET", "/v1/endpoints/id/activity"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/rerank"),
    ("POST", "/v1/images/generations"),
    ("POST", "/v1/images/edits"),
];

fn detail(reply: &Reply) -> Value {
    reply.json()["detail"].clone()
}

// Interface, Authentication: A missing or invalid key returns 401. A key that is authenticated but not
// allowed returns 403.
#[tokio::test]
async fn every_route_asks_for_a_key_that_is_known_and_allowed() {
    let sandbox = Sandbox::start_with(Options {
        forbidden_keys: vec!["known".to_owned()],
        ..Options::default()
    })
    .await;

    for (method, path) in ROUTES {
        for (authorization, status) in [
            ("", 401),
            ("Bearer wrong", 401),
            ("Basic sandbox-key", 401),
            ("Bearer known", 403),
        ] {
            let reply = sandbox
                .send(method, path, &[("Authorization", authorization)], None)
                .await;
            let what = format!("{method} {path} {authorization}");
            assert_eq!(reply.status, status, "{what}");
            assert!(detail(&reply).is_string(), "{what}");
            assert_eq!(reply.header("x-service-billed"), None, "{what}");
        }
    }
    assert_eq!(sandbox.books().await["debits_made"], 0);
}

// Interface, Limits: request body size, 30 MB (413), all routes.
#[tokio::test]
async fn every_route_refuses_a_body_over_30_mb() {
    let sandbox = Sandbox::start().await;
    let over = (30 * 1024 * 1024 + 1).to_string();

    for (method, path) in ROUTES {
        let headers = [
            ("Content-Length", over.as_str()),
            ("Expect", "100-continue"),
        ];
        let reply = sandbox.send(method, path, &headers, None).await;
        assert_eq!(reply.status, 413, "{method} {path}");
        assert!(detail(&reply).is_string(), "{method} {path}");
    }
    let whole = vec![b' '; 30 * 1024 * 1024 + 1];
    let reply = sandbox.send("POST", CHAT, &[], Some(whole)).await;
    assert_eq!(reply.status, 413);
}

#[tokio::test]
async fn an_unknown_method_or_path_is_refused_in_the_form_of_every_error() {
    let sandbox = Sandbox::start().await;

    for (_, path) in ROUTES {
        let reply = sandbox.send("PATCH", path, &[], None).await;
        assert!([404, 405].contains(&reply.status), "{path}");
        assert!(detail(&reply).is_string(), "{path}");
    }
    let reply = sandbox.send("GET", CHAT, &[], None).await;
    assert_eq!(
        (reply.status, reply.header("x-sandbox-assumed")),
        (405, Some("unknown-route"))
    );
    assert_eq!(sandbox.get("/v2/models").await.status, 404);
}

// Interface, Errors: a response may also carry an x-request-id header for diagnostics.
#[tokio::test]
async fn every_answer_has_a_request_id_that_the_log_knows() {
    let sandbox = Sandbox::start().await;
    sandbox.post(CHAT, &[], &ask("rivers")).await;
    let refused = sandbox.post(CHAT, &[], &json!({})).await;

    let log = sandbox.get("/sandbox/requests").await.json();
    assert_eq!(
        refused.header("x-request-id"),
        log["requests"][1]["request_id"].as_str()
    );
}

// Interface, Authentication: The organization scopes balance, eval sets, runs, endpoints, and idempotency keys.
#[tokio::test]
async fn organizations_have_balances_keys_and_pins_of_their_own() {
    let sandbox = Sandbox::start().await;
    let second = json!({"name": "org-2", "api_key": "second", "balance_micro_usd": 0});
    sandbox.control("organizations", second.clone()).await;
    let other = ("Authorization", "Bearer second");
    let key = ("Idempotency-Key", "k");

    let poor = sandbox.post(CHAT, &[other], &ask("rivers")).await;
    assert_eq!(poor.status, 402);
    let balance = json!({"micro_usd": 1_000_000, "org": "org-2"});
    sandbox.control("balance", balance).await;
    let mine = sandbox.post(CHAT, &[key], &ask("rivers")).await;
    let theirs = sandbox.post(CHAT, &[key, other], &ask("lakes")).await;
    assert_eq!((mine.status, theirs.status), (200, 200));
    assert_eq!(theirs.header("idempotent-replayed"), None);
    let books = sandbox.books().await;
    assert_eq!(
        books["balances_micro_usd"],
        json!({"org-1": 100_000_000 - mine.billed(), "org-2": 1_000_000 - theirs.billed()})
    );

    let session = ("X-Service-Session", "s");
    for _ in 0..2 {
        sandbox.post(AGENT, &[session], &ask("hard: rivers")).await;
    }
    let pinned = sandbox.post(AGENT, &[session], &ask("rivers")).await;
    let apart = sandbox.post(AGENT, &[session, other], &ask("rivers")).await;
    assert!(pinned.billed() > apart.billed());

    for (body, word) in [
        (second, "name"),
        (json!({"name": "org-3", "api_key": "second"}), "api_key"),
        (json!({"name": "", "api_key": "x"}), "name"),
        (json!({"name": "org-3", "api_key": "a b"}), "api_key"),
    ] {
        let reply = sandbox.post("/sandbox/organizations", &[], &body).await;
        assert_eq!(reply.status, 422, "{body}");
        assert!(reply.text().contains(word), "{}", reply.text());
        assert!(!reply.text().contains("second"), "a key is told to nobody");
    }
}

// Interface, Errors: the statuses of the table that cut across the routes.
#[tokio::test]
async fn statuses_that_a_fault_makes_have_the_form_of_the_table() {
    let sandbox = Sandbox::start().await;

    for (method, path) in ROUTES {
        let agent = path.starts_with("/agent");
        let wait = if agent { "30" } else { "5" };
        sandbox.fault(json!({"warm_up": true})).await;
        let cold = sandbox.send(method, path, &[], Some(b"{}".to_vec())).await;
        assert_eq!(
            (cold.status, cold.header("retry-after")),
            (503, Some(wait)),
            "{path}"
        );
        assert!(detail(&cold).is_string(), "{path}");
        sandbox.fault(json!({"status": 502})).await;
        let broken = sandbox.send(method, path, &[], Some(b"{}".to_vec())).await;
        assert_eq!(broken.status, 502, "{path}");
    }
    assert_eq!(sandbox.books().await["debits_made"], 0);
}
