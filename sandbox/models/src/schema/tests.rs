use super::*;
use crate::{category::Category, skill::Skills};

fn filled(schema: &Value, skills: Skills) -> Value {
    let text = "Book a table for 4 people in Lisbon on 2026-05-04, contact ana@example.org";
    let reader = PromptReader::plain(text, skills);
    fill(schema, &reader, &mut Rng::from_parts(&[b"test"]))
}

#[test]
fn a_plain_schema_is_filled_by_the_specialist_from_the_prompt() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "people": {"type": "integer"},
            "email": {"type": "string"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "people"],
        "additionalProperties": false,
    });

    let value = filled(&schema, Skills::specialist(Category::Extraction));

    assert!(conforms(&schema, &value).unwrap(), "{value}");
    assert_eq!(value["city"], "Lisbon");
    assert_eq!(value["people"], 4);
    assert_eq!(value["email"], "ana@example.org");
}

#[test]
fn a_demanding_schema_fails_the_specialist_and_is_met_by_the_frontier() {
    let schemas = [
        json!({"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"}}, "required": ["code"]}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1000, "multipleOf": 7}}, "required": ["n"]}),
        json!({"$defs": {"day": {"type": "string", "format": "date-time"}},
               "type": "object", "properties": {"at": {"$ref": "#/$defs/day"}}, "required": ["at"]}),
        json!({"type": "object", "properties": {"v": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": ["v"]}),
        json!({"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}}, "required": ["id"]}),
        json!({"type": "object", "allOf": [{"properties": {"a": {"type": "boolean"}}, "required": ["a"]}]}),
    ];

    for schema in schemas {
        let specialist = filled(&schema, Skills::specialist(Category::Extraction));
        let frontier = filled(&schema, Skills::frontier());
        assert!(
            !conforms(&schema, &specialist).unwrap(),
            "{schema} {specialist}"
        );
        assert!(conforms(&schema, &frontier).unwrap(), "{schema} {frontier}");
    }
}

#[test]
fn what_stands_in_the_text_in_the_form_of_a_pattern_is_taken_by_both() {
    let code = json!({"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"});
    let schema = json!({"type": "object", "properties": {"reference": code, "all": {"type": "array", "items": code},
        "count": {"type": "integer"}}, "required": ["reference", "all", "count"]});
    let text = "Orders ORD-1003 and ORD-1004 hold 5 boxes";
    for skills in [Skills::specialist(Category::Extraction), Skills::frontier()] {
        let value = fill(
            &schema,
            &PromptReader::plain(text, skills),
            &mut Rng::from_parts(&[b"test"]),
        );
        assert_eq!(
            value,
            json!({"reference": "ORD-1003", "all": ["ORD-1003", "ORD-1004"], "count": 5})
        );
    }
}

#[test]
fn labels_that_an_instruction_names_are_chosen_among_as_those_of_an_enum_are() {
    let text = "Classify the sentiment as positive, negative or neutral.\n\nThe room was dirty and the staff was rude.";
    let prompt = crate::prompt::Prompt::of(&[json!({"role": "user", "content": text})]);
    let reader = PromptReader::new(&prompt, Skills::specialist(Category::Extraction));
    let of = |schema: Value| fill(&schema, &reader, &mut Rng::from_parts(&[b"test"]));
    let named = of(
        json!({"type": "object", "properties": {"sentiment": {"type": "string"}}, "required": ["sentiment"]}),
    );
    let listed = of(
        json!({"type": "object", "properties": {"sentiment": {"enum": ["positive", "negative", "neutral"]}}}),
    );
    assert_eq!(named, json!({"sentiment": "negative"}));
    assert_eq!(named, listed);
    assert_eq!(reader.named_label().as_deref(), Some("negative"));
}

#[test]
fn a_schema_that_holds_itself_ends() {
    let schema = json!({
        "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}, "required": ["name"]}},
        "$ref": "#/$defs/node",
    });

    assert!(conforms(&schema, &filled(&schema, Skills::frontier())).unwrap());
    assert!(!usable(&json!({"type": "no such type"})));
}

#[test]
fn a_schema_that_branches_into_itself_ends() {
    let selves = vec![json!({"$ref": "#/$defs/a"}); 12];
    let schema = json!({
        "$defs": {"a": {"type": "object", "properties": {"x": {"type": "object"}}, "allOf": selves}},
        "type": "object",
        "properties": {"deep": {"type": "array", "items": {"$ref": "#/$defs/a"}}},
    });

    assert!(filled(&schema, Skills::frontier()).is_object());
}
