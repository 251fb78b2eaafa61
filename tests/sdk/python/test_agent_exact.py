"""Streamed agent turns with `[streams] agent_receipts = "exact"`, by the unmodified SDK.

Why: the stream is made by bursar from a whole turn, and the SDK is the judge of its form. Promise: what
the SDK puts together has the form of what it gets without a stream, and the ledger holds the amount of
the sandbox's books (compared after every test, key by key).
"""

import asyncio
import json

import openai
import pytest
from openai import AsyncOpenAI
from requests_of_apps import AGENT_CHAT, NO_KEY, WEATHER

QUESTION = [{"role": "user", "content": "What is the weather in Oslo in celsius?"}]
# The previous major of the SDK has its helper for strict tools only.
STRICT = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}
TOOLS = {"tools": [STRICT], "tool_choice": "required"}
HARD = {"messages": [{"role": "user", "content": "hard: prove it"}]}


@pytest.fixture
def config():
    return '[streams]\nagent_receipts = "exact"\n'


def asked(wish):
    return {"model": "auto", "messages": QUESTION, **wish}


def settled(door, count=1):
    """The entries, each with the exact amount of its debit."""
    entries = door.entries()
    debits = {debit["key"]: debit for debit in door.sandbox.books()["debits"]}
    assert len(entries) == count
    for entry in entries:
        assert entry["state"] == "settled"
        assert entry["stream"] is True
        assert entry["billed_micro_usd"] == debits[entry["key"]]["amount_micro_usd"] > 0
    return entries


def shape(message):
    """The message without what differs from turn to turn: each run has ids and words of its own."""
    plain = message.model_dump(exclude_none=True)
    for call in plain.get("tool_calls") or []:
        call.pop("id")
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
        call["function"]["arguments"] = sorted(json.loads(call["function"]["arguments"]))
    plain.pop("parsed", None)
    if isinstance(plain.get("content"), str):
        plain["content"] = type(plain["content"]).__name__
    if not plain.get("tool_calls"):
        plain.pop("tool_calls", None)
    return plain


def assembled(chunks):
    """By hand, as programs do that read chunks."""
    content, calls, finish = "", {}, None
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                held = calls.setdefault(call.index, {"id": None, "name": None, "arguments": ""})
                held["id"] = call.id or held["id"]
                held["name"] = call.function.name or held["name"]
                held["arguments"] += call.function.arguments or ""
    return content, list(calls.values()), finish


@pytest.mark.parametrize("wish", [{}, TOOLS, HARD, {"max_tokens": 3}])
def test_a_stream_says_what_a_whole_turn_says(door, agent, wish):
    chunks = list(agent.chat.completions.create(**asked(wish), stream=True))

    content, calls, finish = assembled(chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    if wish is TOOLS:
        assert [call["name"] for call in calls] == ["weather"]
        assert set(json.loads(calls[0]["arguments"])) == {"city", "unit"}
        assert finish == "tool_calls"
    else:
        assert content
        assert finish == ("length" if "max_tokens" in wish else "stop")
    [entry] = settled(door)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == entry["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize("wish", [{}, TOOLS, HARD])
def test_the_stream_helper_puts_the_message_together(door, agent, wish):
    with agent.chat.completions.stream(**asked(wish)) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_completion()

    settled(door)
    whole = agent.chat.completions.create(**asked(wish))
    assert shape(final.choices[0].message) == shape(whole.choices[0].message)
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason
    assert final.model == whole.model
    assert final.usage.total_tokens > 0
    done = "tool_calls.function.arguments.done" if wish is TOOLS else "content.done"
    assert done in events


CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
    {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
]
LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.25, "bytes": [72, 105], "top_logprobs": []}], "refusal": None}


