//! WER, token F1 and the judge's overlap of words.

use super::*;

fn t(text: &str) -> Value {
    json!({ "text": text })
}

// Interface, Task: default_scorer, for example WER for transcripts.
#[test]
fn wer_counts_the_least_changes_over_the_words_that_were_said() {
    holds(
        Scorer::Wer,
        &[
            (t("please hold the line"), t("please hold the line"), 1.0),
            // 1 substitution of 4.
            (t("please hold the line"), t("please fold the line"), 0.75),
            // 1 deletion of 4.
            (t("please hold the line"), t("please hold line"), 0.75),
            // 1 insertion of 4.
            (
                t("please hold the line"),
                t("please do hold the line"),
                0.75,
            ),
            // 2 substitutions of 4, not a deletion and an insertion each.
            (t("a b c d"), t("a x y d"), 0.5),
            // Swapped neighbours are 2 changes of 4.
            (t("a b c d"), t("a c b d"), 0.5),
            // 1 deletion in front, 1 insertion behind: 2 of 4.
            (t("a b c d"), t("b c d e"), 0.5),
            // More changes than words are no less than 0: 1 substitution and 3 insertions of 1.
            (t("a"), t("w x y z"), 0.0),
            // Nothing heard: 2 deletions of 2.
            (t("a b"), t(""), 0.0),
            // Nothing said.
            (t(""), t(""), 1.0),
            (t(""), t("a"), 0.0),
            (t("..."), t(""), 1.0),
            // Case, punctuation and white space are no words.
            (t("Well, it's HERE!"), t("well its  here"), 1.0),
            (t("„Über“ – so"), t("über so"), 1.0),
            // A field that is not there is nothing heard.
            (t("a b"), json!({}), 0.0),
            // The text alone.
            (t("a b c d"), json!("a b c"), 0.75),
            // Two fields: the mean of 1 and 0.5.
            (
                json!({"left": "a b", "right": "c d"}),
                json!({"left": "a b", "right": "c x"}),
                0.75,
            ),
        ],
    );
}

#[test]
fn token_f1_counts_shared_words_without_articles_as_often_as_they_stand() {
    holds(
        Scorer::TokenF1,
        &[
            (t("three months"), t("three months"), 1.0),
            (t("The three months."), t("three months"), 1.0),
            (t("An hour"), t("a HOUR"), 1.0),
            // 2 shared of 2 and 4: 2*2/6.
            (t("three months"), t("within three full months"), 2.0 / 3.0),
            // 1 shared of 2 and 1: 2*1/3.
            (t("three months"), t("months"), 2.0 / 3.0),
            // 1 shared of 2 and 2.
            (t("three months"), t("four months"), 0.5),
            (t("three months"), t("a year"), 0.0),
            // Order does not count.
            (t("three months"), t("months three"), 1.0),
            // b stands twice on one side and once on the other: 2 shared of 3 and 2.
            (t("b b c"), t("b c"), 0.8),
            // 1 shared of 1 and 3.
            (t("b"), t("b b b"), 0.5),
            // Nothing but articles is nothing; nothing for nothing is right.
            (t("the"), t("a"), 1.0),
            (t("the"), t("b"), 0.0),
            (t("b"), t(""), 0.0),
            // The best of several acceptable answers: 1/2, 1 and 2*1/3.
            (
                json!({"text": ["four months", "three months", "months"]}),
                t("three months"),
                1.0,
            ),
            (json!({"text": ["x", "y"]}), t("z"), 0.0),
            // A list for a list is one text for another: 1 shared of 2 and 2.
            (
                json!({"text": ["x", "y"]}),
                json!({"text": ["y", "z"]}),
                0.5,
            ),
            // Numbers are words.
            (json!({"text": 1998}), t("in 1998"), 2.0 / 3.0),
        ],
    );
}

#[test]
fn the_overlap_judge_is_the_mean_of_rouge_l_and_token_f1() {
    holds(
        Scorer::Judge,
        &[
            (t("the cat sat"), t("the cat sat"), 1.0),
            (t("The cat -- sat."), t("the cat sat"), 1.0),
            (t("the cat sat"), t("a dog ran"), 0.0),
            // All words, other order: the longest common subsequence is 2 of 3 and 3; (2/3 + 1) / 2.
            (t("x y z"), t("y z x"), (2.0 / 3.0 + 1.0) / 2.0),
            // Backwards: subsequence 1 of 3 and 3; (1/3 + 1) / 2.
            (t("x y z"), t("z y x"), (1.0 / 3.0 + 1.0) / 2.0),
            // Half of the words in order: both 2*2/(4+2).
            (t("w x y z"), t("w y"), 2.0 / 3.0),
            // Twice too long: both 2*2/(2+4).
            (t("x y"), t("x y u v"), 2.0 / 3.0),
            // One of two: both 2*1/(2+2).
            (t("x y"), t("x u"), 0.5),
            (t("x"), t(""), 0.0),
            (t(""), t(""), 1.0),
            (t(""), t("x"), 0.0),
            // Code: signs split words and are none.
            (t("median(xs)"), t("median( xs )"), 1.0),
            // `def f x return x` and `def f y return y`: 3 of 5 and 5 in order, 3 shared.
            (t("def f(x): return x"), t("def f(y): return y"), 0.6),
            // Lists and objects are their texts: subsequence and words 2 of 2 and 2.
            (
                json!({"items": [{"who": "Ben", "what": "call"}]}),
                json!({"items": ["Ben", "call"]}),
                1.0,
            ),
            // The mean over two fields: 1 and 0.
            (
                json!({"summary": "x y", "decisions": ["z"]}),
                json!({"summary": "x y"}),
                0.5,
            ),
        ],
    );
}

#[test]
fn texts_without_an_object_for_several_fields_or_with_too_many_words_have_a_reason() {
    let two = json!({"a": "x", "b": "y"});
    for scorer in [Scorer::Wer, Scorer::TokenF1, Scorer::Judge] {
        refuses(scorer, &two, &json!("x y"), "no JSON object");
        refuses(scorer, &json!({}), &json!({}), "holds nothing");
        let long = "x ".repeat(WORDS_MAX + 1);
        refuses(scorer, &t("x"), &t(&long), "16385 words; 16384");
    }
}

#[test]
fn punctuation_is_what_unicode_calls_so() {
    for letter in "!\"#%&'()*,-./:;?@[\\]_{}¡«»–—‘’“”…、。「」！？".chars() {
        assert_eq!(
            words::words(&format!("a{letter}b")).unwrap(),
            ["ab"],
            "{letter}"
        );
    }
    for letter in "$+<=>^`|~€©°aé漢\u{301}".chars() {
        let kept = format!("a{letter}b");
        assert_eq!(words::words(&kept).unwrap(), [kept], "{letter}");
    }
}
