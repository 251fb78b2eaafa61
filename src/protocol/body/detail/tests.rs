use super::*;

#[test]
fn of_a_refusal_its_words_are_read_and_nothing_that_repeats_the_request() {
    let table = [
        (r#"{"detail":"engine fell over"}"#, "engine fell over"),
        (r#"{"error":{"message":"x"},"detail":"a\nb"}"#, "a\nb"),
        (
            r#"{"detail":[{"loc":["body","messages",0,"content"],"type":"missing","msg":"Field required",
                "input":{"secret":"prompt"},"ctx":{"x":1},"url":"https://e"}]}"#,
            "body.messages.0.content Field required (missing)",
        ),
        (
            r#"{"detail":[{"msg":"one"},{"type":"two"},{"loc":["three"]},4,"five",[6],{"msg":7,"loc":"x"},{"loc":[null,{"a":1},-8]}]}"#,
            "one; (two); three; ; ; ; ; ..-8",
        ),
    ];
    for (body, words) in table {
        assert_eq!(detail(body.as_bytes()).as_deref(), Some(words), "{body}");
    }
    let many = format!(
        "{{\"detail\":[{}]}}",
        vec![r#"{"msg":"no"}"#; 5000].join(",")
    );
    assert_eq!(
        detail(many.as_bytes()),
        Some(vec!["no"; ELEMENTS_MAX].join("; "))
    );
}

#[test]
fn what_has_no_words_says_nothing() {
    for body in [
        "",
        "no JSON",
        "[]",
        "{}",
        r#"{"detail":"#,
        r#"{"detail":""}"#,
        r#"{"detail":" "}"#,
        r#"{"detail":null}"#,
        r#"{"detail":5}"#,
        r#"{"detail":{"msg":"an object"}}"#,
        r#"{"detail":[]}"#,
        r#"{"other":{"detail":"inside"}}"#,
    ] {
        assert_eq!(detail(body.as_bytes()), None, "{body}");
    }
    assert_eq!(detail(b"{\"detail\":\"\xff\"}"), None);
}
