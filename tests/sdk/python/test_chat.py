"""`/v1/chat/completions` with the unmodified SDK: answers, streams, tools, receipts in reach of the app.

Promise: an app changes its base URL and nothing else.
"""

import asyncio
import json

from harness import eventually, http
from requests_of_apps import CHAT, PROMPT, WEATHER


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_a_sync_chat_is_answered(client):
    answer = client.chat.completions.create(model="auto", messages=PROMPT)

    assert answer.model == "auto"
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_response_is_answered_whole_and_as_events_at_its_exact_price(door, client):
    whole = client.responses.create(model="auto", input="What is the capital of France?")
    with client.responses.stream(model="auto", input="What is the capital of Italy?") as events:
        deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        streamed = events.get_final_response()

    assert whole.output_text and streamed.output_text == deltas
    debits = [debit["amount_micro_usd"] for debit in door.sandbox.books()["debits"]]
    assert [round(answer.usage.cost * 1e6) for answer in (whole, streamed)] == debits


def test_five_async_chats_at_once_are_five_purchases(door, async_client):
    async def five():
        async with async_client() as client:
            ask = client.chat.completions.create
            return await asyncio.gather(*(ask(model="auto", messages=PROMPT) for _ in range(5)))

    answers = asyncio.run(five())

    assert len({answer.id for answer in answers}) == 5
    assert len(door.sandbox.books()["debits"]) == 5


def test_a_sync_stream_is_read_to_its_end_and_settled(door, client):
    chunks = list(client.chat.completions.create(model="auto", messages=PROMPT, stream=True))

    assert len(chunks) > 2
    assert text_of(chunks)
    [entry] = door.entries()
    assert (entry["state"], entry["stream"]) == ("settled", True)


def test_an_async_stream_is_read_to_its_end(async_client):
    async def read():
        async with async_client() as client:
            stream = await client.chat.completions.create(model="auto", messages=PROMPT, stream=True)
            return [chunk async for chunk in stream]

    assert text_of(asyncio.run(read()))


def test_a_stream_flows_as_it_is_made(door, client):
    # The service makes two chunks and waits. Only a door that passes them on now gets us further.
    door.sandbox.fault(CHAT, hold_after_chunks=2, hold_chunks_name="rest")

    stream = iter(client.chat.completions.create(model="auto", messages=PROMPT, stream=True, timeout=20))
    first = [next(stream), next(stream)]
    door.sandbox.release("rest")
    rest = list(stream)

    assert text_of(first + rest)


def test_a_stream_with_usage_reports_tokens_and_the_ledger_keeps_them(door, client):
    chunks = list(
        client.chat.completions.create(
            model="auto", messages=PROMPT, stream=True, stream_options={"include_usage": True}
        )
    )

    assert chunks[-1].usage.completion_tokens > 0


def test_tool_calls_come_back_in_the_schema_of_the_request(client):
    answer = client.chat.completions.create(
        model="auto",
        messages=[{"role": "user", "content": "What is the weather in Oslo in celsius?"}],
        tools=[WEATHER],
        tool_choice="required",
    )

    call = answer.choices[0].message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    assert call.function.name == "weather"
    assert set(arguments) == {"city", "unit"}
    assert arguments["unit"] in ("celsius", "fahrenheit")


def test_the_receipt_is_in_reach_of_the_app(door, client):
    raw = client.chat.completions.with_raw_response.create(model="auto", messages=PROMPT)

    assert raw.parse().choices[0].message.content
    assert raw.retries_taken == 0
    [entry] = door.entries()
    assert raw.headers["X-Bursar-Entry"] == entry["id"]
    assert int(raw.headers["X-Service-Billed"]) == entry["billed_micro_usd"] > 0


def test_the_price_of_a_stream_is_read_by_its_entry(door, client):
    """As docs/apps.md has it: without a wait, for the entry is written before the stream ends."""
    raw = client.chat.completions.with_raw_response.create(model="auto", messages=PROMPT, stream=True)
    for chunk in raw.parse():
        assert chunk.id
    entry = raw.headers["X-Bursar-Entry"]
    [receipt] = http("GET", f"{door.admin}/api/receipts?id={entry}")["receipts"]

    [debit] = door.sandbox.books()["debits"]
    assert receipt["billed_micro_usd"] == debit["amount_micro_usd"] > 0
    assert receipt["state"] == "settled"


def test_the_models_list_has_the_one_model(client):
    assert [model.id for model in client.models.list()] == ["auto"]


def test_an_app_that_stops_at_the_end_mark_has_its_answer(door, client, agent):
    """The SDK closes its connection as soon as it has read `[DONE]`: that is success, not a loss."""
    for sdk in (client, agent):
        for _ in range(3):
            stream = sdk.chat.completions.create(model="auto", messages=PROMPT, stream=True)
            assert list(stream)
            stream.close()

    eventually("all to be over", lambda: door.metric("bursar_inflight_requests") == 0)
    assert door.metric("bursar_client_disconnects_total") == 0
    assert door.metric("bursar_drains_total") == 0
    assert door.metric("bursar_requests_total", status="200", stream="true") == 6
    assert not any(entry["drained"] for entry in door.entries())
