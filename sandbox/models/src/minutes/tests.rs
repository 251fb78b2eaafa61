use super::*;

const TALK: &str = "Ola: The roof leaks again.\nUNN: I call the roofer by Monday.\nOla: Then we close the attic. Per, move the boxes, please.\nPer: Can you lend me a cart tomorrow, Unn?\nUnn: Sure. I think it is free.";

#[test]
fn actions_and_decisions_are_found_by_their_wording() {
    let found = actions(TALK, Skills::frontier());

    let values =
        |record: &FieldValues| Vec::from_iter(record.iter().map(|(_, value)| value.clone()));
    assert_eq!(
        values(&found[0]),
        [json!("Unn"), json!("Call the roofer"), json!("Monday")]
    );
    assert_eq!(
        values(&found[1]),
        [json!("Per"), json!("Move the boxes"), json!(null)]
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(decisions(TALK), ["We close the attic."]);
    assert!(is_conversation(TALK) && !is_conversation("Note: one line\nand more\nand more"));
}
