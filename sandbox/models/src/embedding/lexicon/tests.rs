use super::*;

#[test]
fn synonyms_share_a_group_and_relatives_a_topic() {
    let lexicon = Lexicon::get();
    let of = |word: &str| lexicon.concepts(&words::stem(word)).to_vec();
    let share = |a: &str, b: &str| of(a).iter().any(|one| of(b).contains(one));

    assert!(share("physician", "doctors"));
    assert!(!share("physician", "automobile"));
    assert_eq!(of("physician")[0].topic, of("vaccine")[0].topic);
    assert!(of("xylophonist").is_empty());
}

#[test]
fn a_word_of_several_groups_belongs_to_each_once() {
    let lexicon = Lexicon::parse("[a]\nbank shore shores\n[b]\nbank money\n");

    let groups: Vec<u32> = lexicon.concepts("bank").iter().map(|c| c.group).collect();
    assert_eq!(groups, [1, 2]);
    assert_eq!(lexicon.concepts("shore").len(), 1);
}
