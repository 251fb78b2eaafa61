use serde_json::{Value, json};

use super::{Asked, NoModel};
use crate::protocol::Dialect;

const LIST: &str = r#"{"data":[{"id":"auto","owned_by":"service","created":1700000000}]}"#;
const AGENT: &str = r#"{"object":"list","data":[{"id":"auto","object":"model","owned_by":"service",
    "created":1700000000,"max_model_len":131072,"context_window":131072}]}"#;

fn asked(id: Option<&str>, dialect: Dialect, aliases: &[(&str, &str)]) -> Asked {
    Asked {
        id: id.map(str::to_owned),
        dialect,
        aliases: aliases
            .iter()
            .map(|(name, target)| ((*name).to_owned(), (*target).to_owned()))
            .collect(),
    }
}

fn answer(asked: &Asked, list: &str) -> Value {
    let answer = asked.answer(list.as_bytes()).expect("an answer");
    serde_json::from_slice(&answer).expect("JSON")
}

#[test]
fn a_model_is_the_services_entry_and_one_that_is_not_listed_is_unknown() {
    let model = answer(&asked(Some("auto"), Dialect::Chat, &[]), LIST);
    let whole =
        json!({"id": "auto", "owned_by": "service", "created": 1700000000, "object": "model"});
    assert_eq!(model, whole);
    for id in ["gpt-4o", "", "AUTO", "*"] {
        let unknown = asked(Some(id), Dialect::Chat, &[]).answer(LIST.as_bytes());
        assert_eq!(unknown, Err(NoModel::Unknown), "{id}");
    }
    for unfit in ["", "[]", "{}", r#"{"data":{}}"#] {
        let answer = asked(Some("auto"), Dialect::Chat, &[]).answer(unfit.as_bytes());
        assert!(matches!(answer, Err(NoModel::Unrendered(_))), "{unfit}");
    }
}

#[test]
fn an_alias_has_what_the_service_told_of_its_target_and_nothing_else() {
    let aliases = [("gpt-4o", "auto"), ("auto", "auto"), ("mine", "elsewhere")];
    let list = answer(&asked(None, Dialect::Chat, &aliases), AGENT);
    let data = list["data"].as_array().expect("a list");
    let ids: Vec<_> = data.iter().map(|model| model["id"].as_str()).collect();
    assert_eq!(ids, [Some("auto"), Some("gpt-4o"), Some("mine")]);
    assert_eq!(
        (&list["object"], &data[1]["context_window"]),
        (&json!("list"), &json!(131072))
    );
    assert_eq!(data[2], json!({"id": "mine", "object": "model"}));
    let list = answer(&asked(None, Dialect::Chat, &aliases), LIST);
    assert_eq!(
        list["data"][1].get("context_window"),
        None,
        "not told, not said"
    );
    let model = answer(&asked(Some("gpt-4o"), Dialect::Chat, &aliases), AGENT);
    assert_eq!(
        (&model["id"], &model["max_model_len"]),
        (&json!("gpt-4o"), &json!(131072))
    );
}

#[test]
fn the_form_of_messages_has_its_own_members() {
    let list = answer(
        &asked(None, Dialect::Messages, &[("claude", "auto")]),
        AGENT,
    );
    let model = |id: &str| {
        json!({"type": "model", "id": id, "display_name": id, "created_at": "2023-11-14T22:13:20Z",
               "max_input_tokens": 131072})
    };
    let whole = json!({"data": [model("auto"), model("claude")], "has_more": false, "first_id": "auto",
                       "last_id": "claude"});
    assert_eq!(list, whole);
    let one = answer(
        &asked(Some("auto"), Dialect::Messages, &[]),
        r#"{"data":[{"id":"auto"}]}"#,
    );
    let epoch = json!({"type": "model", "id": "auto", "display_name": "auto", "created_at": "1970-01-01T00:00:00Z"});
    assert_eq!(one, epoch);
    let none = answer(&asked(None, Dialect::Messages, &[]), r#"{"data":[]}"#);
    assert_eq!(
        none,
        json!({"data": [], "has_more": false, "first_id": null, "last_id": null})
    );
}
