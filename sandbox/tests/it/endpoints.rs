//! Deployed endpoints: deploy, states, deletion, organizations and restarts.

use crate::support::*;
use bursar_sandbox::{Options, Settings, options::Organization};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

pub const ENDPOINTS: &str = "/v1/endpoints";
pub const TASK: &str = "contact-extraction";
const OTHER: [(&str, &str); 1] = [("Authorization", "Bearer second-key")];

pub fn quick() -> Options {
    Options {
        settings: Settings {
            endpoint_stage_ms: 0,
            ..Settings::default()
        },
        more_organizations: vec![Organization {
            name: "org-2".to_owned(),
            api_key: "second-key".to_owned(),
        }],
        ..Options::default()
    }
}

/// The named events of a stream, in order.
pub fn events(reply: &Reply) -> Vec<(String, Value)> {
    let text = reply.text().replace("\r\n", "\n");
    text.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| {
            let field = |name: &str| {
                let mut lines = event.lines();
                let found = lines.find_map(|line| line.strip_prefix(name));
                found
                    .unwrap_or_else(|| panic!("{name} in {event}"))
                    .to_owned()
            };
            (
                field("event: "),
                serde_json::from_str(&field("data: ")).unwrap(),
            )
        })
        .collect()
}

/// Deploys and gives the endpoint.
pub async fn deploy(sandbox: &Sandbox, body: Value) -> Value {
    let reply = sandbox.post(ENDPOINTS, &[], &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let events = events(&reply);
    let (name, last) = events.last().unwrap();
    assert_eq!(name, "complete", "{last}");
    last["endpoint"].clone()
}

pub async fn named(sandbox: &Sandbox, name: &str) -> Value {
    deploy(sandbox, json!({"task": TASK, "name": name})).await
}

pub async fn turn(sandbox: &Sandbox, name: &str, to: &str) -> Reply {
    let path = format!("{ENDPOINTS}/{name}/{to}");
    sandbox.send("POST", &path, &[], Some(Vec::new())).await
}

pub async fn status(sandbox: &Sandbox, name: &str) -> String {
    let reply = sandbox.get(&format!("{ENDPOINTS}/{name}")).await;
    reply.json()["status"].as_str().unwrap().to_owned()
}

// Interface, POST /v1/endpoints (deploy): "Response: a named-event SSE stream"
#[tokio::test]
async fn a_deploy_reports_its_stages_and_ends_with_the_live_endpoint() {
    let sandbox = Sandbox::start_with(quick()).await;

    let reply = sandbox
        .post(ENDPOINTS, &[], &json!({"task": TASK, "name": "mine"}))
        .await;

    assert!(reply.complete);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/event-stream")
    );
    assert_eq!(reply.header("x-sandbox-assumed"), Some("deploy-stages"));
    let events = events(&reply);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "progress", "progress", "progress", "progress", "progress", "complete"
        ]
    );
    let pcts: Vec<u64> = events[..5]
        .iter()
        .map(|(_, one)| one["pct"].as_u64().unwrap())
        .collect();
    assert!(pcts.is_sorted() && pcts[4] < 100, "{pcts:?}");
    let stages: Vec<&str> = events[..5]
        .iter()
        .map(|(_, one)| one["stage"].as_str().unwrap())
        .collect();
    assert_eq!(
        stages,
        [
            "validated",
            "allocating",
            "loading",
            "warming",
            "health_check"
        ]
    );
    let endpoint = &events[5].1["endpoint"];
    assert_eq!(endpoint["status"], "live");
    assert_eq!(*endpoint, sandbox.get("/v1/endpoints/mine").await.json());
    assert!(sandbox.debits().await.is_empty(), "a deploy costs nothing");
}

// Interface, Resources, Endpoint
#[tokio::test]
async fn an_endpoint_shows_its_public_alias_and_its_extra_fields() {
    let sandbox = Sandbox::start_with(quick()).await;
    let body = json!({
        "task": TASK, "model": "recommended", "region": "eu-1", "provider": "p", "quality": 0.9,
        "run_mode": "serverless", "taskDisplay": "Contacts",
        "cost_per_request_micro_usd": 5, "frontier_cost_per_request_micro_usd": 50,
    });

    let endpoint = deploy(&sandbox, body.clone()).await;

    assert_eq!(endpoint["id"], endpoint["name"]);
    let id = endpoint["id"].as_str().unwrap();
    assert!(id.starts_with("contact-extraction-"), "generated: {id}");
    let (family, rank) = endpoint["model"]
        .as_str()
        .unwrap()
        .rsplit_once('-')
        .unwrap();
    assert!(!family.is_empty() && rank == "1", "{family}-{rank}");
    assert_eq!(endpoint["task"], TASK);
    let url = format!("http://sandbox/v1/endpoints/{id}");
    assert_eq!(endpoint["url"], url);
    for (name, value) in body.as_object().unwrap() {
        if name != "model" {
            assert_eq!(endpoint[name], *value, "{name}");
        }
    }
    let second = deploy(
        &sandbox,
        json!({"task": TASK, "model": format!("{family}-2")}),
    )
    .await;
    assert_eq!(second["model"], format!("{family}-2"));
    assert_ne!(second["id"], endpoint["id"]);
}

