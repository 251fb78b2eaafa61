use super::{VALUES_MAX, hash_json};

const KEY: [u8; 32] = [7; 32];

fn same(one: &str, two: &str) -> bool {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    hash_json(&KEY, one).expect("JSON") == hash_json(&KEY, two).expect("JSON")
}

#[test]
fn order_and_white_space_do_not_count_and_everything_else_does() {
    let base = r#"{"a":1,"b":[1,{"c":"x","d":null}],"e":{}}"#;
    for equal in [
        "{ \"b\" : [1, {\"d\":null,\n\"c\":\"x\"} ],\t\"e\": { }, \"a\": 1 }\r\n",
        r#"{"\u0061":1,"b":[1,{"c":"\u0078","d":null}],"e":{}}"#,
    ] {
        assert!(same(base, equal), "{equal}");
    }
    for other in [
        r#"{"a":1,"b":[{"c":"x","d":null},1],"e":{}}"#,
        r#"{"a":"1","b":[1,{"c":"x","d":null}],"e":{}}"#,
        r#"{"a":1.0,"b":[1,{"c":"x","d":null}],"e":{}}"#,
        r#"{"a":1,"b":[1,{"c":"x","d":null}],"e":[]}"#,
        r#"{"a":1,"b":[1,{"c":"x","d":null}]}"#,
        r#"{"a":1,"b":[1],"c":"x","d":null,"e":{}}"#,
        r#"{"a":1,"a":1,"b":[1,{"c":"x","d":null}],"e":{}}"#,
        r#"{"b":1,"a":[1,{"c":"x","d":null}],"e":{}}"#,
    ] {
        assert!(!same(base, other), "{other}");
    }
}

#[test]
fn values_do_not_run_into_each_other() {
    for (one, two) in [
        ("[1,2]", "[12]"),
        ("[[],[]]", "[[[]]]"),
        ("[\"a\",\"b\"]", "[\"a,b\"]"),
        ("36893488147419103232", "36893488147419103233"),
        ("0.1", "0.1000000000000000000001"),
        (r#"{"a":" "}"#, r#"{"a":""}"#),
        (r#"{"a":{"b":1}}"#, r#"{"a":1,"b":1}"#),
        (r#""\ud800""#, r#""\ud801""#),
        ("[]", "{}"),
        ("null", "\"null\""),
    ] {
        assert!(!same(one, two), "{one} {two}");
    }
}

#[test]
fn what_is_no_json_has_no_hash() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep = nested(1_000_000);
    assert!(hash_json(&KEY, nested(128).as_bytes()).is_some());
    for body in ["", "{", "{\"a\":1}x", "--boundary\r\n", &deep] {
        assert!(hash_json(&KEY, body.as_bytes()).is_none(), "{body:.20}");
    }
}

/// Else 30 MB of `"":0,` are seconds of a worker's time, for a key that anybody may write.
#[test]
fn a_body_of_very_many_values_is_not_hashed_value_by_value() {
    let repeated = |one: &str, count: usize| vec![one; count].join(",");
    let bodies = |count: usize| {
        [
            format!("{{{}}}", repeated("\"\":0", count)),
            format!("[{}]", repeated("0", count)),
            format!("[{}]", repeated("{}", count)),
            format!("{{\"a\":[{}]}}", repeated("\"x\"", count - 1)),
        ]
    };
    // The object or array around them is one, too.
    for body in bodies(VALUES_MAX - 1) {
        assert!(hash_json(&KEY, body.as_bytes()).is_some(), "{body:.20}");
    }
    for body in bodies(VALUES_MAX) {
        assert!(hash_json(&KEY, body.as_bytes()).is_none(), "{body:.20}");
    }
}

#[test]
fn the_end_of_a_string_is_found_behind_its_escapes() {
    for (one, two) in [
        (r#"["a\\"]"#, r#"["a\\\\"]"#),
        (r#"["\\","b"]"#, r#"["\\\",","b"]"#),
        (r#"{"\"":"\\\"","b":1}"#, r#"{"\"":"\\","b":1}"#),
    ] {
        assert!(same(one, one) && !same(one, two), "{one} {two}");
    }
    assert!(same(r#"{"\"":"\\","b":1}"#, r#"{"b":1,"\u0022":"\u005c"}"#));
}
