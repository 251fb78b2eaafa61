use super::*;

#[test]
fn an_example_matches_its_pattern() {
    for pattern in [
        r"^[A-Z]{3}-\d{4}$",
        r"^(red|green)+(?:,\s?\w+)*$",
        r"^[^a-z]{2,}\.$",
        r"^\+?[1-9]\d{6,14}$",
        r"^$",
        "^[äöü]{3}$",
    ] {
        let regex = regex::Regex::new(pattern).unwrap();
        for seed in 0..20_u8 {
            let made = example(pattern, &mut Rng::from_parts(&[&[seed]]));
            assert!(regex.is_match(&made), "{pattern}: {made}");
        }
    }
}

#[test]
fn what_cannot_be_read_and_what_has_no_end_ends() {
    let rng = &mut Rng::from_parts(&[]);
    assert_eq!(example("(?=a)b", rng), "");
    assert_eq!(example("(", rng), "");
    assert!(example("((a{900}){900}){9}", rng).len() <= LENGTH_MAX + 1);
    assert!(example("(a{999}b{999}){99}", rng).len() <= LENGTH_MAX + 1);
}
