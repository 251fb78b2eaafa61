use super::*;

#[test]
fn the_name_and_the_language_come_from_the_prompt() {
    let rust = write("Write a Rust function that reverses a customer string");
    let python = write("Write a function to compute the factorial of n");

    assert!(
        rust.starts_with("```rust\nfn reverses_customer(text: &str)"),
        "{rust}"
    );
    assert!(python.contains("def compute_factorial(n: int)"), "{python}");
}

fn written(signature: &str, docstring: &str) -> String {
    let given = PromptParts {
        named: vec![
            ("signature".to_owned(), signature.to_owned()),
            ("docstring".to_owned(), docstring.to_owned()),
        ],
        ..PromptParts::default()
    };
    with_signature(&given).unwrap()
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
    assert_eq!(FUNCTIONS.len(), PYTHON.matches("\ndef ").count());
    assert!(FUNCTIONS.len() > 30);
}

#[test]
fn every_block_of_rust_is_a_function_that_some_word_asks_for() {
    for block in RUST.split("\n\n") {
        let (asked_by, code) = block.split_once('\n').unwrap();
        assert!(code.starts_with("fn NAME"), "{block}");
        for word in asked_by.split(' ') {
            assert!(write(&format!("a rust {word}")).contains("(") && word.is_ascii());
        }
    }
    assert!(write("a javascript clock").contains("not written yet"));
    assert!(write("sort the names in rust").contains("items.sort()"));
}
