"""nDCG@10 against scikit-learn's `ndcg_score` and `dcg_score`.

Promise: linear gain, shared places for equal scores and the cut at ten are scikit-learn's, case by case.
"""

import pytest
from cases import agree, seeded
from sklearn.metrics import dcg_score, ndcg_score

CASES = 400


def grades(rng, count):
    return {f"d{at}": rng.randint(0, 4) for at in range(count)}


@pytest.mark.parametrize("ties", [True, False])
def test_scores_by_id_are_scikit_learns(scorers, ties):
    rng = seeded(f"ndcg {ties}")
    cases, wanted = [], []
    for _ in range(CASES):
        expected = grades(rng, rng.randint(2, 25))
        rated = {one: rng.randint(0, 5) if ties else rng.random() for one in expected}
        shuffled = dict(rng.sample(sorted(rated.items()), len(rated)))
        cases.append(({"relevance": expected}, {"relevance": shuffled}))
        wanted.append(ndcg_score([list(expected.values())], [[rated[one] for one in expected]], k=10))
    agree(cases, scorers.rows("ndcg_at_10", cases), wanted)


def test_an_order_is_scored_as_falling_scores(scorers):
    rng = seeded("ndcg order")
    cases, wanted = [], []
    for _ in range(CASES):
        expected = grades(rng, rng.randint(2, 25))
        order = rng.sample(sorted(expected), len(expected))
        cases.append(({"relevance": expected}, {"ranking": order}))
        gains = [expected[one] for one in order]
        wanted.append(ndcg_score([gains], [list(range(len(order), 0, -1))], k=10))
    agree(cases, scorers.rows("ndcg_at_10", cases), wanted)


def dcg(gains):
    """scikit-learn's DCG@10 of gains in this order; it takes no single document, so worthless ones stand behind."""
    padded = [*gains, 0, 0]
    return dcg_score([padded], [list(range(len(padded), 0, -1))], k=10)


def test_missing_and_unknown_ids_are_the_gain_of_what_is_ranked_over_the_best_of_all(scorers):
    rng = seeded("ndcg missing")
    cases, wanted = [], []
    for _ in range(CASES):
        expected = grades(rng, rng.randint(1, 20))
        order = rng.sample(sorted(expected), rng.randint(0, len(expected)))
        for stranger in range(rng.randint(0, 3)):
            order.insert(rng.randint(0, len(order)), f"x{stranger}")
        cases.append(({"relevance": expected}, {"ranking": order}))
        ideal = dcg(sorted(expected.values(), reverse=True))
        got = dcg([expected.get(one, 0) for one in order])
        wanted.append(got / ideal if ideal else 0.0)
    agree(cases, scorers.rows("ndcg_at_10", cases), wanted)
