use proptest::prelude::*;

use super::*;
use crate::money::MicroUsd;
use crate::protocol::{Reported, Usage};

fn usd(micro_usd: u64) -> Reported<MicroUsd> {
    Reported::Value(MicroUsd::new(micro_usd))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The bytes that `model_span` names.
fn spanned(body: &str) -> Option<&str> {
    RequestPeek::read(body.as_bytes())
        .model_span
        .map(|span| &body[span])
}

#[test]
fn model_and_stream_are_read_from_a_request() {
    // Body; model; bytes of its value; stream.
    let table = [
        (
            r#"{"model":"auto","messages":[],"stream":true}"#,
            Some("auto"),
            Some(r#""auto""#),
            true,
        ),
        (
            r#" { "stream" : false , "model" : "a" } "#,
            Some("a"),
            Some(r#""a""#),
            false,
        ),
        (
            r#"{"messages":[{"model":"x","stream":true}]}"#,
            None,
            None,
            false,
        ),
        (
            r#"{"model":"a\"\u0062"}"#,
            Some("a\"b"),
            Some(r#""a\"\u0062""#),
            false,
        ),
        (r#"{"mod\u0065l":"a"}"#, Some("a"), Some(r#""a""#), false),
        (r#"{"model":null}"#, None, None, false),
        (r#"{"model":7,"stream":1}"#, None, None, false),
        (r#"{"model":["a"],"stream":"true"}"#, None, None, false),
        (
            r#"{"model":"a","model":"b","stream":true}"#,
            Some("b"),
            None,
            true,
        ),
        (
            r#"{"model":"a","x":1,"model":"a","model":"c"}"#,
            Some("c"),
            None,
            false,
        ),
        (r#"{"model":"é"}"#, Some("é"), Some("\"é\""), false),
        ("", None, None, false),
        ("null", None, None, false),
        (r#"["model","auto"]"#, None, None, false),
        (r#"{"model":"auto""#, None, None, false),
        (r#"{"model":"auto"} x"#, None, None, false),
        (r#"{"model":"auto",}"#, None, None, false),
    ];
    for (body, model, span, stream) in table {
        let peek = RequestPeek::read(body.as_bytes());
        assert_eq!(peek.model.as_deref(), model, "{body}");
        assert_eq!(peek.stream, stream, "{body}");
        assert_eq!(spanned(body), span, "{body}");
    }
}

#[test]
fn a_long_model_is_cut_for_the_ledger_and_not_for_the_edit() {
    let long = "é".repeat(500);
    let body = format!(r#"{{"model":"{long}"}}"#);

    let peek = RequestPeek::read(body.as_bytes());

    assert_eq!(peek.model.unwrap().chars().count(), 128);
    assert_eq!(spanned(&body), Some(format!("\"{long}\"").as_str()));
}

#[test]
fn nothing_is_read_from_bytes_that_are_no_json() {
    for body in [
        &b"\xff\xfe"[..],
        b"{\"model\":\"\xff\"}",
        b"--boundary\r\n",
        b"\0",
    ] {
        assert_eq!(RequestPeek::read(body), RequestPeek::default());
        assert_eq!(AnswerPeek::read(body), AnswerPeek::default());
        assert_eq!(add_error_object(body, 500), None);
    }
}

#[test]
fn deep_nesting_does_no_harm() {
    let deep = format!(
        r#"{{"x":{}{},"model":"auto"}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );

    assert_eq!(
        RequestPeek::read(deep.as_bytes()).model.as_deref(),
        Some("auto")
    );
}

#[test]
fn only_the_model_changes() {
    let body = "{ \"a\":1.50,\n\t\"model\" : \"gpt-4o\" , \"z\":[ ] }\n";
    let span = RequestPeek::read(body.as_bytes()).model_span.unwrap();

    let edited = replace_model(body.as_bytes(), span, "auto");

    assert_eq!(text(&edited), body.replace("gpt-4o", "auto"));
}

#[test]
fn a_model_is_written_as_a_json_string() {
    let edited = replace_model(br#"{"model":"a"}"#, 9..12, "q\"\\\n");
    assert_eq!(text(&edited), r#"{"model":"q\"\\\n"}"#);
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that is the case")]
fn a_span_outside_the_body_changes_nothing() {
    for span in [0..99, 90..99, 3..2] {
        assert_eq!(replace_model(b"{}", span, "auto"), b"{}");
    }
}

#[test]
fn usage_is_read_from_a_chat_answer() {
    let answer = AnswerPeek::read(
        br#"{"id":"c","choices":[{"usage":{"prompt_tokens":9}}],"usage":{"prompt_tokens":11,"completion_tokens":4,"total_tokens":15,"details":{"prompt_tokens":1}}}"#,
    );

    assert_eq!(
        answer,
        AnswerPeek {
            usage: Usage {
                prompt_tokens: Some(11),
                completion_tokens: Some(4),
                total_tokens: Some(15),
            },
            ..AnswerPeek::default()
        }
    );
}

#[test]
fn a_count_is_a_plain_integer_or_absent() {
    for count in [
        "1.0",
        "1e3",
        "-1",
        "\"1\"",
        "null",
        "true",
        "[1]",
        "1000000000000000",
    ] {
        let body = format!(r#"{{"usage":{{"prompt_tokens":{count},"total_tokens":3}}}}"#);
        let usage = AnswerPeek::read(body.as_bytes()).usage;
        assert_eq!(usage.prompt_tokens, None, "{count}");
        assert_eq!(usage.total_tokens, Some(3), "{count}");
    }
    for usage in ["null", "[]", "7", "\"x\""] {
        let body = format!(r#"{{"usage":{usage},"cost_micro_usd":2}}"#);
        let answer = AnswerPeek::read(body.as_bytes());
        assert_eq!(answer.usage, Usage::default());
        assert_eq!(answer.cost_micro_usd, usd(2), "the rest is still read");
    }
}

#[test]
fn a_body_amount_is_an_integer_or_not_known() {
    let table = [
        ("0", usd(0)),
        ("1234", usd(1234)),
        ("999999999999999", usd(999_999_999_999_999)),
        ("null", Reported::Absent),
        ("1.0", Reported::Malformed),
        ("1e3", Reported::Malformed),
        ("\"12\"", Reported::Malformed),
        ("-1", Reported::Malformed),
        ("-0", Reported::Malformed),
        ("1000000000000000", Reported::Malformed),
        ("true", Reported::Malformed),
        ("{}", Reported::Malformed),
    ];
    for (cost, expected) in table {
        let body =
            format!(r#"{{"model":"m","content":"c","cost_micro_usd": {cost} ,"latency_ms":5}}"#);
        assert_eq!(
            AnswerPeek::read(body.as_bytes()).cost_micro_usd,
            expected,
            "{cost}"
        );
        let run = format!(r#"{{"run":{{"id":"r","status":"completed","cost_micro_usd":{cost}}}}}"#);
        let run = AnswerPeek::read(run.as_bytes()).run.unwrap();
        assert_eq!(run.cost_micro_usd, expected, "{cost}");
    }
    let none = AnswerPeek::read(br#"{"content":"\"cost_micro_usd\":5","x":{"cost_micro_usd":5}}"#);
    assert_eq!(none.cost_micro_usd, Reported::Absent);
}

#[test]
fn two_different_amounts_in_one_body_are_malformed() {
    let cost = |body: &str| AnswerPeek::read(body.as_bytes()).cost_micro_usd;

    assert_eq!(cost(r#"{"cost_micro_usd":5,"cost_micro_usd":5}"#), usd(5));
    assert_eq!(
        cost(r#"{"cost_micro_usd":null,"cost_micro_usd":5}"#),
        usd(5)
    );
    assert_eq!(
        cost(r#"{"cost_micro_usd":5,"cost_micro_usd":6}"#),
        Reported::Malformed
    );
}

#[test]
fn seconds_of_audio_become_milliseconds_exactly() {
    let table = [
        ("0", Some(0)),
        ("12", Some(12_000)),
        ("12.5", Some(12_500)),
        ("12.3456", Some(12_346)),
        ("12.3454", Some(12_345)),
        ("0.0004", Some(0)),
        ("0.0005", Some(1)),
        ("0.1", Some(100)),
        ("1e3", Some(1_000_000)),
        ("1.5E+1", Some(15_000)),
        ("1500e-3", Some(1_500)),
        ("5e-4", Some(1)),
        ("4e-4", Some(0)),
        ("5e-5", Some(0)),
        ("0.29", Some(290)),
        ("1.005", Some(1_005)),
        ("9007199254.740993", Some(9_007_199_254_741)),
        ("0e999999999999", Some(0)),
        ("1e999999999999", None),
        ("1e-999999999999", Some(0)),
        ("1e99999999999999999999", None),
        ("-1", None),
        ("-0.5", None),
        ("1000000000000", None),
        ("null", None),
        ("\"12\"", None),
        ("[]", None),
    ];
    for (seconds, expected) in table {
        let body = format!(r#"{{"text":"t","duration_s":{seconds}}}"#);
        assert_eq!(
            AnswerPeek::read(body.as_bytes()).audio_ms,
            expected,
            "{seconds}"
        );
    }
}

#[test]
fn a_run_is_read_from_its_envelope() {
    let answer = AnswerPeek::read(
        br#"{"results":[{"cost_micro_usd":1}],"run":{"id":"run_7","eval_set_id":"s","status":"completed","cost_micro_usd":4200,"candidate_models":["auto"]}}"#,
    );

    let run = answer.run.unwrap();
    assert_eq!(
        (run.id.as_str(), run.status.as_str()),
        ("run_7", "completed")
    );
    assert_eq!(run.cost_micro_usd, usd(4200));
    assert!(run.is_terminal());
    assert_eq!(answer.cost_micro_usd, Reported::Absent);

    let created = AnswerPeek::read(br#"{"run_id":"run_7","status":"queued"}"#);
    assert_eq!(created.run_id.as_deref(), Some("run_7"));
    assert_eq!(created.run, None);
}

#[test]
fn a_run_id_that_could_not_stand_in_a_path_is_not_taken() {
    let longest = "r".repeat(128);
    for id in ["run-1", "a.b_c:d", &longest] {
        let body = format!(r#"{{"run_id":"{id}","run":{{"id":"{id}","status":"running"}}}}"#);
        let answer = AnswerPeek::read(body.as_bytes());
        assert_eq!(answer.run_id.as_deref(), Some(id));
        assert!(!answer.run.unwrap().is_terminal());
    }
    let longer = "r".repeat(129);
    for id in [
        "", ".", "..", "a/b", "a?b", "a b", "a%2fb", "é", "a\\nb", &longer,
    ] {
        let body = format!(r#"{{"run_id":"{id}","run":{{"id":"{id}","status":"running"}}}}"#);
        let answer = AnswerPeek::read(body.as_bytes());
        assert_eq!((answer.run_id, answer.run), (None, None), "{id}");
    }
}

#[test]
fn an_error_with_detail_alone_gets_an_error_object() {
    // Body; status; the same with the object.
    let table = [
        (
            r#"{"detail":"no such model"}"#,
            404,
            r#"{"detail":"no such model","error":{"message":"no such model","type":"service_error","code":"not_found","param":null}}"#,
        ),
        (
            "{ \"detail\" : \"a\\n\\\"b\\\"\" , \"x\" : 1 }\n",
            402,
            "{ \"detail\" : \"a\\n\\\"b\\\"\" , \"x\" : 1 ,\"error\":{\"message\":\"a\\n\\\"b\\\"\",\"type\":\"service_error\",\"code\":\"payment_required\",\"param\":null}}\n",
        ),
        (
            r#"{"detail":[{"loc":["body"],"msg":"m"}]}"#,
            422,
            r#"{"detail":[{"loc":["body"],"msg":"m"}],"error":{"message":"[{\"loc\":[\"body\"],\"msg\":\"m\"}]","type":"service_error","code":"unprocessable_entity","param":null}}"#,
        ),
        (
            r#"{"detail":{"a":"}"}}"#,
            429,
            r#"{"detail":{"a":"}"},"error":{"message":"{\"a\":\"}\"}","type":"service_error","code":"too_many_requests","param":null}}"#,
        ),
        (
            r#"{"detail":null}"#,
            503,
            r#"{"detail":null,"error":{"message":"service unavailable","type":"service_error","code":"service_unavailable","param":null}}"#,
        ),
        (
            r#"{"detail":""}"#,
            599,
            r#"{"detail":"","error":{"message":"http 599","type":"service_error","code":"http_599","param":null}}"#,
        ),
    ];
    for (body, status, expected) in table {
        let added = add_error_object(body.as_bytes(), status).unwrap();
        assert_eq!(text(&added), expected);
        let end = body.rfind('}').unwrap();
        assert_eq!(&added[..end], &body.as_bytes()[..end]);
        assert_eq!(add_error_object(&added, status), None, "once is enough");
    }
}

#[test]
fn other_error_bodies_stay_as_they_are() {
    for body in [
        "",
        "null",
        "{}",
        "\"detail\"",
        r#"{"error":{"message":"m"}}"#,
        r#"{"detail":"d","error":{"message":"m"}}"#,
        r#"{"error":null,"detail":"d"}"#,
        r#"{"d\u0065tail":"d","e\u0072ror":1}"#,
        r#"{"message":"m"}"#,
        r#"[{"detail":"d"}]"#,
        r#"{"detail":"d""#,
        r#"{"detail":"d"}}"#,
        "<html>detail</html>",
    ] {
        assert_eq!(add_error_object(body.as_bytes(), 500), None, "{body}");
    }
}

#[test]
fn a_hint_stands_behind_the_services_text() {
    let body = br#"{"detail":"unknown model"}"#;

    let added = add_error_object_with_hint(body, 404, Some("(bursar: set [models] aliases)"));

    let json: serde_json::Value = serde_json::from_slice(&added.unwrap()).unwrap();
    assert_eq!(
        json["error"]["message"],
        "unknown model. (bursar: set [models] aliases)"
    );
    assert_eq!(json["detail"], "unknown model");
}

proptest! {
    #[test]
    fn reading_never_fails(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        RequestPeek::read(&body);
        AnswerPeek::read(&body);
        add_error_object(&body, 500);
    }

    #[test]
    fn an_alias_changes_the_model_and_no_other_member(
        model in any::<String>(), alias in any::<String>(), other in any::<String>(),
    ) {
        let body = serde_json::json!({"a": other, "model": model, "stream": true}).to_string();
        let span = RequestPeek::read(body.as_bytes()).model_span.unwrap();

        let edited = replace_model(body.as_bytes(), span, &alias);

        let expected = serde_json::json!({"a": other, "model": alias, "stream": true}).to_string();
        prop_assert_eq!(text(&edited), expected);
    }
}

#[test]
fn a_cost_is_the_last_member_of_usage_and_every_other_byte_stays() {
    for (body, micro_usd, wanted) in [
        (
            r#"{"usage":{"a":1}}"#,
            420,
            r#"{"usage":{"a":1,"cost":0.000420}}"#,
        ),
        (r#"{"usage":{}}"#, 0, r#"{"usage":{"cost":0.000000}}"#),
        (
            " {\n \"usage\" : { \"a\":1.50 } , \"z\":{\"usage\":{}} }\n",
            1_000_000,
            " {\n \"usage\" : { \"a\":1.50 ,\"cost\":1.000000} , \"z\":{\"usage\":{}} }\n",
        ),
        (
            r#"{"usage":{"a":{"cost":1}}}"#,
            u64::MAX,
            r#"{"usage":{"a":{"cost":1},"cost":18446744073709.551615}}"#,
        ),
    ] {
        let edited = add_usage_cost(body.as_bytes(), MicroUsd::new(micro_usd)).unwrap();
        assert_eq!(text(&edited), wanted);
        serde_json::from_slice::<serde_json::Value>(&edited).unwrap();
        assert_eq!(
            add_usage_cost(&edited, MicroUsd::ZERO),
            None,
            "once is enough"
        );
    }
    for body in [
        "",
        "[]",
        "{}",
        r#"{"usage":null}"#,
        r#"{"usage":[]}"#,
        r#"{"usage":"{}"}"#,
        r#"{"usage":{"a":1}"#,
        r#"{"usage":{"cost":null}}"#,
        r#"{"usage":{"c\u006fst":1}}"#,
        r#"{"usage":{},"usage":{}}"#,
        r#"{"x":{"usage":{}}}"#,
    ] {
        assert_eq!(
            add_usage_cost(body.as_bytes(), MicroUsd::new(1)),
            None,
            "{body}"
        );
    }
}

#[test]
fn usage_in_a_stream_is_asked_for_by_true_alone() {
    for (options, wanted) in [
        (r#"{"include_usage":true}"#, true),
        (r#"{ "x":1, "include_usage" : true }"#, true),
        (r#"{"include_usage":false}"#, false),
        (r#"{"include_usage":"true"}"#, false),
        (r#"{"x":{"include_usage":true}}"#, false),
        ("null", false),
        ("true", false),
    ] {
        let body = format!(r#"{{"stream":true,"stream_options":{options}}}"#);
        let peek = RequestPeek::read(body.as_bytes());
        assert_eq!(peek.wants_usage, wanted, "{options}");
        assert!(peek.stream);
    }
}
