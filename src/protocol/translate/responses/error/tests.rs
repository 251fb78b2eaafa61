//! Error bodies, by where they come from.

use serde_json::json;

use super::super::tests::samples::value;
use super::body;

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
