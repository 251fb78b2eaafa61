"""A door of its own for each test, and the comparison with the books when the test is over.

Promise: whatever a test did, every debit in the sandbox's books has an entry with its key in the
ledger, the settled amounts of a key are exactly its debits, and nothing is left in doubt.
"""

from collections import Counter, defaultdict

import pytest
from harness import Door, Sandbox, eventually
from openai import AsyncOpenAI, OpenAI
from requests_of_apps import NO_KEY


@pytest.fixture
def sandbox(tmp_path):
    sandbox = Sandbox(tmp_path)
    yield sandbox
    sandbox.program.stop()


@pytest.fixture
def config():
    """The text of bursar's configuration file; a module that needs another has a fixture of its own."""
    return ""


@pytest.fixture
def door(tmp_path, sandbox, config):
    door = Door(tmp_path, sandbox, config)
    yield door
    try:
        eventually("ledger and books agree", lambda: ledger_agrees(door))
    except AssertionError as error:
        raise AssertionError(f"{error}\n{door.program.said()}\n{sandbox.program.said()}") from None
    finally:
        door.program.stop()


def ledger_agrees(door):
    """Compares key by key: a sum alone could hide two errors that cancel."""
    entries = defaultdict(list)
    for entry in door.entries():
        entries[entry.get("key")].append(entry)
    booked = Counter()
    for debit in door.sandbox.books()["debits"]:
        booked[debit["key"]] += debit["amount_micro_usd"]
    if door.doubt_allowed:
        return ledger_is_bounded(door, entries, booked)
    unreported = 0
    for key, amount in booked.items():
        assert entries[key], f"a debit without an entry: {key} {amount}"
        if all(entry["state"] == "unreported" for entry in entries[key]):
            unreported += amount
        else:
            known = sum(entry["billed_micro_usd"] or 0 for entry in entries[key])
            assert known == amount, f"ledger {entries[key]}, books {amount}"
    spend = door.spend()
    assert spend["billed_micro_usd"] + unreported == booked.total(), f"ledger {spend}, books {booked}"
    assert (spend["in_doubt"], spend["open"], spend["damaged"]) == (0, 0, 0), spend
    return True


def ledger_is_bounded(door, entries, booked):
    """Where an amount was lost on the wire: settled <= books <= settled + debits of keys in doubt."""
    settled, in_doubt = 0, 0
    for key, amount in booked.items():
        assert entries[key], f"a debit without an entry: {key} {amount}"
        known = sum(entry["billed_micro_usd"] or 0 for entry in entries[key])
        assert known in (0, amount), f"ledger {entries[key]}, books {amount}"
        settled += known
        if any(entry["state"] in ("in_doubt", "unreported") for entry in entries[key]):
            in_doubt += amount
    spend = door.spend()
    assert spend["billed_micro_usd"] == settled, f"ledger {spend}, books {booked}"
    assert settled <= booked.total() <= settled + in_doubt, f"ledger {spend}, books {booked}"
    assert (spend["open"], spend["damaged"]) == (0, 0), spend
    return True


@pytest.fixture
def client(door):
    with OpenAI(base_url=door.v1, api_key=NO_KEY) as client:
        yield client


@pytest.fixture
def agent(door):
    with OpenAI(base_url=door.agent, api_key=NO_KEY) as client:
        yield client


@pytest.fixture
def async_client(door):
    """Makes the client inside the event loop of the test: `async with async_client(...) as client`."""
    return lambda **options: AsyncOpenAI(base_url=door.v1, api_key=NO_KEY, **options)
