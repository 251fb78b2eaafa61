"""Responses that are given while the service writes (`[streams] translated = "live"`), by the unmodified SDK.

Promise: the SDK puts together what the whole answer would have been, text comes in more than one piece, calls come whole,
and the ledger holds the amount of the sandbox's books (compared after every test, key by key).
"""

import asyncio
import json

import pytest
from requests_of_apps import WEATHER

TOOL = {"type": "function", **WEATHER["function"]}


@pytest.fixture
def config():
    return '[streams]\ntranslated = "live"\n'


def test_text_comes_in_pieces_and_the_end_has_the_exact_price(door, client):
    with client.responses.stream(model="auto", input="Describe the capital of Italy.") as events:
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        answer = events.get_final_response()

    assert len(deltas) > 1
    assert answer.status == "completed"
    assert answer.output_text == "".join(deltas)
    assert answer.usage.input_tokens > 0
    [debit] = door.sandbox.books()["debits"]
    assert round(answer.usage.cost * 1e6) == debit["amount_micro_usd"]
    [entry] = door.entries()
    assert (entry["state"], entry["stream"]) == ("settled", True)


def test_a_call_comes_whole_and_its_output_is_answered(client):
    question = [{"role": "user", "content": "What is the weather in Oslo in celsius?"}]
    asked = {"model": "auto", "tools": [TOOL], "tool_choice": "required"}
    with client.responses.stream(input=question, **asked) as events:
        answer = events.get_final_response()
    [call] = [item for item in answer.output if item.type == "function_call"]
    assert json.loads(call.arguments)["city"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "4 degrees"}

    with client.responses.stream(
        model="auto", tools=[TOOL], previous_response_id=answer.id, input=[output]
    ) as events:
        last = events.get_final_response()

    assert last.output_text


def test_an_async_stream_is_read_to_its_end(async_client):
    async def read():
        async with async_client() as client:
            stream = await client.responses.create(model="auto", input="Describe Rome.", stream=True)
            return [event async for event in stream]

    events = asyncio.run(read())

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [events[0].type, events[-1].type] == ["response.created", "response.completed"]
