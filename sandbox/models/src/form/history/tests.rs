use super::*;

const RESUME: &str = "Tilde Aas\n2015-2019 Welder at Varde Steel\nVarde Steel, foreman, 2019 - today\n\
    Diploma in metalwork, Fjord College, 2015\nSkills: welding, crane licence; German";

fn values(record: &FieldValues) -> Vec<serde_json::Value> {
    record.iter().map(|(_, value)| value.clone()).collect()
}

#[test]
fn jobs_have_their_place_and_years() {
    let found: Vec<_> = jobs(RESUME).iter().map(values).collect();

    assert_eq!(
        found,
        [
            [
                json!("Welder"),
                json!("Varde Steel"),
                json!(2015),
                json!(2019)
            ],
            [
                json!("foreman"),
                json!("Varde Steel"),
                json!(2019),
                json!(null)
            ]
        ]
    );
}

#[test]
fn education_and_skills_are_no_jobs() {
    let found: Vec<_> = education(RESUME).iter().map(values).collect();

    let degree = json!("Diploma in metalwork");
    assert_eq!(
        found,
        [[degree, json!("Fjord College"), json!(null), json!(2015)]]
    );
    assert_eq!(skills(RESUME), ["welding", "crane licence", "German"]);
    assert!(jobs("I like rivers.").is_empty());
}
