"""The agent lane with the unmodified SDK: base URL `…/agent/v1`, tool loops, streams.

Promise: a turn is one debit; a streamed turn carries no amount, so its entry says "unreported" with
its tokens, and never 0.
"""

import json

from requests_of_apps import WEATHER

QUESTION = [{"role": "user", "content": "What is the weather in Oslo in celsius?"}]


def test_a_tool_loop_runs_turn_by_turn(door, agent):
    first = agent.chat.completions.create(
        model="auto", messages=QUESTION, tools=[WEATHER], tool_choice="required"
    )
    message = first.choices[0].message
    call = message.tool_calls[0]
    assert set(json.loads(call.function.arguments)) == {"city", "unit"}

    second = agent.chat.completions.create(
        model="auto",
        messages=[
            *QUESTION,
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": '{"celsius": -3}'},
        ],
        tools=[WEATHER],
    )

    assert second.choices[0].message.content
    assert [entry["lane"] for entry in door.entries()] == ["agent", "agent"]


def test_a_turn_bills_what_its_header_says(door, agent):
    raw = agent.chat.completions.with_raw_response.create(model="auto", messages=QUESTION)

    [entry] = door.entries()
    assert int(raw.headers["X-Service-Billed"]) == entry["billed_micro_usd"] > 0


def test_a_streamed_turn_is_unreported_with_its_tokens(door, agent):
    chunks = list(agent.chat.completions.create(model="auto", messages=QUESTION, stream=True))

    usage = chunks[-1].usage
    assert usage.completion_tokens > 0
    [entry] = door.entries()
    assert entry["state"] == "unreported"
    assert entry["billed_micro_usd"] is None
    assert entry["usage"]["completion_tokens"] == usage.completion_tokens


def test_the_models_list_has_the_context_window(agent):
    [model] = agent.models.list()

    assert model.id == "auto"
    assert model.context_window == 131072
