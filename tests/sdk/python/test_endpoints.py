"""A deployed endpoint as `model` of the unmodified SDK, whole and streamed.

Promise: the answer names the endpoint, a stream comes to its end, and each is one debit; these answers carry no
receipt, so the ledger says "unreported" and never 0.
"""

import json
import urllib.request

import openai
import pytest

NAME = "contacts"
MESSAGES = [{"role": "user", "content": "Extract the email: ada@kite.example"}]


def deploy(door):
    """The names of the events, as they come through bursar."""
    asked = json.dumps({"task": "contact-extraction", "name": NAME}).encode()
    request = urllib.request.Request(f"{door.v1}/endpoints", asked, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


def test_an_endpoint_is_deployed_event_by_event_and_answers_by_its_id(door, client):
    events = deploy(door)
    assert (set(events[:-1]), events[-1]) == ({"progress"}, "complete")

    answer = client.chat.completions.create(model=NAME, messages=MESSAGES, temperature=0)

    assert answer.model == NAME
    assert "ada@kite.example" in answer.choices[0].message.content
    [debit] = door.sandbox.books()["debits"]
    assert debit["amount_micro_usd"] > 0


def test_a_streamed_answer_of_an_endpoint_is_the_whole_one_piece_by_piece(door, client):
    deploy(door)
    whole = client.chat.completions.create(model=NAME, messages=MESSAGES, temperature=0)

    chunks = list(
        client.chat.completions.create(
            model=NAME, messages=MESSAGES, temperature=0, stream=True, stream_options={"include_usage": True}
        )
    )

    assert {chunk.model for chunk in chunks} == {NAME}
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens
    assert len(door.sandbox.books()["debits"]) == 2
    answers = [entry for entry in door.entries() if entry["operation"] == "chat"]
    assert [entry["state"] for entry in answers] == ["unreported", "unreported"]


def test_a_stopped_endpoint_is_503_for_as_long_as_the_sdk_asks(door, client):
    deploy(door)
    client.post(f"/endpoints/{NAME}/stop", cast_to=object)

    with pytest.raises(openai.InternalServerError) as stopped:
        client.with_options(max_retries=0, timeout=5).chat.completions.create(model=NAME, messages=MESSAGES)

    assert stopped.value.status_code == 503
    assert door.sandbox.books()["debits"] == []
