use super::*;

#[test]
fn a_freeze_names_the_command_that_ends_it() {
    let cases = [
        (None, "nothing more until `bursar fleet thaw`"),
        (
            Some("nightly"),
            "nothing more until `bursar fleet thaw nightly`",
        ),
    ];
    for (app, wanted) in cases {
        let said = frozen(app, true);
        assert!(said.ends_with(wanted), "{said}");
    }
}

#[test]
fn the_document_of_a_thaw_has_what_is_still_frozen() {
    let document = |frozen| OrderDocument {
        order: "thaw",
        app: Some("nightly"),
        changed: true,
        frozen,
    };
    let left = [(None, 1, "alice".to_owned())];
    let left = left.iter().map(FreezeDocument::of).collect();
    let thawed = serde_json::to_value(document(Some(left))).unwrap();
    let all = &thawed["frozen"][0];
    assert_eq!(all["app"], serde_json::Value::Null);
    assert_eq!(all["by"], "alice");
    let order = serde_json::to_value(document(None)).unwrap();
    assert_eq!(order.get("frozen"), None);
}
