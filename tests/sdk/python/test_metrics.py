"""What Prometheus would read, judged by Prometheus's own tool, after real traffic.

Promise: promtool finds nothing, the shipped alerts fire in their cases, and the billed sum on /metrics is the sum in the sandbox's books.
"""

import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import openai
import pytest
from harness import http
from requests_of_apps import PROMPT


def traffic(client):
    client.chat.completions.create(model="auto", messages=PROMPT)
    list(client.chat.completions.create(model="auto", messages=PROMPT, stream=True))
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-none", messages=PROMPT)


@pytest.fixture
def promtool():
    promtool = shutil.which("promtool")
    if not promtool:
        assert os.environ.get("CI") != "true", "promtool must be there in CI"
        pytest.skip("promtool is not on this machine (scripts/setup-promtool.sh)")
    return promtool


def test_promtool_finds_nothing(door, client, promtool):
    traffic(client)

    done = subprocess.run(
        [promtool, "check", "metrics"], input=door.metrics(), capture_output=True, text=True, timeout=30
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("check", ["check rules grafana/alerts.yml", "test rules grafana/alerts-tests.yml"])
def test_the_shipped_alerts_fire_where_they_should(promtool, check):
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [promtool, *check.split()], cwd=root, capture_output=True, text=True, timeout=30
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_billed_counter_is_the_sum_in_the_books(door, client):
    traffic(client)

    booked = sum(debit["amount_micro_usd"] for debit in door.sandbox.books()["debits"])
    # The text, not a float: the counter is exact to the micro-dollar.
    billed = sum(
        Decimal(line.rsplit(" ", 1)[1])
        for line in door.metrics().splitlines()
        if line.startswith("bursar_billed_usd_total{")
    )
    assert billed * 1_000_000 == booked > 0


def test_the_door_is_healthy_and_ready(door):
    assert http("GET", f"{door.admin}/healthz")
    assert http("GET", f"{door.admin}/readyz")
