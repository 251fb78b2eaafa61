"""Retries of either side: the SDK's own and bursar's. One purchase is billed once.

Why: SDKs repeat by themselves and send no Idempotency-Key; this is what a naive sidecar pays twice for.
"""

import asyncio

import openai
import pytest
from harness import eventually
from openai import DefaultHttpxClient, OpenAI
from requests_of_apps import CHAT, NO_KEY, PROMPT


def test_five_impatient_apps_are_billed_five_times_for_five_answers(door, async_client):
    # Longer than the SDK's patience, so that each app asks up to three times.
    door.sandbox.fault(CHAT, times=0, delay_ms=5000)

    async def five():
        async with async_client(timeout=2.0, max_retries=2) as client:
            ask = client.chat.completions.with_raw_response.create
            return await asyncio.gather(*(ask(model="auto", messages=PROMPT) for _ in range(5)))

    raws = asyncio.run(five())

    assert len({raw.parse().id for raw in raws}) == 5
    assert all(raw.retries_taken >= 1 for raw in raws)
    assert len(door.sandbox.books()["debits"]) == 5
    # Joined: the retries were given the answer already under way; nothing was sent again.
    assert door.sandbox.requests(CHAT) == 5
    assert door.metric("bursar_joined_retries_total") >= 5


def test_an_answer_that_came_between_two_attempts_waits_for_the_second(door):
    door.sandbox.fault(CHAT, hold="nobody is there")
    sent = []

    def on_request(request):
        sent.append(request)
        if len(sent) == 2:
            # The first attempt has been given up: its answer comes now, without a reader.
            door.sandbox.release("nobody is there")
            eventually("settled", lambda: door.entries()[0]["state"] == "settled")

    hooks = {"request": [on_request]}
    with OpenAI(
        base_url=door.v1, api_key=NO_KEY, http_client=DefaultHttpxClient(event_hooks=hooks)
    ) as client:
        raw = client.chat.completions.with_raw_response.create(model="auto", messages=PROMPT, timeout=1.0)

    assert len(sent) == 2
    [debit] = door.sandbox.books()["debits"]
    assert int(raw.headers["X-Service-Billed"]) == debit["amount_micro_usd"]
    assert door.sandbox.requests(CHAT) == 1


def test_two_503_then_an_answer_is_one_debit_and_no_work_for_the_app(door):
    door.sandbox.fault(CHAT, times=2, status=503, retry_after="0")

    with OpenAI(base_url=door.v1, api_key=NO_KEY, max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(model="auto", messages=PROMPT)

    [debit] = door.sandbox.books()["debits"]
    assert int(raw.headers["X-Service-Billed"]) == debit["amount_micro_usd"]
    assert door.sandbox.requests(CHAT) == 3


def test_a_503_that_stays_is_retried_by_one_layer_only(door):
    door.sandbox.fault(CHAT, times=0, status=503)
    sent = []
    hooks = {"request": [sent.append]}

    with OpenAI(
        base_url=door.v1, api_key=NO_KEY, http_client=DefaultHttpxClient(event_hooks=hooks)
    ) as client:
        with pytest.raises(openai.InternalServerError) as error:
            client.chat.completions.create(model="auto", messages=PROMPT)

    assert error.value.status_code == 503
    assert len(sent) == 1
    assert door.sandbox.requests(CHAT) == 3
    assert door.sandbox.books()["debits"] == []


def test_a_key_of_the_app_wins_and_its_second_call_is_a_replay(door, client):
    mine = {"Idempotency-Key": "order-77"}
    ask = client.chat.completions.with_raw_response.create
    first = ask(model="auto", messages=PROMPT, extra_headers=mine)
    second = ask(model="auto", messages=PROMPT, extra_headers=mine)

    assert first.parse().id == second.parse().id
    assert second.headers["Idempotent-Replayed"] == "true"
    assert int(second.headers["X-Service-Billed"]) == 0
    [debit] = door.sandbox.books()["debits"]
    assert debit["key"] == "order-77"


def test_a_stream_left_early_still_brings_its_receipt(door, client):
    door.sandbox.fault(CHAT, hold_after_chunks=2, hold_chunks_name="after the app has left")

    with client.chat.completions.create(model="auto", messages=PROMPT, stream=True) as stream:
        for _ in stream:
            break
    door.sandbox.release("after the app has left")

    def settled():
        [entry] = door.entries()
        return entry if entry["state"] == "settled" else None

    entry = eventually("the stream was read to its receipt", settled)
    [debit] = door.sandbox.books()["debits"]
    assert entry["billed_micro_usd"] == debit["amount_micro_usd"]
