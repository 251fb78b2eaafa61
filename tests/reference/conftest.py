"""One real `bursar sandbox` for all tests, and its scorers as functions.

Promise: every score in these tests came over HTTP from the program under test.
"""

import pytest
from harness import Sandbox, http

# Rows of one request; the interval that comes with them takes its time in a build for development.
BATCH = 200


class Scorers:
    def __init__(self, url):
        self.url = f"{url}/sandbox/score"

    def rows(self, scorer, cases):
        """The scores of (expected, answer) pairs; an answer that could not be read fails the test."""
        scores = []
        for at in range(0, len(cases), BATCH):
            rows = [{"expected": expected, "answer": answer} for expected, answer in cases[at : at + BATCH]]
            told = http("POST", self.url, {"scorer": scorer, "rows": rows})
            assert told["error_count"] == 0, told["rows"]
            scores += [row["score"] for row in told["rows"]]
        assert len(scores) == len(cases)
        return scores

    def whole(self, scorer, cases):
        """The whole document of one request."""
        rows = [{"expected": expected, "answer": answer} for expected, answer in cases]
        return http("POST", self.url, {"scorer": scorer, "rows": rows})

    def interval(self, scores, seed):
        return http("POST", self.url, {"scores": scores, "seed": seed})["interval"]


@pytest.fixture(scope="session")
def scorers(tmp_path_factory):
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    yield Scorers(sandbox.url)
    sandbox.program.stop()
