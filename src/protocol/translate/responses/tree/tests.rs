use super::*;

const SHAPE: &[(&str, Shape)] = &[(
    "list",
    Shape::List(&Shape::Object(&[("inner", Shape::Object(&[]))])),
)];

fn written(json: &str) -> Option<String> {
    let mut out = String::new();
    Tree::read(json, SHAPE)?.write(&mut out);
    Some(out)
}

#[test]
fn what_is_read_is_written_as_it_came() {
    for json in [
        "{}",
        r#"{"a":1.0e5,"b":"\u00e9\ud800","list":[]}"#,
        r#"{"list":[{"inner":{"x":[1, 2],"y":{}},"z":"\n"},{}],"b":null}"#,
    ] {
        assert_eq!(written(json).as_deref(), Some(json));
    }
    assert_eq!(
        written(r#" { "list" : [ { } ] } "#).as_deref(),
        Some(r#"{"list":[{}]}"#)
    );
}

#[test]
fn what_is_no_object_is_not_read() {
    for json in [
        "",
        "[]",
        "null",
        "\"x\"",
        "{",
        "{} {}",
        r#"{"list":[{"inner":{]}]}"#,
    ] {
        assert!(Tree::read(json, SHAPE).is_none(), "{json}");
    }
    let many: Vec<String> = (0..=MEMBERS_MAX)
        .map(|number| format!("\"{number}\":0"))
        .collect();
    assert!(Tree::read(&format!("{{{}}}", many.join(",")), SHAPE).is_none());
}

#[test]
fn the_last_of_two_members_counts_and_null_is_absent() {
    let tree = Tree::read(
        r#"{"a":1,"a":2,"b":3,"b":null,"list":[{}],"list":null}"#,
        SHAPE,
    );
    let tree = tree.expect("an object");
    assert_eq!(tree.text("a").map(RawValue::get), Some("2"));
    assert!(tree.get("b").is_none() && tree.get("list").is_none());
}

#[test]
fn another_form_than_the_shape_says_is_none_of_it() {
    for value in ["1", "-1", "1.5", "true", "\"x\"", "{\"a\":[[]]}"] {
        let json = format!("{{\"list\":{value}}}");
        let tree = Tree::read(&json, SHAPE).expect("an object");
        assert!(
            tree.list("list").is_none() && tree.get("list").is_some(),
            "{value}"
        );
        let json = format!("{{\"list\":[{{\"inner\":[{value}]}},{value}]}}");
        let tree = Tree::read(&json, SHAPE).expect("an object");
        let list = tree.list("list").expect("a list");
        let first = list[0].object().expect("an object");
        assert!(
            first.object("inner").is_none() && first.get("inner").is_some(),
            "{value}"
        );
    }
}

#[test]
fn it_is_read_no_deeper_than_its_shape() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let json = format!(r#"{{"list":[{{"inner":{{"x":{deep}}}}}],"y":{deep}}}"#);
    assert_eq!(written(&json), Some(json));
}
