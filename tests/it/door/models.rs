//! The list of models: as the service has it, by id, with aliases, and in Anthropic's form.

use serde_json::json;

use super::Door;
use crate::support::origin::json as answer_of;
use crate::support::wire::request;
use crate::support::{Bursar, Sandbox, Step, Wire};

const LIST: &str = r#"{"object":"list","data":[{"id":"auto","object":"model","owned_by":"service","created":1700000000,"max_model_len":131072,"context_window":131072}]}"#;

const ANTHROPIC: [(&str, &str); 3] = [
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "a-preview"),
    ("x-api-key", "x"),
];

async fn get(bursar: &Bursar, path: &str) -> crate::support::Answer {
    Wire::tcp(bursar.address).await.get(path).await
}

#[tokio::test]
async fn a_model_is_answered_from_the_services_list() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    for (path, has_size) in [("/v1/models/auto", false), ("/agent/v1/models/auto", true)] {
        let answer = get(&bursar, path).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let model = answer.json();
        assert_eq!(
            (&model["id"], &model["object"]),
            (&json!("auto"), &json!("model"))
        );
        assert_eq!(model["context_window"] == 131072, has_size, "{model}");
    }
    for path in ["/v1/models/gpt-4o", "/agent/v1/models/x"] {
        let answer = get(&bursar, path).await;
        assert_eq!((answer.status, answer.code()), (404, Some("model_unknown")));
        assert_eq!(answer.json()["error"]["code"], "model_unknown");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert!(bursar.entries().is_empty(), "reading is free");
    // What may not be asked for in this way stays as it was.
    let mut wire = bursar.connect().await;
    wire.send(request("POST", "/v1/models/auto", &[], "{}"))
        .await;
    assert_eq!(wire.answer().await.code(), Some("method_refused"));
}

