use super::*;
use crate::scenario::Scenario;

fn refusal(scenario: &str) -> String {
    let options = Scenario::from_toml_str(scenario)
        .unwrap()
        .apply(Options::default());
    match options.check() {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn contradictory_options_are_refused_with_their_setting_named() {
    let org = |name: &str, key: &str| {
        format!("[[organization]]\nname = \"{name}\"\napi_key = \"{key}\"\n")
    };
    let table = [
        (
            "api_key = \"\"".to_owned(),
            "api_key: a key must not be empty",
        ),
        (
            "api_key = \"a b\"".to_owned(),
            "api_key: a key must not be empty",
        ),
        (
            org("org-2", ""),
            "organization org-2: a key must not be empty",
        ),
        (org("", "k"), "organization: the name must have"),
        (
            org("org-1", "k"),
            "organization org-1: this is the organization of the first",
        ),
        (
            org("a", "k") + &org("a", "l"),
            "organization a: the name stands twice",
        ),
        (
            org("a", "k") + &org("b", "k"),
            "organization b: another organization has this api_key",
        ),
        (
            org("a", "sandbox-key"),
            "organization a: another organization has this api_key",
        ),
        (
            "forbidden_keys = [\"sandbox-key\"]".to_owned(),
            "forbidden_keys: one is the api_key of org-1",
        ),
        (
            "forbidden_keys = [\"k\"]\n".to_owned() + &org("a", "k"),
            "forbidden_keys: one is the api_key of a,",
        ),
        (
            "forbidden_keys = [\"\"]".to_owned(),
            "forbidden_keys: a key must not be empty",
        ),
    ];
    for (scenario, expected) in table {
        let refusal = refusal(&scenario);
        assert!(refusal.starts_with(expected), "{scenario}: {refusal}");
    }
    let fine = "forbidden_keys = [\"x\", \"x\"]\n".to_owned() + &org("a", "k") + &org("b", "l");
    assert_eq!(refusal(&fine), "");
}