// Interface, Errors 400: "unknown task or malformed deploy parameters"
#[tokio::test]
async fn a_deploy_that_is_wrong_is_400_before_any_stream() {
    let sandbox = Sandbox::start_with(quick()).await;
    for body in [
        "{",
        "[]",
        "null",
        "{}",
        r#"{"task": ""}"#,
        r#"{"task": 5}"#,
        r#"{"task": "no-such-task"}"#,
        r#"{"task": "contact-extraction", "model": "nothing-1"}"#,
        r#"{"task": "contact-extraction", "model": 1}"#,
        r#"{"task": "contact-extraction", "name": "a b"}"#,
        r#"{"task": "contact-extraction", "name": ""}"#,
        r#"{"task": "contact-extraction", "gpu": "large"}"#,
        r#"{"task": "contact-extraction", "cost_per_request_micro_usd": -5}"#,
    ] {
        let reply = sandbox
            .send("POST", ENDPOINTS, &[], Some(body.as_bytes().to_vec()))
            .await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        assert!(reply.json()["detail"].is_string());
    }
    assert_eq!(sandbox.get(ENDPOINTS).await.json(), json!([]));
}

// Interface, Errors 409: "seed or legacy endpoint conflict on deploy"
#[tokio::test]
async fn a_name_that_is_taken_is_409() {
    let sandbox = Sandbox::start_with(quick()).await;
    let first = named(&sandbox, "mine").await;
    let seed = first["model"].as_str().unwrap();
    for name in ["mine", "auto", seed] {
        let body = json!({"task": TASK, "name": name});
        let reply = sandbox.post(ENDPOINTS, &[], &body).await;
        assert_eq!(reply.status, 409, "{name}");
        assert!(reply.json()["detail"].is_string());
    }
    // Another organization's names are its own.
    let reply = sandbox
        .post(ENDPOINTS, &OTHER, &json!({"task": TASK, "name": "mine"}))
        .await;
    assert_eq!(events(&reply).last().unwrap().0, "complete");
}

// Interface, Endpoint status: "deploy fails | none | stream emits `error`, or ends without `complete`"
#[tokio::test]
async fn a_deploy_that_fails_says_so_and_leaves_nothing() {
    let sandbox = Sandbox::start_with(quick()).await;
    let stages = [
        "validated",
        "allocating",
        "loading",
        "warming",
        "health_check",
    ];
    for (at, stage) in stages.into_iter().enumerate() {
        sandbox.fault(json!({"deploy_fails_at": stage})).await;

        let reply = sandbox
            .post(ENDPOINTS, &[], &json!({"task": TASK, "name": "mine"}))
            .await;

        let events = events(&reply);
        assert_eq!(events.len(), at + 2, "{stage}");
        let (name, last) = events.last().unwrap();
        assert_eq!((name.as_str(), &last["stage"]), ("error", &json!(stage)));
        assert!(last["message"].is_string());
        assert_eq!(
            sandbox.get("/v1/endpoints/mine").await.status,
            404,
            "{stage}"
        );
    }
    named(&sandbox, "mine").await;
}

// Interface, POST /v1/endpoints: "The stream ending without `complete` is a failure."
#[tokio::test]
async fn a_deploy_that_a_fault_cuts_before_complete_leaves_no_endpoint() {
    let sandbox = Sandbox::start_with(quick()).await;
    for (name, fault, events_seen, complete) in [
        ("cut-1", json!({"cut_after_chunks": 2}), 2, false),
        ("cut-2", json!({"cut_before_done": true}), 5, false),
        ("cut-3", json!({"no_done": true}), 5, true),
    ] {
        sandbox.fault(fault).await;
        let reply = sandbox
            .post(ENDPOINTS, &[], &json!({"task": TASK, "name": name}))
            .await;
        assert_eq!(events(&reply).len(), events_seen, "{name}");
        assert_eq!(reply.complete, complete, "{name}");
        assert!(events(&reply).iter().all(|(event, _)| event == "progress"));
        until_gone(&sandbox, name).await;
    }
    let cut_in_complete = json!({"cut_after_bytes": 320});
    sandbox.fault(cut_in_complete).await;
    let body = json!({"task": TASK, "name": "cut-4"});
    let reply = sandbox.post(ENDPOINTS, &[], &body).await;
    assert_eq!((reply.body.len(), reply.complete), (320, false));
    assert!(reply.text().contains("event: complete"), "{}", reply.text());
    until_gone(&sandbox, "cut-4").await;
    // The names are free again.
    named(&sandbox, "cut-1").await;
}

