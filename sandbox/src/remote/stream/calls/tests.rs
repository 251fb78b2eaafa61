use super::*;

fn whole(pieces: &[Value]) -> Option<Vec<(String, String, String)>> {
    let mut calls = Calls::default();
    if !pieces.iter().all(|piece| calls.add(piece)) {
        return None;
    }
    let calls = calls.whole()?.into_iter();
    Some(calls.map(|c| (c.id, c.name, c.arguments)).collect())
}

#[test]
fn pieces_make_whole_calls_as_different_servers_cut_them() {
    let call = |id: &str, arguments: &str| (id.to_owned(), "f".to_owned(), arguments.to_owned());
    let rows = [
        (
            vec![
                json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}),
                json!({"index": 0, "function": {"arguments": "{\"x\""}}),
                json!({"index": 1, "id": "b", "function": {"name": "f", "arguments": "{}"}}),
                json!({"index": 0, "function": {"arguments": ": 1}"}}),
            ],
            Some(vec![call("a", "{\"x\": 1}"), call("b", "{}")]),
        ),
        (
            vec![
                json!({"function": {"name": "f", "arguments": {"x": 1}}}),
                json!({"function": {"name": "f"}}),
            ],
            Some(vec![call("call_0", "{\"x\":1}"), call("call_1", "{}")]),
        ),
        (
            vec![json!({"index": 0, "function": {"arguments": "{}"}})],
            None,
        ),
        (vec![json!({"index": -1, "function": {"name": "f"}})], None),
        (
            vec![json!({"index": 0, "function": {"name": "f", "arguments": 7}})],
            None,
        ),
    ];

    for (pieces, expected) in rows {
        assert_eq!(whole(&pieces), expected, "{pieces:?}");
    }
}

#[test]
fn calls_without_end_are_refused() {
    let mut calls = Calls::default();
    let piece = |index: usize| json!({"index": index, "function": {"name": "f"}});

    assert!((0..CALLS_MAX).all(|index| calls.add(&piece(index))));
    assert!(!calls.add(&piece(CALLS_MAX)));
}
