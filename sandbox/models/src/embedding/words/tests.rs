use super::*;

#[test]
fn words_are_stemmed_and_small_ones_are_marked() {
    let found: Vec<(String, f64)> = words("The Children's last running, naïve!")
        .into_iter()
        .map(|word| (word.stem, word.weight))
        .collect();

    assert_eq!(
        found,
        [
            ("the".to_owned(), STOP),
            ("children".to_owned(), 1.0),
            ("s".to_owned(), STOP),
            ("last".to_owned(), COMMON),
            ("run".to_owned(), 1.0),
            ("naïv".to_owned(), 1.0)
        ]
    );
}

#[test]
fn runs_of_letters_mark_the_ends_of_the_word() {
    assert_eq!(runs_of_letters("cat"), ["^ca", "cat", "at$"]);
    assert_eq!(runs_of_letters("a"), ["^a$"]);
    assert!(runs_of_letters("日本").contains(&"日".to_owned()));
}

#[test]
fn synonyms_share_a_group_and_relatives_a_topic() {
    let of = |word: &str| concepts(&text::stem(word)).to_vec();
    let share = |a: &str, b: &str| of(a).iter().any(|one| of(b).contains(one));

    assert!(share("physician", "doctors"));
    assert!(!share("physician", "automobile"));
    assert_eq!(of("physician")[0].1, of("vaccine")[0].1);
    assert!(of("xylophonist").is_empty());
}

#[test]
fn a_word_of_several_groups_belongs_to_each_once() {
    let lexicon = lexicon("[a]\nbank shore shores\n[b]\nbank money\n");

    let groups: Vec<u32> = lexicon["bank"].iter().map(|c| c.0).collect();
    assert_eq!(groups, [1, 2]);
    assert_eq!(lexicon["shore"].len(), 1);
}