async fn until_gone(sandbox: &Sandbox, name: &str) {
    let path = format!("{ENDPOINTS}/{name}");
    within(async {
        loop {
            let reply = sandbox.get(&path).await;
            if reply.status == 404 {
                break;
            }
            assert_eq!(reply.json()["status"], "deploying", "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn events_come_one_by_one_as_the_stages_pass_and_may_be_cut_anywhere() {
    let options = Options {
        settings: Settings {
            endpoint_stage_ms: 60_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = Sandbox::start_with(options).await;
    let body = json!({"task": TASK, "name": "slow"})
        .to_string()
        .into_bytes();
    let mut socket = sandbox.open("POST", ENDPOINTS, &[], Some(body)).await;
    let mut seen = Vec::new();

    for n in 1..=5 {
        // Byte by byte: an event may come in any pieces.
        within(async {
            while seen.windows(7).filter(|seven| *seven == b"event: ").count() < n
                || !seen.ends_with(b"\n\n\r\n")
            {
                seen.push(socket.read_u8().await.unwrap());
            }
        })
        .await;
        let text = String::from_utf8_lossy(&seen).into_owned();
        assert_eq!(text.matches("event: progress").count(), n);
        assert_eq!(status(&sandbox, "slow").await, "deploying");
        sandbox.control("clock", json!({"advance_s": 60})).await;
    }
    within(socket.read_to_end(&mut seen)).await.unwrap();
    assert!(String::from_utf8_lossy(&seen).contains("event: complete"));
    assert_eq!(status(&sandbox, "slow").await, "live");
}

#[tokio::test]
async fn a_client_that_leaves_does_not_end_the_deploy() {
    let options = Options {
        settings: Settings {
            endpoint_stage_ms: 60_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = Sandbox::start_with(options).await;
    let body = json!({"task": TASK, "name": "left"})
        .to_string()
        .into_bytes();
    let mut socket = sandbox.open("POST", ENDPOINTS, &[], Some(body)).await;
    socket.read_u8().await.unwrap();
    drop(socket);

    within(async {
        while status(&sandbox, "left").await != "live" {
            sandbox.control("clock", json!({"advance_s": 60})).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_is_being_deployed_can_be_deleted_and_nothing_else() {
    let options = Options {
        settings: Settings {
            endpoint_stage_ms: 60_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = Sandbox::start_with(options).await;
    let body = json!({"task": TASK, "name": "mine"});
    let mut socket = sandbox
        .open("POST", ENDPOINTS, &[], Some(body.to_string().into_bytes()))
        .await;
    let mut seen = vec![socket.read_u8().await.unwrap()];

    for to in ["start", "stop"] {
        assert_eq!(turn(&sandbox, "mine", to).await.status, 409, "{to}");
    }
    assert_eq!(sandbox.post(ENDPOINTS, &[], &body).await.status, 409);
    let path = format!("{ENDPOINTS}/mine");
    assert_eq!(sandbox.send("DELETE", &path, &[], None).await.status, 204);
    sandbox
        .control("settings", json!({"endpoint_stage_ms": 0}))
        .await;
    sandbox.control("clock", json!({"advance_s": 60})).await;
    within(socket.read_to_end(&mut seen)).await.unwrap();
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(
        seen.contains("event: error") && seen.contains("deleted"),
        "{seen}"
    );
}

// Interface, Other endpoint routes: "GET /v1/endpoints: array of Endpoint, every endpoint the organization can access"
#[tokio::test]
async fn the_list_is_an_array_of_the_organizations_own_in_any_status() {
    let sandbox = Sandbox::start_with(quick()).await;
    assert_eq!(sandbox.get(ENDPOINTS).await.json(), json!([]));
    named(&sandbox, "b").await;
    named(&sandbox, "a").await;
    turn(&sandbox, "a", "stop").await;

    let list = sandbox.get(ENDPOINTS).await.json();
    let other = sandbox.send("GET", ENDPOINTS, &OTHER, None).await.json();

    let seen: Vec<(&str, &str)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    assert_eq!(seen, [("a", "stopped"), ("b", "live")]);
    assert_eq!(other, json!([]));
}

// Interface, Errors 404: "eval set, run, task or endpoint id not found"
#[tokio::test]
async fn an_unknown_endpoint_or_one_of_another_organization_is_404_everywhere() {
    let sandbox = Sandbox::start_with(quick()).await;
    named(&sandbox, "mine").await;
    let requests = [
        ("GET", ""),
        ("POST", "/start"),
        ("POST", "/stop"),
        ("DELETE", ""),
        ("GET", "/performance"),
        ("GET", "/uptime"),
        ("GET", "/cost"),
        ("GET", "/quality"),
        ("GET", "/activity"),
        ("POST", "/chat/completions"),
    ];
    for (method, rest) in requests {
        for (name, headers) in [("nobody", &[][..]), ("mine", &OTHER[..])] {
            let path = format!("{ENDPOINTS}/{name}{rest}");
            let body = (method == "POST").then(|| ask("x").to_string().into_bytes());
            let reply = sandbox.send(method, &path, headers, body).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            assert!(reply.json()["detail"].is_string());
        }
    }
    assert_eq!(status(&sandbox, "mine").await, "live");
    assert_eq!(sandbox.get("/v1/endpoints/mine/nothing").await.status, 404);
    let keyless = [("Authorization", "")];
    assert_eq!(
        sandbox.send("GET", ENDPOINTS, &keyless, None).await.status,
        401
    );
}

// Interface, Endpoint status: "`stopped` | POST …/start | `live`, after a warm-up"
#[tokio::test]
async fn a_start_is_live_after_the_warm_up_by_the_clock() {
    let options = Options {
        settings: Settings {
            endpoint_warm_up_ms: 90_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = Sandbox::start_with(options).await;
    named(&sandbox, "mine").await;

    let stopped = turn(&sandbox, "mine", "stop").await;
    assert_eq!(
        (stopped.status, &stopped.json()["status"]),
        (200, &json!("stopped"))
    );
    assert_eq!(
        turn(&sandbox, "mine", "stop").await.json()["status"],
        "stopped"
    );
    let starting = turn(&sandbox, "mine", "start").await;
    assert_eq!(starting.json()["status"], "starting");
    assert_eq!(starting.json()["warm_in_s"], 90);
    sandbox.control("clock", json!({"advance_s": 60})).await;
    // A second start does not restart the warm-up.
    let again = turn(&sandbox, "mine", "start").await.json();
    assert_eq!(again["status"], "starting");
    assert!(again["warm_in_s"].as_u64().unwrap() <= 30);
    sandbox.control("clock", json!({"advance_s": 30})).await;
    assert_eq!(status(&sandbox, "mine").await, "live");
    assert_eq!(
        turn(&sandbox, "mine", "start").await.json()["status"],
        "live"
    );
}

// Interface, Endpoint status: "any | DELETE | removed | permanent"
#[tokio::test]
async fn a_deleted_endpoint_is_gone_from_any_status_and_its_metrics_with_it() {
    let sandbox = Sandbox::start_with(quick()).await;
    for before in ["live", "stop", "start"] {
        let endpoint = named(&sandbox, "mine").await;
        let body = with(ask("rivers"), "model", endpoint["id"].clone());
        assert_eq!(sandbox.post(CHAT, &[], &body).await.status, 200);
        if before != "live" {
            turn(&sandbox, "mine", "stop").await;
        }
        if before == "start" {
            turn(&sandbox, "mine", "start").await;
        }
        let reply = sandbox
            .send("DELETE", "/v1/endpoints/mine", &[], None)
            .await;
        assert_eq!((reply.status, reply.body.len()), (204, 0));
        assert_eq!(sandbox.get("/v1/endpoints/mine").await.status, 404);
        assert_eq!(
            sandbox
                .send("DELETE", "/v1/endpoints/mine", &[], None)
                .await
                .status,
            404
        );
    }
    named(&sandbox, "mine").await;
    let activity = sandbox.get("/v1/endpoints/mine/activity").await.json();
    assert_eq!(
        activity["requests"], 0,
        "a new endpoint of that name begins anew"
    );
}

// Interface, POST /v1/endpoints: "task | catalog subtask id", "model | per-task public alias or `recommended`"
#[tokio::test]
async fn every_task_of_the_catalog_can_be_deployed_and_answers() {
    let sandbox = Sandbox::start_with(quick()).await;
    let tasks = sandbox.get("/v1/tasks").await.json();
    let tasks = tasks["tasks"].as_array().unwrap();
    assert!(tasks.len() >= 12);
    for task in tasks {
        let endpoint = deploy(&sandbox, json!({"task": task["id"]})).await;

        assert_eq!(endpoint["task"], task["id"]);
        let body = with(ask("rivers"), "model", endpoint["id"].clone());
        let reply = sandbox.post(CHAT, &[], &body).await;
        assert_eq!(reply.status, 200, "{}: {}", task["id"], reply.text());
    }
}
