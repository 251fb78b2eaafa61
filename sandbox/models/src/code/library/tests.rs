use super::*;

fn written(signature: &str, docstring: &str) -> String {
    let given = Given {
        named: vec![
            ("signature".to_owned(), signature.to_owned()),
            ("docstring".to_owned(), docstring.to_owned()),
        ],
        ..Given::default()
    };
    write(&given, Skills::frontier()).unwrap()
}

#[test]
fn a_function_is_found_by_what_it_does_and_has_the_asked_names() {
    let code = written(
        "def hcf(m, n)",
        "The greatest common divisor of two whole numbers.",
    );

    assert!(code.starts_with("def hcf(m, n):\n"), "{code}");
    assert!(code.contains("m, n = n, m % n"), "{code}");
}

#[test]
fn what_the_library_does_not_have_says_so() {
    let code = written(
        "def paint(fence)",
        "Colours the fence of the neighbour at night.",
    );

    assert_eq!(
        code,
        "def paint(fence):\n    raise NotImplementedError(\"paint\")\n"
    );
}

#[test]
fn every_function_of_the_library_is_read() {
    assert_eq!(FUNCTIONS.len(), LIBRARY.matches("\ndef ").count());
    assert!(FUNCTIONS.len() > 30);
}
