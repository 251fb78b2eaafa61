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
