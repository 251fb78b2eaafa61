use serde_json::{Value, json};

use super::*;

const AGENT_LIST: &[u8] = br#"{"object":"list","data":[
    {"id":"auto","object":"model","owned_by":"s","created":1730000000,"max_model_len":131072,"context_window":131072},
    {"id":"other","created":"soon","context_window":"wide"}]}"#;

#[test]
fn the_list_says_what_the_service_says() {
    let list: Value = serde_json::from_slice(&list(AGENT_LIST).unwrap()).unwrap();
    let expected = json!({
        "data": [
            {"type": "model", "id": "auto", "display_name": "auto", "created_at": "2024-10-27T03:33:20Z",
             "max_input_tokens": 131_072},
            {"type": "model", "id": "other", "display_name": "other", "created_at": "1970-01-01T00:00:00Z"},
        ],
        "has_more": false,
        "first_id": "auto",
        "last_id": "other",
    });
    assert_eq!(list, expected);
}

#[test]
fn an_empty_list_has_no_first_id() {
    let list: Value = serde_json::from_slice(&list(br#"{"data":[]}"#).unwrap()).unwrap();
    assert_eq!(
        list,
        json!({"data": [], "has_more": false, "first_id": null, "last_id": null})
    );
}

#[test]
fn one_model_is_the_one_that_is_asked_for() {
    let one =
        |id: &str| one(AGENT_LIST, id).map(|one| serde_json::from_slice::<Value>(&one).unwrap());
    assert_eq!(one("auto").unwrap()["max_input_tokens"], 131_072);
    assert_eq!(one("none"), None);
}

#[test]
fn what_is_no_list_is_none() {
    for text in [
        &b"{}"[..],
        b"[]",
        br#"{"data":[{"id":1}]}"#,
        br#"{"data":[{}]}"#,
        b"",
    ] {
        assert_eq!(list(text), None);
    }
}
