"""The rows of `bursar ledger export --format focus`, as the FinOps Foundation's validator reads them.

focus-validator 1.0.0 has four columns under other names than FOCUS 1.0 has, and one rule that asks for a column of
0.5. So it reads a copy of the file with those names; the rows are the same.

Promise: the sum of the rows is the ledger's, and the validator is shown to see a row that is wrong.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import focus_validator
import pytest
from harness import BURSAR, ENVIRONMENT, Door, Sandbox, http

ITS_NAMES = {
    "ProviderName": "Provider",
    "PublisherName": "Publisher",
    "InvoiceIssuerName": "InvoiceIssuer",
    "ResourceId": "ResourceID",
}


def buy(door):
    """Calls with a price and without one."""
    chat = {"model": "auto", "messages": [{"role": "user", "content": "What is 2 + 3?"}]}
    for _ in range(3):
        http("POST", f"{door.url}/v1/chat/completions", chat)
    http("POST", f"{door.url}/v1/embeddings", {"model": "auto", "input": "a text"})
    http("POST", f"{door.url}/v1/images/generations", {"prompt": "a house", "model": "auto"})
    http("POST", f"{door.url}/v1/audio/speech", {"text": "Good day."})


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The rows, the counts beside them, the remark, and the ledger's own sums."""
    folder = tmp_path_factory.mktemp("focus")
    sandbox = Sandbox(folder)
    door = Door(folder, sandbox)
    try:
        buy(door)
        path = folder / "bill.csv"
        done = subprocess.run(
            [BURSAR, "ledger", "export", "--format", "focus", "--state-dir", door.state, "--output", path],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        counts = json.loads(Path(f"{path}.counts.json").read_text())
        return rows, counts, done.stderr, door.spend()
    finally:
        door.program.stop()
        sandbox.program.stop()


def verdict(rows, folder):
    """What the validator prints. It looks for its list of currencies below the directory it runs in."""
    path = folder / "copy.csv"
    with path.open("w", newline="") as file:
        names = [ITS_NAMES.get(name, name) for name in rows[0]]
        writer = csv.writer(file)
        writer.writerow([*names, "ChargeType"])
        writer.writerows([*row.values(), row["ChargeCategory"]] for row in rows)
    done = subprocess.run(
        [Path(sys.executable).with_name("focus-validator"), "--data-file", path, "--validate-version", "1.0"],
        cwd=Path(focus_validator.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def micro_usd(cell):
    dollars, parts = cell.split(".")
    assert len(parts) == 6
    return int(dollars) * 1_000_000 + int(parts)


def test_the_rows_pass_the_validator(exported, tmp_path):
    rows, *_ = exported
    said = verdict(rows, tmp_path)
    assert "Validation succeeded." in said, said


def test_the_validator_sees_a_row_that_is_wrong(exported, tmp_path):
    rows, *_ = exported
    wrong = [{**rows[0], "BillingCurrency": "dollars"}, *rows[1:]]
    said = verdict(wrong, tmp_path)
    assert "Validation failed!" in said and "BillingCurrency_IsCurrencyCode failed" in said, said


def test_the_sum_of_the_rows_is_the_ledgers_and_what_has_no_price_is_counted(exported):
    rows, counts, remark, spend = exported
    assert len(rows) == counts["rows"] == 5
    billed = sum(micro_usd(row["BilledCost"]) for row in rows)
    assert billed == counts["billed_micro_usd"] == spend["billed_micro_usd"] > 0
    assert counts["without_a_price"] == {"unreported": 1} and spend["unreported"] == 1
    assert "1 entry is in no row" in remark
