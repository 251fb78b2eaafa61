use super::*;

#[test]
fn a_document_is_read_as_serde_reads_it_but_for_its_numbers() {
    for body in [
        "{}",
        "[]",
        " [ ] ",
        "{ }",
        "7",
        " null\n",
        "\"a\\\"b\\\\\"",
        "[1,[2,{\"a\":[]}],{}]",
        "{\"a\" : {\"b\":\"\\u0061]},{\" } , \"c\" :[true , false]}",
        "{\"a\":1,\"a\":[2]}",
        "[\"ä\",\"\\ud83d\\ude00\"]",
    ] {
        let value: Value = serde_json::from_str(body).unwrap();
        assert_eq!(as_value(&read(body.as_bytes()).unwrap()), value, "{body}");
    }
    for body in [
        "",
        "{",
        "[1,]",
        "{\"a\":1}x",
        "01",
        "\"\\ud800\"",
        "\u{feff}1",
    ] {
        assert_eq!(read(body.as_bytes()), None, "{body}");
    }
    assert_eq!(read("[".repeat(10_000).as_bytes()), None);
}

fn as_value(node: &Node<'_>) -> Value {
    match node {
        Node::Object(members) => members
            .iter()
            .map(|(name, inner)| (name.clone(), as_value(inner)))
            .collect(),
        Node::Array(entries) => entries.iter().map(as_value).collect(),
        Node::Text(text) => Value::String(text.clone()),
        Node::Plain(word) => serde_json::from_str(word).unwrap(),
    }
}