#[tokio::test]
async fn one_model_and_its_head_are_made_of_the_whole_list() {
    let door = Door::open().await;
    for method in ["GET", "HEAD"] {
        door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
        let mut wire = door.bursar.connect().await;
        let headers = [("OpenAI-Organization", "org-1"), ("traceparent", "t")];
        wire.send(request(method, "/agent/v1/models/auto?x=1", &headers, ""))
            .await;
        let answer = match method {
            "GET" => wire.answer().await,
            _ => wire.head_answer().await,
        };
        assert_eq!(answer.status, 200, "{method}");
        let sent = door.origin.received().pop().expect("a request");
        assert_eq!(sent.request_line(), "GET /agent/v1/models HTTP/1.1");
        assert_eq!(
            sent.header("openai-organization"),
            None,
            "account headers do not leave"
        );
        let whole = r#"{"id":"auto","object":"model","owned_by":"service","created":1700000000,"max_model_len":131072,"context_window":131072}"#;
        assert_eq!(
            answer.header("content-length"),
            Some(whole.len().to_string().as_str()),
            "{method}"
        );
        if method == "GET" {
            assert_eq!(answer.text(), whole);
        }
    }
    // The service's refusal is the app's, and a list that is none is no model.
    door.origin
        .push(Step::Answer(answer_of(403, &[], r#"{"detail":"no"}"#)));
    let refused = get(&door.bursar, "/v1/models/auto").await;
    assert_eq!(
        (refused.status, refused.json()["detail"].as_str()),
        (403, Some("no"))
    );
    door.origin.push(Step::Answer(answer_of(200, &[], "{}")));
    let broken = get(&door.bursar, "/v1/models/auto").await;
    assert_eq!(
        (broken.status, broken.code()),
        (502, Some("upstream_broken"))
    );
}

#[tokio::test]
async fn aliases_are_listed_where_that_is_asked_for_with_the_sizes_that_the_service_told() {
    let aliases = "aliases = { \"gpt-4o\" = \"auto\", \"*\" = \"auto\" }\n";
    let door = Door::with(&format!("[models]\n{aliases}")).await;
    door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
    assert_eq!(
        get(&door.bursar, "/agent/v1/models").await.text(),
        LIST,
        "the service's bytes"
    );
    door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
    assert_eq!(
        get(&door.bursar, "/v1/models/gpt-4o").await.code(),
        Some("model_unknown")
    );

    let door = Door::with(&format!("[models]\n{aliases}list = \"aliases\"\n")).await;
    for (path, at) in [
        ("/agent/v1/models", "/data/1"),
        ("/agent/v1/models/gpt-4o", ""),
    ] {
        door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
        let answer = get(&door.bursar, path).await.json();
        let model = answer.pointer(at).expect("an alias");
        assert_eq!(
            (&model["id"], &model["context_window"]),
            (&json!("gpt-4o"), &json!(131072))
        );
        assert!(!answer.to_string().contains('*'), "{answer}");
    }
}

#[tokio::test]
async fn an_alias_is_found_by_its_id_whatever_letters_it_has() {
    let names = [
        "llama3.1:8b",
        "anthropic/claude-x",
        "claude-opus[1m]",
        "a b",
    ];
    let aliases: Vec<String> = names.map(|name| format!("{name:?} = \"auto\"")).to_vec();
    let lines = format!(
        "[models]\naliases = {{ {} }}\nlist = \"aliases\"\n",
        aliases.join(", ")
    );
    let door = Door::with(&lines).await;
    for (path, id) in [
        ("llama3.1:8b", Some(names[0])),
        ("llama3.1%3A8b", Some(names[0])),
        ("anthropic/claude-x", Some(names[1])),
        ("anthropic%2Fclaude-x", Some(names[1])),
        ("claude-opus[1m]", Some(names[2])),
        ("claude-opus%5B1m%5d", Some(names[2])),
        ("a%20b", Some(names[3])),
        ("%C3%A9", None),
        ("anthropic%252Fclaude-x", None),
        ("anthropic/claude-x/y", None),
        ("a%3Fb", None),
    ] {
        for before in ["/v1/models/", "/agent/v1/models/"] {
            door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
            let answer = get(&door.bursar, &format!("{before}{path}")).await;
            match id {
                Some(id) => assert_eq!(answer.json()["id"], id, "{path}: {}", answer.text()),
                None => assert_eq!(answer.code(), Some("model_unknown"), "{path}"),
            }
            let sent = door.origin.received().pop().expect("a request");
            let line = format!("GET {} HTTP/1.1", before.trim_end_matches('/'));
            assert_eq!(sent.request_line(), line, "the id goes nowhere");
        }
    }
}

#[tokio::test]
async fn anthropics_clients_are_given_their_own_form() {
    let door = Door::open().await;
    let ask = async |path: &str, list: Option<&str>| {
        if let Some(list) = list {
            door.origin.push(Step::Answer(answer_of(200, &[], list)));
        }
        door.ask(request("GET", path, &ANTHROPIC, "")).await
    };
    let list = ask("/agent/v1/models?limit=1000", Some(LIST)).await.json();
    assert_eq!(
        (&list["first_id"], &list["has_more"]),
        (&json!("auto"), &json!(false))
    );
    assert_eq!(
        (
            &list["data"][0]["type"],
            &list["data"][0]["max_input_tokens"]
        ),
        (&json!("model"), &json!(131072))
    );
    let sent = door.origin.received().pop().expect("a request");
    assert_eq!(sent.request_line(), "GET /agent/v1/models HTTP/1.1");
    let model = ask("/v1/models/auto", Some(LIST)).await.json();
    assert_eq!(
        (&model["type"], &model["display_name"]),
        (&json!("model"), &json!("auto"))
    );
    let sent_for_one = door.origin.received().pop().expect("a request");
    for (name, _) in ANTHROPIC {
        for sent in [&sent, &sent_for_one] {
            assert_eq!(sent.header(name), None, "it is for Anthropic alone");
        }
    }
    let unknown = ask("/v1/models/claude", Some(LIST)).await;
    assert_eq!(
        (unknown.status, unknown.header("x-bursar-error")),
        (404, Some("model_unknown"))
    );
    assert_eq!(unknown.json()["type"], "error");
    assert_eq!(unknown.json()["error"]["type"], "not_found_error");

    let door = Door::with("[models]\ntranslate = false\n").await;
    door.origin.push(Step::Answer(answer_of(200, &[], LIST)));
    let answer = door.ask(request("GET", "/v1/models", &ANTHROPIC, "")).await;
    assert_eq!(answer.text(), LIST);
}
