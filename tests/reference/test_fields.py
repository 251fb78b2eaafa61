"""Field F1 and exact match against scikit-learn's f1_score and accuracy_score, arrays against scipy's assignment.

Promise: the reference finds the alignment of arrays by `linear_sum_assignment`, and F1 of flat objects from
sets of leaves; neither knows bursar's code.
"""

import numpy as np
from cases import agree, seeded
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import accuracy_score, f1_score
from test_texts import f1_of_lists

CASES = 500
# No two of them are the same value in another form.
VALUES = [1, 2, 3.5, -4, True, False, "x", "y y", "Zürich", "2026-11-21", "2026-11-22", "007", "8"]
NAMES = list("abcdef")


def flat(rng):
    return {name: rng.choice(VALUES) for name in NAMES if rng.random() < 0.7}


def changed(rng, value):
    """The same value, or with something else in it."""
    if isinstance(value, dict):
        made = {name: changed(rng, one) for name, one in value.items() if rng.random() < 0.9}
        if rng.random() < 0.2:
            made[rng.choice(NAMES)] = rng.choice(VALUES)
        return made
    if isinstance(value, list):
        made = [changed(rng, one) for one in value if rng.random() < 0.85]
        rng.shuffle(made)
        return made
    return rng.choice(VALUES) if rng.random() < 0.25 else value


def nested(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return rng.choice(VALUES)
    if kind < 0.7:
        return [nested(rng, depth - 1) for _ in range(rng.randint(1, 5))]
    return {name: nested(rng, depth - 1) for name in NAMES if rng.random() < 0.5}


def leaves(value):
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    if isinstance(value, list):
        return sum(map(leaves, value))
    return 1


def matched(one, two):
    if isinstance(one, dict) and isinstance(two, dict):
        return sum(matched(one[name], two[name]) for name in one.keys() & two.keys())
    if isinstance(one, list) and isinstance(two, list):
        if not one or not two:
            return 0
        weights = np.array([[matched(first, second) for second in two] for first in one])
        return int(weights[linear_sum_assignment(weights, maximize=True)].sum())
    # True == 1 in Python.
    return int(type(one) is type(two) and not isinstance(one, (dict, list)) and one == two)


def test_flat_objects_are_f1_over_their_leaves(scorers):
    rng = seeded("flat")
    cases, wanted = [], []
    for _ in range(CASES):
        expected = flat(rng)
        answer = changed(rng, expected) if rng.random() < 0.7 else flat(rng)
        cases.append((expected, answer))
        wanted.append(f1_of_lists([(n, repr(v)) for n, v in expected.items()], [(n, repr(v)) for n, v in answer.items()]))
    agree(cases, scorers.rows("field_f1", cases), wanted)
    assert sum(0 < score < 1 for score in wanted) > CASES / 4


def test_arrays_of_values_are_f1_over_multisets(scorers):
    rng = seeded("arrays")
    cases, wanted = [], []
    for _ in range(CASES):
        one = [rng.choice(VALUES) for _ in range(rng.randint(0, 9))]
        two = changed(rng, one)
        cases.append(({"l": one}, {"l": two}))
        wanted.append(f1_of_lists(list(map(repr, one)), list(map(repr, two))))
    agree(cases, scorers.rows("field_f1", cases), wanted)


def test_nested_arrays_are_aligned_as_by_scipy(scorers):
    rng = seeded("nested")
    cases, wanted = [], []
    while len(cases) < CASES:
        expected = {name: nested(rng, 3) for name in NAMES[:3]}
        answer = changed(rng, expected)
        total = leaves(expected) + leaves(answer)
        if total:
            cases.append((expected, answer))
            wanted.append(2 * matched(expected, answer) / total)
    agree(cases, scorers.rows("field_f1", cases), wanted)
    assert sum(0 < score < 1 for score in wanted) > CASES / 4


def test_large_arrays_are_aligned_as_by_scipy(scorers):
    rng = seeded("large")
    cases, wanted = [], []
    for _ in range(20):
        expected = {"l": [flat(rng) for _ in range(40)]}
        answer = changed(rng, expected) or expected
        cases.append((expected, answer))
        wanted.append(2 * matched(expected, answer) / (leaves(expected) + leaves(answer)))
    agree(cases, scorers.rows("field_f1", cases), wanted)


def test_the_exact_match_rate_is_the_accuracy_in_percent(scorers):
    rng = seeded("labels")
    labels = ["refund", "exchange", "lost parcel", "other"]
    for _ in range(20):
        truth = [rng.choice(labels) for _ in range(rng.randint(1, 60))]
        guess = [label if rng.random() < 0.6 else rng.choice(labels) for label in truth]
        told = scorers.whole("exact_match", [({"label": one}, two) for one, two in zip(truth, guess)])
        wanted = accuracy_score(truth, guess)
        agree([truth], [told["exact_match"] / 100], [wanted])
        agree([truth], [told["interval"]["mean"]], [wanted])


def test_the_reference_itself_knows_a_wrong_alignment():
    """A check of the check: taking arrays in order gives another score."""
    one, two = [{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]
    assert matched(one, two) == 2
    assert f1_score([1, 1, 0], [1, 0, 1]) == 0.5
