use super::*;

#[test]
fn words_are_stemmed_and_small_ones_are_marked() {
    let found: Vec<(String, Says)> = words("The Children's last running, naïve!")
        .into_iter()
        .map(|word| (word.stem, word.says))
        .collect();

    assert_eq!(
        found,
        [
            ("the".to_owned(), Says::Nothing),
            ("children".to_owned(), Says::Much),
            ("s".to_owned(), Says::Nothing),
            ("last".to_owned(), Says::Little),
            ("run".to_owned(), Says::Much),
            ("naïv".to_owned(), Says::Much)
        ]
    );
}

#[test]
fn runs_of_letters_mark_the_ends_of_the_word() {
    assert_eq!(runs_of_letters("cat"), ["^ca", "cat", "at$"]);
    assert_eq!(runs_of_letters("a"), ["^a$"]);
    assert!(runs_of_letters("日本").contains(&"日".to_owned()));
}
