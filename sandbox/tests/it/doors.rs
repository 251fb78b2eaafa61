//! What every route of the interface has in common: which keys pass, and how large a request may
//! be.

use crate::support::*;
use bursar_sandbox::Options;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

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

// Interface, Errors 404: "eval set, run, task or endpoint id not found"; Endpoints: "Error bodies have the form".
#[tokio::test]
async fn an_id_that_is_no_utf8_is_an_unknown_id() {
    let sandbox = Sandbox::start().await;

    for (method, path) in ROUTES.iter().filter(|(_, path)| path.contains("/id")) {
        let path = path.replace("/id", "/%FF%FE");
        let body = (*method == "POST").then(Vec::new);
        let reply = sandbox.send(method, &path, &[], body).await;
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.text());
        assert!(detail(&reply).is_string(), "{method} {path}");
    }
    for (method, path) in [
        ("POST", "/v1/endpoints/%FF/chat/completions"),
        ("PUT", "/storage/%FF"),
    ] {
        let reply = sandbox.send(method, path, &[], Some(Vec::new())).await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert!(detail(&reply).is_string(), "{path}");
    }
}

#[tokio::test]
async fn the_control_routes_are_for_programs_and_not_for_web_pages() {
    let sandbox = Sandbox::start().await;
    let body = || Some(br#"{"micro_usd": 0}"#.to_vec());
    let host = format!("localhost:{}", sandbox.address.port());
    for page in [
        [
            ("Origin", "http://evil.example"),
            ("Content-Type", "text/plain"),
        ],
        [
            ("Origin", "null"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ],
        [
            ("Sec-Fetch-Site", "cross-site"),
            ("Content-Type", "application/json"),
        ],
        [("Sec-Fetch-Site", "none"), ("Content-Type", "text/plain")],
    ] {
        for (method, path) in [("POST", "balance"), ("OPTIONS", "balance")] {
            let path = format!("/sandbox/{path}");
            let reply = sandbox.send(method, &path, &page, body()).await;
            assert_eq!(reply.status, 403, "{page:?}: {}", reply.text());
            assert!(detail(&reply).is_string(), "{page:?}");
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    let rebound = raw(
        &sandbox,
        "GET /sandbox/books HTTP/1.1\r\nHost: evil.example:8329\r\n",
    )
    .await;
    assert!(rebound.starts_with("HTTP/1.1 403"), "{rebound}");
    assert_ne!(sandbox.books().await["balances_micro_usd"]["org-1"], 0);

    for program in [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Type", "application/json"),
        ("Content-Type", ""),
        ("Sec-Fetch-Site", "none"),
    ] {
        let reply = sandbox
            .send("POST", "/sandbox/balance", &[program], body())
            .await;
        assert_eq!(reply.status, 200, "{program:?}: {}", reply.text());
    }
    let own = raw(
        &sandbox,
        &format!("GET /sandbox/books HTTP/1.1\r\nHost: {host}\r\n"),
    )
    .await;
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    assert_eq!(sandbox.books().await["balances_micro_usd"]["org-1"], 0);
}

/// What comes back for a head of the test's own; the connection ends with it.
async fn raw(sandbox: &Sandbox, head: &str) -> String {
    within(async {
        let mut socket = TcpStream::connect(sandbox.address).await.unwrap();
        let head = format!("{head}Connection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        socket.read_to_end(&mut seen).await.unwrap();
        String::from_utf8_lossy(&seen).into_owned()
    })
    .await
}

#[tokio::test]
async fn the_clock_goes_ten_years_ahead_and_no_further() {
    let sandbox = Sandbox::start().await;
    let years = |n: u64| n * 365 * 86_400;
    for (body, status) in [
        (json!({"advance_s": 1_000_000_000_000_000_000_u64}), 422),
        (json!({"advance_s": u64::MAX, "advance_ms": u64::MAX}), 422),
        (json!({"advance_s": years(10) + 1}), 422),
        (json!({"advance_s": years(9)}), 200),
        (json!({"advance_s": years(1) + 1}), 422),
        (json!({"advance_s": years(1)}), 200),
        (json!({"advance_ms": 1}), 422),
        (json!({"advance_s": 0}), 200),
    ] {
        let reply = sandbox.post("/sandbox/clock", &[], &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    let step = json!({"at_request": 1, "do": {"advance_s": u64::MAX}});
    assert_eq!(sandbox.post("/sandbox/steps", &[], &step).await.status, 422);
    assert_eq!(sandbox.post(CHAT, &[], &ask("rivers")).await.status, 200);
}

// Interface, Authentication: "The organization scopes balance, …": one key cannot be of two.
#[tokio::test]
async fn options_that_contradict_themselves_do_not_start() {
    let mut options = Options::default();
    options.forbidden_keys.push(options.api_key.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();

    let refused = within(bursar_sandbox::serve(
        listener,
        options,
        std::future::pending(),
    ))
    .await;

    let text = refused.unwrap_err().to_string();
    assert!(
        text.starts_with("forbidden_keys: one is the api_key of org-1"),
        "{text}"
    );
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
        assert!(!reply.text().contains("second"), "no key is shown");
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
