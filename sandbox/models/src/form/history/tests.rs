use super::*;

const RESUME: &str = "Tilde Aas\n2015-2019 Welder at Varde Steel\nVarde Steel, foreman, 2019 - today\n\
    Diploma in metalwork, Fjord College, 2015\nSkills: welding, crane licence; German";

#[test]
fn jobs_have_their_place_and_years() {
    let found = jobs(RESUME);

    let told: Vec<(&str, &str, Option<i64>, Option<i64>)> = found
        .iter()
        .map(|job| (job.what.as_str(), job.place.as_str(), job.from, job.to))
        .collect();
    assert_eq!(
        told,
        [
            ("Welder", "Varde Steel", Some(2015), Some(2019)),
            ("foreman", "Varde Steel", Some(2019), None)
        ]
    );
}

#[test]
fn education_and_skills_are_no_jobs() {
    let found = education(RESUME);

    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].what.as_str(), found[0].place.as_str(), found[0].to),
        ("Diploma in metalwork", "Fjord College", Some(2015))
    );
    assert_eq!(skills(RESUME), ["welding", "crane licence", "German"]);
    assert!(jobs("I like rivers.").is_empty());
}
