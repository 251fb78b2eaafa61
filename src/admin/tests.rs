use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use bytes::Bytes;

use super::*;
use crate::admin::documents::KeyStatus;
use crate::apps::{Apps, Declared};
use crate::caps::Caps;
use crate::clock::{ManualClock, SharedClock};
use crate::config::{Config, Env, ListenAddr, Overrides};
use crate::ledger::entry::{Intent, KeyOrigin};
use crate::ledger::fingerprint::{FingerprintParts, GivenAs};
use crate::ledger::kept_key::{KeptKey, KeyForm};
use crate::ledger::{Ledger, LedgerOptions};
use crate::notices::Notices;
use crate::protocol::{Lane, Operation};
use crate::telemetry::metrics::{Breaking, Metrics};

struct Served {
    admin: Arc<Admin>,
    ledger: Ledger,
    address: std::net::SocketAddr,
    stop: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

fn config(state_dir: &Path) -> Arc<Config> {
    let overrides = Overrides {
        upstream: Some("http://127.0.0.1:8329".to_owned()),
        state_dir: Some(state_dir.to_owned()),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", "key-of-the-test")]);
    Arc::new(Config::load(&overrides, &env).unwrap())
}

async fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    served_from(folder, |options| options).await
}

async fn served_from(
    folder: tempfile::TempDir,
    opened: impl FnOnce(LedgerOptions) -> LedgerOptions,
) -> Served {
    let state_dir = folder.path().join("state");
    let clock: SharedClock = Arc::new(ManualClock::at(1_774_778_400_000));
    let options = opened(LedgerOptions::new(&state_dir, Arc::clone(&clock)));
    let ledger = Ledger::open(options).unwrap();
    let config = config(&state_dir);
    let apps = Apps::open(&state_dir, Declared::from(&*config)).unwrap();
    let rules = apps.cap_rules(&config.caps);
    let caps = Caps::new(&ledger, rules, &state_dir, Arc::clone(&clock));
    let metrics = Arc::new(Metrics::new().unwrap());
    let admin = Arc::new(Admin::new(AdminParts {
        notices: Notices::new(
            Arc::clone(&config),
            Arc::clone(&caps),
            Arc::clone(&metrics),
            Arc::clone(&clock),
        ),
        caps,
        config,
        ledger: ledger.clone(),
        metrics,
        clock,
        apps: Arc::new(apps),
        proxy: vec![ListenAddr::Tcp("127.0.0.1:8327".parse().unwrap())],
        in_flight: Box::new(|| 3),
        key: Box::new(|| KeyStatus {
            accepted: Some("2026-01-31T11:00:00.000Z".to_owned()),
            ..KeyStatus::default()
        }),
        auto_metrics: Box::new(|| {
            let figures = AutoMetrics {
                document: Bytes::from_static(br#"{"billed_micro_usd_30d": 7}"#),
                service_clock_ms: None,
            };
            Box::pin(async { Ok(figures) })
        }),
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = watch::Sender::new(false);
    tokio::spawn(serve(
        Arc::clone(&admin),
        AdminListener::Tcp(listener),
        stop.subscribe(),
    ));
    Served {
        admin,
        ledger,
        address,
        stop,
        _folder: folder,
    }
}

/// Sends a head as it is, and reads until the server closes.
async fn exchange(served: &Served, head: &str) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn get(served: &Served, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    exchange(served, &head).await
}

async fn intend(ledger: &Ledger) -> Intent {
    let intent = Intent {
        model: Some("<script>".to_owned()),
        key: Some(KeptKey {
            form: KeyForm::Text(Arc::from("k-1")),
            origin: KeyOrigin::Minted,
            organization: None,
            request: None,
            asked: None,
        }),
        request_bytes: 2,
        ..Intent::new(
            ledger.new_entry_id(),
            1_774_778_400_000,
            Arc::from("default"),
            Lane::Inference,
            Operation::Chat,
            ledger.fingerprint(&FingerprintParts {
                method: "POST",
                path_and_query: "/v1/chat/completions",
                body: b"{}",
                session: None,
                rte_query: None,
                given_as: GivenAs::Served,
            }),
        )
    };
    ledger.intend(intent.clone()).await.unwrap();
    intent
}

#[tokio::test]
async fn an_app_that_calls_the_admin_address_is_given_the_base_url_for_apps() {
    let served = served().await;
    for (method, path) in [
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/models"),
        ("POST", "/agent/v1/chat/completions"),
        ("POST", "/v1/v1/chat/completions"),
        ("POST", "/v1/nothing"),
        ("POST", "/chat/completions"),
        ("GET", "/models"),
        ("OPTIONS", "/v1/chat/completions"),
    ] {
        let head = |lines: &str| {
            format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n"
            )
        };
        let answer = exchange(&served, &head("Content-Length: 0\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 404 "),
            "{method} {path}: {answer}"
        );
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let text = body["error"]["message"].as_str().unwrap();
        assert!(
            text.contains("http://127.0.0.1:8327/v1"),
            "{method} {path}: {text}"
        );
        assert_eq!(body["detail"], text);
        // A page gets no address.
        let answer = exchange(&served, &head("Origin: http://localhost\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 "),
            "{method} {path}: {answer}"
        );
        assert!(!answer.contains("8327"), "{method} {path}: {answer}");
    }
    for (method, path, status) in [
        ("POST", "/api/spend", 405),
        ("POST", "/", 405),
        ("GET", "/v2", 404),
    ] {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(&served, &head).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{method} {path}: {answer}"
        );
        assert!(!answer.contains("8327"), "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn every_path_answers_what_it_is_for() {
    let served = served().await;
    let intent = intend(&served.ledger).await;
    let cases = [
        ("/metrics", "bursar_ledger_writable 1\n"),
        ("/healthz", "ok\n"),
        (
            "/readyz",
            "ok\nanonymous: every process of this machine may spend without a token\n",
        ),
        ("/", "<h1>bursar</h1>"),
        ("/api/status", "\"in_flight\":3"),
        (
            "/api/spend?by=app",
            "\"rows\":[{\"app\":\"default\",\"requests\":1",
        ),
        (
            "/api/receipts?limit=1",
            &format!("\"id\":\"{}\"", intent.id),
        ),
    ];

    for (path, part) in cases {
        let answer = get(&served, path).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{path}: {answer}"
        );
        assert!(answer.contains(part), "{path}: {answer}");
        assert!(answer.contains("cache-control: no-store\r\n"), "{path}");
        assert!(!answer.contains("key-of-the-test"), "{path}");
    }
}

/// A refused one, too: what is refused to a frame is refused in a way that the frame cannot show.
#[tokio::test]
async fn every_answer_keeps_pages_of_others_out() {
    let served = served().await;
    let intent = intend(&served.ledger).await;
    let entry = format!("/explain/{}", intent.id);
    let none = "/explain/019a0000-0000-7000-8000-000000000000";
    for (path, status) in [
        ("/", 200),
        (entry.as_str(), 200),
        (none, 404),
        ("/explain/no-id", 404),
        ("/favicon.ico", 200),
        ("/metrics", 200),
        ("/readyz", 200),
        ("/api/status", 200),
        ("/api/status?x", 400),
        ("/nothing", 404),
        ("/v1/models", 404),
    ] {
        let answer = get(&served, path).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path}: {head}"
        );
        for (name, value) in door::PROTECTION {
            let is_page = body.starts_with("<!doctype");
            let value = match name {
                "content-security-policy" if is_page => page::POLICY,
                _ => value,
            };
            assert!(
                head.contains(&format!("\r\n{name}: {value}")),
                "{path}: {name}: {head}"
            );
            assert!(value.contains("frame-ancestors 'none'") || !name.starts_with("content"));
        }
    }
    let page = get(&served, &entry).await;
    assert!(
        page.contains(&format!("<h1>Entry {}</h1>", intent.id)),
        "{page}"
    );
    assert!(
        page.contains("&lt;script&gt;") && !page.contains("<script"),
        "{page}"
    );
    assert!(!page.contains("k-1"), "the key: {page}");
    let page = get(&served, "/").await;
    assert!(page.contains(&format!("href=\"{entry}\"")), "{page}");
    let refused = "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nConnection: close\r\n\r\n";
    let refused = exchange(&served, refused).await;
    assert!(refused.contains("frame-ancestors 'none'"), "{refused}");
}

#[tokio::test]
async fn the_page_is_answered_while_the_journal_is_added_up_and_says_so() {
    let before = served().await;
    let intent = intend(&before.ledger).await;
    before.ledger.close().await;
    let folder = before._folder;
    std::fs::remove_dir_all(folder.path().join("state/index")).unwrap();
    let served = served_from(folder, |options| LedgerOptions {
        rebuild_beside_bytes: 0,
        ..options
    })
    .await;
    let mut seen = 0;
    while served.ledger.health().is_adding_up {
        let page = get(&served, "/").await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(
            page.contains(&intent.id.to_string()),
            "the receipts: {page}"
        );
        // Else it was added up between the two looks.
        if served.ledger.health().is_adding_up {
            assert!(page.contains("The totals are not whole yet"), "{page}");
            assert!(
                !page.contains("$0.000000</td>"),
                "no sum is guessed: {page}"
            );
            seen += 1;
        }
    }
    assert!(seen > 0, "it was added up before anybody looked");
}

#[tokio::test]
async fn a_view_takes_no_turn_to_read_while_the_figures_of_another_are_good() {
    let served = served().await;
    let intent = intend(&served.ledger).await;
    assert!(get(&served, "/").await.contains(&intent.id.to_string()));
    let turns = Arc::clone(&served.admin.queries);
    let _all = turns.acquire_many(2).await.unwrap();
    let second = get(&served, "/").await;
    assert!(second.contains(&intent.id.to_string()), "{second}");
}

#[tokio::test]
async fn a_wrong_request_is_answered_with_its_status() {
    let served = served().await;
    let cases = [
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n", "404"),
        (
            "GET /api/spend?since=1 HTTP/1.1\r\nHost: localhost\r\n",
            "400",
        ),
        ("GET /api/status?x=1 HTTP/1.1\r\nHost: localhost\r\n", "400"),
        (
            "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n",
            "405",
        ),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n", "403"),
        (
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n",
            "403",
        ),
        ("GET / HTTP/1.1\r\n", "403"),
    ];

    for (head, status) in cases {
        let answer = exchange(&served, &format!("{head}Connection: close\r\n\r\n")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{head}: {answer}"
        );
    }
}

#[tokio::test]
async fn head_has_no_body() {
    let served = served().await;
    let head = "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

    let answer = exchange(&served, head).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_draining_process_is_alive_and_not_ready() {
    let served = served().await;

    served.admin.drain();

    let ready = get(&served, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.contains("draining"));
    assert!(get(&served, "/healthz").await.starts_with("HTTP/1.1 200 "));
}

/// A load balancer or a supervisor can do nothing about these, and free routes are served.
#[tokio::test]
async fn an_open_breaker_is_reported_and_the_daemon_stays_ready() {
    let rows = [
        (Breaking::Key, "refuses the organization's key (401)"),
        (Breaking::Balance, "balance is empty (402)"),
        (Breaking::Upstream, "the service cannot be reached"),
    ];
    for (cause, words) in rows {
        let served = served().await;
        let traffic = &served.admin.metrics.traffic;
        traffic.breaker(cause, true);

        let ready = get(&served, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
        let text = ready.split("\r\n\r\n").nth(1).expect("a body");
        assert!(text.starts_with("degraded: "), "{text}");
        assert!(text.contains(words), "{text}");
        let page = get(&served, "/").await;
        assert!(page.contains("Serving, but "), "{page}");

        traffic.breaker(cause, false);
        assert!(get(&served, "/readyz").await.contains("\r\n\r\nok\n"));
    }
}

#[tokio::test]
async fn a_closed_ledger_is_not_ready() {
    let served = served().await;

    served.ledger.close().await;

    let ready = get(&served, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.contains("the ledger cannot be written"), "{ready}");
}

#[tokio::test]
async fn receipts_after_a_mark_come_oldest_first_so_that_none_is_passed_over() {
    let served = served().await;
    let first = intend(&served.ledger).await;
    let second = intend(&served.ledger).await;

    let newest = get(&served, "/api/receipts?limit=1").await;
    let oldest = get(&served, "/api/receipts?limit=1&after_seq=0").await;

    assert!(newest.contains(&second.id.to_string()), "{newest}");
    assert!(oldest.contains(&first.id.to_string()), "{oldest}");
    assert!(oldest.contains("\"last_seq\":1}"), "{oldest}");
}

#[tokio::test]
async fn a_follower_goes_on_behind_what_did_not_match_too() {
    let served = served().await;
    for _ in 0..3 {
        intend(&served.ledger).await;
    }

    let other = get(&served, "/api/receipts?after_seq=1&app=other").await;

    assert!(
        other.ends_with("{\"receipts\":[],\"last_seq\":3}\n"),
        "{other}"
    );
}

#[tokio::test]
async fn stopping_closes_idle_connections() {
    let served = served().await;
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");

    served.stop.send_replace(true);

    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}
