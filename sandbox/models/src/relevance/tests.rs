use super::*;

fn best(query: &str, texts: &[&str], skills: Skills) -> String {
    let items: Vec<Item> = texts
        .iter()
        .map(|text| Item {
            id: (*text).to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    let given = PromptParts {
        named: vec![("query".to_owned(), query.to_owned())],
        ..PromptParts::default()
    };
    order(&given, &items, skills).swap_remove(0)
}

#[test]
fn figures_and_exclusions_of_a_query_are_heard() {
    let all = Skills::frontier();
    let rows = [
        (
            "kettle under 50",
            ["Kettle, steel, 79", "Kettle, steel, 39"],
            1,
        ),
        ("dimmable lamp", ["Lamp, not dimmable", "Lamp, dimmable"], 1),
    ];
    for (query, texts, expected) in rows {
        assert_eq!(best(query, &texts, all), texts[expected], "{query}");
    }
}

#[test]
fn grades_are_in_the_range_and_the_best_has_the_highest() {
    let items = [("a", "Tea from Assam"), ("b", "A bicycle")].map(|(id, text)| Item {
        id: id.into(),
        text: text.into(),
    });
    let given = PromptParts {
        named: vec![("query".to_owned(), "tea".to_owned())],
        ..PromptParts::default()
    };

    let schema = serde_json::json!({"type": "integer", "minimum": 0, "maximum": 3});
    let grades = grades(&given, &items, &schema, Skills::frontier());

    assert_eq!(grades["a"], 3);
    assert!(grades["b"].as_i64().unwrap() < 2);
}