@pytest.mark.parametrize(
    ("message", "more"),
    [
        ({"content": "Hi"}, {}),
        ({"content": "Zürich 🦀\n" * 5000}, {}),
        ({"content": "Hi"}, {"logprobs": LOGPROBS}),
        ({"content": None, "refusal": "I will not."}, {}),
        ({"content": None, "tool_calls": CALLS}, {"finish_reason": "tool_calls"}),
        ({"content": "Both.", "tool_calls": CALLS[:1]}, {"finish_reason": "tool_calls"}),
        ({"content": "42", "reasoning_content": "Six times seven.", "novelty": {"a": [1.5, None]}}, {}),
    ],
)
def test_the_message_put_together_equals_the_whole_one(door, agent, sandbox, message, more):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **more}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    body = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "auto",
        "system_fingerprint": "fp", "choices": [choice], "usage": usage,
    }  # fmt: skip
    sandbox.fault(AGENT_CHAT, times=0, status=200, body=body)

    whole = agent.chat.completions.create(**asked({"tools": [STRICT]}))
    with agent.chat.completions.stream(**asked({"tools": [STRICT]})) as stream:
        final = stream.get_final_completion()

    wanted, found = whole.model_dump(exclude_none=True), final.model_dump(exclude_none=True)
    # What the helper adds by itself.
    found["choices"][0]["message"].pop("parsed", None)
    for at, call in enumerate(found["choices"][0]["message"].get("tool_calls", [])):
        assert call.pop("index", at) == at
        call["function"].pop("parsed_arguments", None)
    assert found == wanted


def test_usage_may_be_asked_for(door, agent):
    options = {"include_usage": True}
    chunks = list(agent.chat.completions.create(**asked({}), stream=True, stream_options=options))

    assert [bool(chunk.usage) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    settled(door)


def test_the_receipt_is_in_reach_of_the_app(door, agent):
    raw = agent.chat.completions.with_raw_response.create(**asked({}), stream=True)
    list(raw.parse())

    [entry] = settled(door)
    assert int(raw.headers["X-Service-Billed"]) == entry["billed_micro_usd"]
    assert raw.headers["X-Bursar-Entry"] == entry["id"]


def test_streams_side_by_side_in_an_event_loop(door):
    async def turns():
        async with AsyncOpenAI(base_url=door.agent, api_key=NO_KEY) as client:

            async def turn():
                stream = await client.chat.completions.create(**asked(TOOLS), stream=True)
                return assembled([chunk async for chunk in stream])

            async def helped():
                async with client.chat.completions.stream(**asked(TOOLS)) as stream:
                    return (await stream.get_final_completion()).choices[0].message

            return await asyncio.gather(turn(), turn(), helped())

    one, other, message = asyncio.run(turns())

    for _, calls, _ in (one, other):
        assert set(json.loads(calls[0]["arguments"])) == {"city", "unit"}
    assert message.tool_calls[0].function.name == "weather"
    settled(door, 3)


def test_a_tool_loop_runs_in_streams(door, agent):
    with agent.chat.completions.stream(**asked(TOOLS)) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    given = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
        ],
    }
    result = {"role": "tool", "tool_call_id": call.id, "content": '{"celsius": -3}'}

    chunks = agent.chat.completions.create(
        model="auto", messages=[*QUESTION, given, result], tools=[WEATHER], stream=True
    )

    assert assembled(chunks)[0]
    settled(door, 2)


def test_an_error_is_the_sdk_s_own_kind_of_error(door, agent):
    door.sandbox.set_balance(0)

    with pytest.raises(openai.APIStatusError) as refused:
        agent.chat.completions.create(**asked({}), stream=True)

    assert refused.value.status_code == 402
    [entry] = door.entries()
    assert entry["state"] == "failed"


def test_an_impatient_app_gets_the_turn_already_under_way(door, sandbox):
    """The SDK's own retry of a turn of several seconds joins it: one debit."""
    sandbox.fault(AGENT_CHAT, times=0, delay_ms=4000)
    with openai.OpenAI(base_url=door.agent, api_key=NO_KEY, timeout=1.5, max_retries=4) as client:
        chunks = list(client.chat.completions.create(**asked({}), stream=True))

    assert assembled(chunks)[0]
    settled(door)
    assert sandbox.requests(AGENT_CHAT) == 1
