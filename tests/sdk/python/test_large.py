"""Bodies at the limit of 30 MB: the SDK reads the refusal, and does not send 31 MB three times.

Why: a proxy that closes at once is a connection error to an SDK, and connection errors are retried.
"""

import openai
import pytest
from openai import DefaultHttpxClient, OpenAI
from requests_of_apps import AGENT_CHAT, CHAT, NO_KEY, PROMPT

MEGABYTE = 1024 * 1024


def message_of(size):
    return [{"role": "user", "content": "river " * (size // 6)}]


def test_31_mb_is_refused_once(door):
    sent = []
    hooks = {"request": [sent.append]}

    with OpenAI(
        base_url=door.v1, api_key=NO_KEY, http_client=DefaultHttpxClient(event_hooks=hooks)
    ) as client:
        with pytest.raises(openai.APIStatusError) as error:
            client.chat.completions.create(model="auto", messages=message_of(31 * MEGABYTE))

    assert error.value.status_code == 413
    assert "30" in error.value.message
    assert len(sent) == 1
    assert door.entries() == []
    assert door.sandbox.requests(CHAT) == 0


def test_a_large_body_below_the_limit_is_repeated_whole(door, agent):
    door.sandbox.fault(AGENT_CHAT, times=2, status=503, retry_after="0")

    # The agent lane ignores fields it does not know, so that only the size counts.
    answer = agent.chat.completions.create(
        model="auto", messages=PROMPT, extra_body={"padding": "river " * (20 * MEGABYTE // 6)}
    )

    assert answer.choices[0].message.content
    sizes = [request["body_bytes"] for request in door.sandbox.log() if request["path"] == AGENT_CHAT]
    assert len(sizes) == 3
    assert len(set(sizes)) == 1
    assert sizes[0] > 20 * MEGABYTE - 6
