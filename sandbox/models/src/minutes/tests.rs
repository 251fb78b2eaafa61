use super::*;

const TALK: &str = "Ola: The roof leaks again.\nUNN: I call the roofer by Monday.\nOla: Then we close the attic. Per, move the boxes, please.\nPer: Can you lend me a cart tomorrow, Unn?\nUnn: Sure. I think it is free.";

#[test]
fn who_does_what_until_when_is_told_by_how_it_was_said() {
    let found = actions(TALK, Skills::frontier());

    let told: Vec<(&str, &str, Option<&str>)> = found
        .iter()
        .map(|one| (one.owner.as_str(), one.task.as_str(), one.due.as_deref()))
        .collect();
    assert_eq!(told[0], ("Unn", "Call the roofer", Some("Monday")));
    assert_eq!(told[1], ("Per", "Move the boxes", None));
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(decisions(TALK), ["We close the attic."]);
    assert!(is_conversation(TALK) && !is_conversation("Note: one line\nand more\nand more"));
}
