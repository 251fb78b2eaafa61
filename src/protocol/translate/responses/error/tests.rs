//! Error bodies, by where they come from.

use serde_json::json;

use super::super::tests::samples::value;
use super::{body, refused, unrendered};
use crate::protocol::translate::{Unrendered, Untranslatable};

#[test]
fn an_error_has_its_text_where_sdks_look_and_loses_no_member() {
    for (status, from, expected) in [
        (
            404,
            r#"{"detail":"No such model."}"#,
            json!({"error": {"message": "No such model.", "type": "service_error", "param": null, "code": null}, "detail": "No such model."}),
        ),
        (
            402,
            r#"{"detail":"d","error":{"message":"m","type":"bursar_error","param":null,"code":"cap_reached","hint":"h"}}"#,
            json!({"error": {"message": "m", "type": "bursar_error", "param": null, "code": "cap_reached", "hint": "h"}, "detail": "d"}),
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"x"}],"trace":1}"#,
            json!({"error": {"message": r#"[{"loc":["body"],"msg":"x"}]"#, "type": "service_error", "param": null, "code": null}, "detail": [{"loc": ["body"], "msg": "x"}], "trace": 1}),
        ),
        (
            500,
            r#"{"error":"broken"}"#,
            json!({"error": {"message": "broken", "type": "service_error", "param": null, "code": null}}),
        ),
        (
            502,
            "Bad \"gateway\"\n",
            json!({"error": {"message": "Bad \"gateway\"", "type": "service_error", "param": null, "code": null}}),
        ),
        (
            503,
            "",
            json!({"error": {"message": "The service answered with status 503.", "type": "service_error", "param": null, "code": null}}),
        ),
    ] {
        assert_eq!(value(body(status, from.as_bytes())), expected, "{from}");
    }
    let bytes = body(500, b"\xff");
    assert_eq!(
        value(bytes)["error"]["message"],
        "The service answered with status 500."
    );
}

#[test]
fn a_refusal_names_its_path_and_an_answer_that_is_not_kept_has_a_code_of_its_own() {
    let plain = value(refused(&Untranslatable::new(
        "tools[0].name",
        "This is required.",
    )));
    let expected = json!({"message": "This is required.", "type": "invalid_request_error", "param": "tools[0].name", "code": null});
    assert_eq!(plain, json!({"error": expected}));

    let whole = value(refused(&Untranslatable::new("", "No JSON.")));
    assert_eq!(whole["error"]["param"], json!(null));
    let unknown = value(refused(&Untranslatable::new(
        "previous_response_id",
        "Gone.",
    )));
    assert_eq!(unknown["error"]["code"], "previous_response_not_found");
}

#[test]
fn an_answer_that_is_not_rendered_says_so() {
    let body = value(unrendered(&Unrendered::new("No \"choice\".")));
    assert_eq!(body["error"]["message"], "No \"choice\".");
    assert_eq!(body["error"]["code"], "answer_not_renderable");
}
