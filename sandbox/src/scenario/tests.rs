use super::*;
use crate::settings::RepeatBilled;

#[test]
fn a_scenario_changes_what_it_names_and_nothing_else() {
    let text = r#"
        seed = 7
        [limits]
        in_flight = 2
        [settings]
        repeat_billed = "same"
        [[fault]]
        match = { path = "/v1/chat/completions", stream = false }
        times = 2
        fault = { status = 503, retry_after = "1" }
    "#;

    let options = Scenario::from_toml_str(text)
        .unwrap()
        .apply(Options::default());

    assert_eq!(
        (options.seed, options.in_flight_max, options.per_minute_max),
        (7, 2, 120)
    );
    assert_eq!(options.settings.repeat_billed, RepeatBilled::Same);
    assert_eq!(options.faults.len(), 1);
    assert_eq!(options.api_key, "sandbox-key");
}

#[test]
fn a_misspelt_name_is_refused() {
    assert!(Scenario::from_toml_str("sed = 1").is_err());
    assert!(Scenario::from_toml_str("[[step]]\nat_request = 1\ndo = { wait = 1 }").is_err());
    assert!(Scenario::from_toml_str("[[step]]\ndo = {}").is_err());
    assert!(Scenario::from_toml_str("[[step]]\nat_request = 0\ndo = {}").is_err());
    assert!(Scenario::from_toml_str("[[step]]\nat_s = 0\ndo = {}").is_ok());
    assert!(Scenario::from_toml_str("[[fault]]\nfault = { statsu = 503 }").is_err());
    assert!(Scenario::from_toml_str("[[fault]]\nfault = { status = 99 }").is_err());
    assert!(Scenario::from_toml_str(&format!("balance_micro_usd = {}", i64::MAX)).is_ok());
}
