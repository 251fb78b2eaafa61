"""Confidence intervals against scipy's bootstrap, and against exact quantiles where they can be had; those of equal
scores, which have nothing to resample, against scipy's interval of Wilson; and all of them against their promise.

Two bootstraps with other random numbers differ; by how much is known without knowing the distribution. The
share of resamples below the true quantile of p has the standard error sqrt(p (1 - p) (1/B + 1/R)), B and R being
the resamples of both sides. So a bound must lie between the reference's quantiles of p - d and p + d with d five of
these: by chance that fails less than once in a million bounds.
"""

import itertools
import math

import numpy as np
import pytest
from cases import TOLERANCE, seeded
from scipy.stats import binom, binomtest, bootstrap, norm

TAIL = 0.025
RESAMPLES = 9_999
REFERENCE_RESAMPLES = 20_000
STANDARD_ERRORS = 5

KINDS = {
    "right or wrong": lambda rng: float(rng.random() < 0.7),
    "mostly right": lambda rng: float(rng.random() < 0.95),
    "quarters": lambda rng: rng.randint(0, 4) / 4,
    "anything": lambda rng: rng.random(),
    "high and low": lambda rng: rng.random() ** 6 if rng.random() < 0.3 else 1 - rng.random() ** 6,
}


def depth(reference_resamples):
    """The `d` of the module's text; 0 resamples for exact quantiles."""
    both = 1 / RESAMPLES + (1 / reference_resamples if reference_resamples else 0)
    return STANDARD_ERRORS * math.sqrt(TAIL * (1 - TAIL) * both)


def assert_is_wilsons(found, scores):
    """Scipy's interval of a share takes whole counts, so that of other shares is worked out from its definition, and
    the definition is held against scipy's where both can be had."""
    count, share = len(scores), scores[0]
    z = norm.ppf(1 - TAIL)
    # The two roots of (share - p)^2 = z^2 p (1 - p) / n, which is what Wilson's interval is.
    low, high = np.roots([1 + z * z / count, -(2 * share + z * z / count), share * share])[::-1]
    if share in (0, 1):
        whole = binomtest(int(share * count), count).proportion_ci(0.95, method="wilson")
        assert abs(whole.low - low) <= TOLERANCE and abs(whole.high - high) <= TOLERANCE
    assert found["mean"] == share
    assert abs(found["low"] - max(low, 0)) <= TOLERANCE, (scores, found, low)
    assert abs(found["high"] - min(high, 1)) <= TOLERANCE, (scores, found, high)


def ordered(found):
    return 0 <= found["low"] <= found["mean"] <= found["high"] <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_scipys_within_the_error_of_both(scorers, kind):
    rng = seeded(kind)
    d = depth(REFERENCE_RESAMPLES)
    for seed in range(25):
        scores = [KINDS[kind](rng) for _ in range(rng.choice([2, 3, 5, 8, 20, 50, 150]))]
        found = scorers.interval(scores, seed)
        assert ordered(found), (scores, found)
        assert abs(found["mean"] - np.mean(scores)) <= TOLERANCE
        if len(set(scores)) == 1:
            assert_is_wilsons(found, scores)
            continue
        means = bootstrap(
            (scores,), np.mean, n_resamples=REFERENCE_RESAMPLES, method="percentile", rng=np.random.default_rng(seed)
        ).bootstrap_distribution
        for name, p in (("low", TAIL), ("high", 1 - TAIL)):
            least = np.quantile(means, p - d, method="lower") - TOLERANCE
            most = np.quantile(means, p + d, method="higher") + TOLERANCE
            assert least <= found[name] <= most, (kind, seed, name, found, least, most, scores)


def test_bounds_of_right_and_wrong_are_those_of_the_binomial(scorers):
    rng = seeded("binomial")
    d = depth(0)
    for seed in range(60):
        count = rng.randint(5, 120)
        right = rng.randint(1, count - 1)
        found = scorers.interval([1.0] * right + [0.0] * (count - right), seed)
        for name, p in (("low", TAIL), ("high", 1 - TAIL)):
            least, most = binom.ppf([p - d, p + d], count, right / count) / count
            assert least - TOLERANCE <= found[name] <= most + TOLERANCE, (count, right, found)


def test_bounds_of_few_scores_are_those_of_every_resample_there_is(scorers):
    rng = seeded("every resample")
    d = depth(0)
    for seed in range(30):
        scores = [rng.random() for _ in range(rng.randint(2, 6))]
        means = np.array([np.mean(one) for one in itertools.product(scores, repeat=len(scores))])
        found = scorers.interval(scores, seed)
        for name, p in (("low", TAIL), ("high", 1 - TAIL)):
            least = np.quantile(means, p - d, method="lower") - TOLERANCE
            most = np.quantile(means, p + d, method="higher") + TOLERANCE
            assert least <= found[name] <= most, (scores, found)


def test_too_few_scores_and_equal_ones(scorers):
    assert scorers.interval([], 1) == {"mean": 0, "low": 0, "high": 1}
    assert scorers.interval([0.4], 1) == {"mean": 0.4, "low": 0, "high": 1}
    for share in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        for count in (2, 3, 7, 20, 100):
            assert_is_wilsons(scorers.interval([share] * count, 1), [share] * count)
    assert scorers.interval([0.2, 0.9, 0.4], 1) == scorers.interval([0.2, 0.9, 0.4], 1)


@pytest.mark.parametrize("right, count", [(0.5, 30), (0.8, 20), (0.9, 10), (0.95, 20), (0.98, 30), (0.05, 20)])
def test_the_true_mean_lies_between_the_bounds_as_often_as_promised(scorers, right, count):
    """Exact: each number of right answers has one interval, and a known chance. The percentile bootstrap itself holds a
    little less than it says for few scores (0.92 for 16 of 20 right); without a width for equal scores it was 0.64."""
    covered = 0.0
    for n in range(count + 1):
        found = scorers.interval([1.0] * n + [0.0] * (count - n), 1)
        if found["low"] - TOLERANCE <= right <= found["high"] + TOLERANCE:
            covered += binom.pmf(n, count, right)
    assert covered >= 0.9, covered
