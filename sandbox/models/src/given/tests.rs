use super::*;
use serde_json::json;

fn given(text: &str) -> PromptParts {
    PromptParts::of(&Prompt::of(&[json!({"role": "user", "content": text})]))
}

#[test]
fn an_instruction_and_its_material_are_distinguished() {
    let one = given("Summarize the text.\n\nRivers run. They end.");
    assert_eq!(
        (one.instruction.as_str(), one.text.as_str()),
        ("Summarize the text.", "Rivers run. They end.")
    );

    let two = given("Answer.\n\nquestion: Who came?\npassage: Ida came.\nBo did not.");
    assert_eq!(two.question(), "Who came?");
    assert_eq!(two.source(), "Ida came.\nBo did not.");

    let three = given("Extract the email: a@b.example");
    assert_eq!(three.text, "a@b.example");
}

#[test]
fn a_list_is_found_as_json_and_as_marked_lines() {
    let json = given(
        "Rank.\n\nquery: tea\npassages: [{\"id\":\"p1\",\"text\":\"Tea.\"},{\"id\":\"p2\",\"text\":\"Ink.\"}]",
    );
    let lines = given("Rank these for tea.\n\np1: Tea.\np2: Ink.");

    for given in [json, lines] {
        let items = given.items();
        assert_eq!(items.len(), 2, "{given:?}");
        assert_eq!(
            (items[1].id.as_str(), items[1].text.as_str()),
            ("p2", "Ink.")
        );
    }
    assert!(given("Tell me about tea.").items().is_empty());
}
