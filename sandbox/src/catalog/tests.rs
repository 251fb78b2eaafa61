//! Compares the catalog with its own statements.

use super::*;
use super::{found::MatchKind, matching::by_words};
use crate::models::Category;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::collections::BTreeSet;

fn blob_of(task: &Task, row: &GoldenRow) -> (String, Vec<u8>) {
    let field = task.blob_field.as_ref().unwrap();
    let url = row.input[field].as_str().unwrap();
    let (mime, encoded) = url
        .strip_prefix("data:")
        .and_then(|url| url.split_once(";base64,"))
        .unwrap();
    (mime.to_owned(), STANDARD.decode(encoded).unwrap())
}

#[test]
fn every_file_of_the_catalog_is_a_task_of_that_id() {
    let ids: Vec<&str> = tasks().iter().map(|task| task.id.as_str()).collect();
    let files: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();

    assert_eq!(ids, files);
    assert!(ids.len() >= 12);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

// Interface, Task: gold_schema, JSON Schema
#[test]
fn every_golden_row_conforms_to_its_schemas() {
    for task in tasks() {
        let schema = &task.gold_schema;
        assert!(
            jsonschema::draft202012::meta::is_valid(schema),
            "{}",
            task.id
        );
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(schema)
            .unwrap();
        assert!((6..=10).contains(&task.examples.len()), "{}", task.id);
        for (at, row) in task.examples.iter().enumerate() {
            let gold = Value::Object(row.expected_output.clone());
            let wrong: Vec<String> = validator
                .iter_errors(&gold)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(wrong, Vec::<String>::new(), "{} row {at}", task.id);
        }
    }
}

#[test]
fn every_schema_refuses_what_is_no_answer() {
    for task in tasks() {
        let validator = jsonschema::draft202012::new(&task.gold_schema).unwrap();
        assert!(!validator.is_valid(&json!({})), "{}", task.id);
        let mut more = Value::Object(task.examples[0].expected_output.clone());
        more["beside_the_point"] = json!(1);
        assert!(!validator.is_valid(&more), "{}", task.id);
    }
}

// Interface, Task: output_schema, "the shape of expected_output when output_schema_role is gold; a
// human-readable summary when summary"
#[test]
fn an_output_schema_is_the_gold_schema_or_says_every_field_of_it_in_words() {
    let mut roles = BTreeSet::new();
    for task in tasks() {
        roles.insert(format!("{:?}", task.output_schema_role));
        match task.output_schema_role {
            SchemaRole::Gold => assert_eq!(task.output_schema, task.gold_schema),
            SchemaRole::Summary => {
                let fields: BTreeSet<&String> = task.gold_schema["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .collect();
                let described = task.output_schema.as_object().unwrap();
                assert_eq!(
                    described.keys().collect::<BTreeSet<_>>(),
                    fields,
                    "{}",
                    task.id
                );
                assert!(
                    described
                        .values()
                        .all(|words| words.as_str().unwrap().len() > 8)
                );
            }
        }
    }
    assert_eq!(roles.len(), 2);
}

#[test]
fn every_family_of_work_and_every_scorer_occurs() {
    let of = |field: fn(&Task) -> &str| tasks().iter().map(field).collect::<BTreeSet<_>>();

    assert_eq!(
        of(|task| &task.default_scorer),
        BTreeSet::from([
            "exact_match",
            "field_f1",
            "judge",
            "ndcg_at_10",
            "token_f1",
            "wer"
        ])
    );
    assert_eq!(
        of(|task| &task.scoring_strategy),
        BTreeSet::from([
            "classification",
            "extraction",
            "generation",
            "question_answering",
            "ranking",
            "summarization",
            "transcription"
        ])
    );
    assert!(of(|task| &task.family).len() >= 6);
    for task in tasks() {
        // Speech has a lane of its own, which no category of the router names.
        let routed = Category::by_name(&task.category).is_some();
        assert!(routed || task.category == "transcription", "{}", task.id);
        assert!(
            task.family.bytes().all(|b| b.is_ascii_lowercase()),
            "{}",
            task.id
        );
        assert!(task.synonyms.len() >= 3, "{}", task.id);
        assert!(task.instruction.ends_with('.') && task.description.ends_with('.'));
        assert!(!task.title.is_empty());
    }
}

#[test]
fn what_was_benchmarked_stands_in_the_roster_and_can_see_where_that_is_needed() {
    for task in tasks() {
        assert!(!task.benchmarked.is_empty(), "{}", task.id);
        assert!(
            task.benchmarked.len() < roster::roster().len() || !task.has_blob_input,
            "{}",
            task.id
        );
        for id in &task.benchmarked {
            let model = roster::by_id(id).unwrap();
            assert!(model.vision || !task.has_blob_input, "{}: {id}", task.id);
        }
    }
}

// Interface, Task: has_blob_input
#[test]
fn a_row_of_a_blob_task_carries_a_whole_file_and_no_other_row_does() {
    let mut kinds = BTreeSet::new();
    for task in tasks() {
        assert_eq!(task.has_blob_input, task.blob_field.is_some());
        for row in &task.examples {
            if !task.has_blob_input {
                let text = serde_json::to_string(&row.input).unwrap();
                assert!(!text.contains("data:") && !text.contains("\"$"), "{text}");
                continue;
            }
            let (mime, bytes) = blob_of(task, row);
            match mime.as_str() {
                "application/pdf" => {
                    assert!(bytes.starts_with(b"%PDF-1.4") && bytes.ends_with(b"%%EOF\n"));
                }
                "image/png" => {
                    let picture = image::load_from_memory(&bytes).unwrap();
                    assert!(picture.width() > 200 && picture.height() > 150);
                }
                "audio/wav" => {
                    assert_eq!((&bytes[..4], &bytes[8..12]), (&b"RIFF"[..], &b"WAVE"[..]));
                    let size = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
                    assert_eq!(size as usize + 8, bytes.len());
                }
                other => panic!("{other}"),
            }
            kinds.insert(mime);
        }
    }
    assert_eq!(kinds.len(), 3);
}

#[test]
fn the_line_items_of_every_golden_invoice_make_its_total() {
    for row in &task("invoice-extraction").unwrap().examples {
        let cents = |amount: &Value| (amount.as_f64().unwrap() * 100.0).round() as i64;
        let items = row.expected_output["line_items"].as_array().unwrap();
        let sum: i64 = items.iter().map(|item| cents(&item["amount"])).sum();
        assert_eq!(sum, cents(&row.expected_output["total"]));
    }
}

#[test]
fn the_answers_of_document_questions_stand_on_the_page() {
    let task = task("document-questions").unwrap();
    for row in &task.examples {
        let (_, bytes) = blob_of(task, row);
        let page = String::from_utf8(bytes).unwrap().to_lowercase();
        let answer = row.expected_output["answer"].as_str().unwrap();
        assert!(page.contains(&answer.to_lowercase()), "{answer}");
    }
}

#[test]
fn every_label_of_a_classification_is_used_by_a_golden_row() {
    for task in tasks().iter().filter(|task| task.family == "classify") {
        let labels = task.gold_schema["properties"]["label"]["enum"].as_array();
        for label in labels.unwrap() {
            let used = |row: &GoldenRow| &row.expected_output["label"] == label;
            assert!(task.examples.iter().any(used), "{}: {label}", task.id);
        }
    }
}

#[test]
fn every_golden_passage_has_a_grade_and_the_best_stands_out() {
    for (id, field) in [
        ("search-ranking", "passages"),
        ("product-ranking", "products"),
    ] {
        for row in &task(id).unwrap().examples {
            let ids: BTreeSet<&str> = row.input[field]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["id"].as_str().unwrap())
                .collect();
            let grades = row.expected_output["relevance"].as_object().unwrap();
            assert_eq!(
                grades.keys().map(String::as_str).collect::<BTreeSet<_>>(),
                ids
            );
            assert_eq!(grades.values().filter(|grade| **grade == 3).count(), 1);
        }
    }
}

#[test]
fn nothing_in_the_golden_sets_is_an_address_of_somebody() {
    for task in tasks() {
        let rows: String = task
            .examples
            .iter()
            .map(|row| json!(row).to_string())
            .collect();
        for word in rows.split(|c: char| c.is_whitespace() || "\"<>()|,\\".contains(c)) {
            let Some((_, host)) = word.split_once('@') else {
                continue;
            };
            assert!(
                host.trim_end_matches('.').ends_with(".example"),
                "{}: {word}",
                task.id
            );
        }
    }
}

#[test]
fn every_task_is_found_by_its_own_title_and_description() {
    for task in tasks() {
        for text in [&task.title, &task.description] {
            let found = by_words(text, 5);
            let chosen = found.chosen.unwrap();
            assert_eq!(
                (found.kind, &chosen.task_id),
                (MatchKind::Task, &task.id),
                "{text}"
            );
        }
    }
}

#[test]
fn every_lane_is_found_by_its_own_words_and_what_no_lane_does_by_its() {
    for lane in lanes::capabilities() {
        let found = by_words(&format!("{}: {}", lane.label, lane.words[0]), 5);
        assert_eq!(
            found.capability.map(|one| one.id),
            Some(lane.id),
            "{}",
            lane.id
        );
    }
    for beyond in lanes::beyond() {
        let found = by_words(&format!("{}: {}", beyond.label, beyond.words[0]), 5);
        assert_eq!(found.kind, MatchKind::Unsupported, "{}", beyond.label);
    }
}

#[test]
fn any_mixture_of_words_has_ranked_scores_between_zero_and_one() {
    let all: Vec<&str> = FILES
        .iter()
        .flat_map(|(_, text)| text.split_whitespace())
        .collect();
    let mut state = 7_usize;
    let mut dice = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };

    for _ in 0..500 {
        let words: Vec<&str> = (0..=dice(30)).map(|_| all[dice(all.len())]).collect();
        let found = by_words(&words.join(" "), 50);
        let scores: Vec<f64> = found.candidates.iter().map(|one| one.score).collect();
        assert!(
            scores.iter().all(|score| (0.0..=1.0).contains(score)),
            "{words:?}"
        );
        assert!(scores.is_sorted_by(|a, b| a >= b), "{words:?}");
        assert_eq!(found.chosen.is_some(), found.kind == MatchKind::Task);
        assert_eq!(
            found.capability.is_some(),
            found.kind == MatchKind::Capability
        );
    }
}
