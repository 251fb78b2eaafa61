"""Word error rate against jiwer, ROUGE-L against Google's rouge_score, token F1 against scikit-learn's f1_score.

Promise: the words of a text are found here by Python's own Unicode tables, never by bursar's rule.
"""

import re
import unicodedata
from collections import Counter

import jiwer
from cases import agree, heard, seeded, sentence
from rouge_score.rouge_scorer import RougeScorer
from sklearn.metrics import f1_score

CASES = 600
WORDS_OF_JIWER = jiwer.Compose(
    [
        jiwer.ToLowerCase(),
        jiwer.RemovePunctuation(),
        jiwer.SubstituteRegexes({r"\s+": " "}),
        jiwer.Strip(),
        jiwer.ReduceToListOfListOfWords(),
    ]
)


def pairs(name, shortest=0):
    """Expected texts and answers: half of them made from the expected one, half of them strangers."""
    rng = seeded(name)
    made = []
    for at in range(CASES):
        expected = sentence(rng, shortest=shortest)
        made.append((expected, heard(rng, expected) if at % 2 else sentence(rng)))
    return made


def as_rows(texts):
    return [({"text": one}, {"text": two}) for one, two in texts]


def f1_of_lists(expected, answer):
    """scikit-learn's binary F1 over multisets: the k-th time that a word stands is a thing of its own."""

    def things(words):
        return {(word, k) for word, n in Counter(words).items() for k in range(n)}

    one, two = things(expected), things(answer)
    union = sorted(one | two)
    if not union:
        return 1.0
    return f1_score([it in one for it in union], [it in two for it in union], zero_division=0.0)


def without_punctuation(text):
    return "".join(letter for letter in text.lower() if not unicodedata.category(letter).startswith("P"))


def test_wer_is_jiwers(scorers):
    texts = pairs("wer")
    wanted = [
        1 - min(1, jiwer.wer(one, two, reference_transform=WORDS_OF_JIWER, hypothesis_transform=WORDS_OF_JIWER))
        for one, two in texts
    ]
    agree(texts, scorers.rows("wer", as_rows(texts)), wanted)
    # Not one case that is decided by the ends alone.
    assert sum(0 < score < 1 for score in wanted) > CASES / 4


def test_token_f1_is_f1_over_the_words_that_are_no_articles(scorers):
    texts = pairs("token f1")

    def words(text):
        return [word for word in without_punctuation(text).split() if word not in ("a", "an", "the")]

    wanted = [f1_of_lists(words(one), words(two)) for one, two in texts]
    agree(texts, scorers.rows("token_f1", as_rows(texts)), wanted)
    assert sum(0 < score < 1 for score in wanted) > CASES / 4


class Runs:
    """A tokenizer for rouge_score, whose own knows ASCII alone."""

    def tokenize(self, text):
        return re.findall(r"[^\W_]+", text.lower())


def test_the_overlap_judge_is_the_mean_of_rouge_l_and_token_f1(scorers):
    rng = seeded("judge")
    # Letters of scripts whose vowel signs are no letters to Python are left to the other tests.
    texts = [(one.replace("हिन्दी", "x"), two.replace("हिन्दी", "x")) for one, two in pairs("judge", shortest=1)]
    rng.shuffle(texts)
    rouge = RougeScorer(["rougeL"], tokenizer=Runs())
    runs = Runs().tokenize
    texts = [(one, two) for one, two in texts if runs(one)]
    wanted = [
        (rouge.score(one, two)["rougeL"].fmeasure + f1_of_lists(runs(one), runs(two))) / 2 for one, two in texts
    ]
    agree(texts, scorers.rows("judge", as_rows(texts)), wanted)
    assert sum(0 < score < 1 for score in wanted) > CASES / 4


def test_punctuation_is_that_of_unicode(scorers):
    """Characters of which Unicode 3.2 and this Python's version say the same: later ones may differ."""
    old = unicodedata.ucd_3_2_0
    letters = [
        chr(code)
        for code in range(0x110000)
        if not 0xD800 <= code < 0xE000
        and (unicodedata.category(chr(code)).startswith("P") or code % 29 == 0 or code < 0x100)
        and unicodedata.category(chr(code)) == old.category(chr(code)) != "Cn"
    ]
    letters = [letter for letter in letters if not letter.isspace() and letter.lower() == letter]
    assert len(letters) > 3000
    # One word either way: the same word when the character is left out, another one when it is kept.
    cases = [({"text": "xy"}, {"text": f"x{letter}y"}) for letter in letters]
    wanted = [float(unicodedata.category(letter).startswith("P")) for letter in letters]
    agree([hex(ord(letter)) for letter in letters], scorers.rows("wer", cases), wanted)
