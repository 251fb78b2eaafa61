"""Apps that give up and ask again by themselves: one purchase, one debit.

Why: an SDK's retry carries no Idempotency-Key, so each one looks like a new purchase. The table is every
lane, streamed or not, asked for by the three kinds of client there are: the SDK, its async twin, and a
program that repeats without saying that it does.
Promise: however the first answer was lost, the app gets an answer and the books hold one debit.
"""

import asyncio
import json
import os
import select
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest
from harness import eventually
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from requests_of_apps import AGENT_CHAT, CHAT, NO_KEY, PROMPT

PATIENCE_S = 0.7
TRIES = 8
LANES = [
    pytest.param(CHAT, False, id="chat"),
    pytest.param(CHAT, True, id="chat-stream"),
    pytest.param(AGENT_CHAT, False, id="agent"),
    pytest.param(AGENT_CHAT, True, id="agent-stream"),
]


class Sent:
    """Counts requests; runs `before_second` when the app has given up once and asks again."""

    def __init__(self, before_second):
        self.count = 0
        self.before_second = before_second

    def __call__(self, *_):
        self.count += 1
        if self.count == 2:
            self.before_second()


def ask_sync(door, path, stream, sent):
    http_client = DefaultHttpxClient(event_hooks={"request": [sent]})
    base_url = door.url + path.removesuffix("/chat/completions")
    with OpenAI(
        base_url=base_url, api_key=NO_KEY, http_client=http_client, timeout=PATIENCE_S, max_retries=TRIES
    ) as client:
        answer = client.chat.completions.create(model="auto", messages=PROMPT, stream=stream)
        return joined(answer) if stream else answer.choices[0].message.content


def ask_async(door, path, stream, sent):
    async def hook(request):
        # The hook may start a process and wait for it; nothing else runs in this loop.
        sent(request)

    async def ask():
        http_client = DefaultAsyncHttpxClient(event_hooks={"request": [hook]})
        base_url = door.url + path.removesuffix("/chat/completions")
        async with AsyncOpenAI(
            base_url=base_url, api_key=NO_KEY, http_client=http_client, timeout=PATIENCE_S, max_retries=TRIES
        ) as client:
            answer = await client.chat.completions.create(model="auto", messages=PROMPT, stream=stream)
            if not stream:
                return answer.choices[0].message.content
            return joined([chunk async for chunk in answer])

    return asyncio.run(ask())


def ask_plain(door, path, stream, sent):
    """A program of its own: no mark on a retry, no header that names its patience."""
    body = json.dumps({"model": "auto", "messages": PROMPT, "stream": stream}).encode()
    request = urllib.request.Request(door.url + path, body, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(TRIES):
        sent()
        try:
            with opener.open(request, timeout=PATIENCE_S) as answer:
                text = answer.read().decode()
        except (OSError, urllib.error.URLError):
            continue
        if not stream:
            return json.loads(text)["choices"][0]["message"]["content"]
        assert "data: [DONE]" in text
        lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
        deltas = (json.loads(line)["choices"] for line in lines)
        return "".join(choice["delta"].get("content") or "" for delta in deltas for choice in delta)
    raise AssertionError("no answer")


def joined(chunks):
    deltas = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return "".join(deltas)


CLIENTS = [
    pytest.param(ask_sync, id="sync"),
    pytest.param(ask_async, id="async"),
    pytest.param(ask_plain, id="plain"),
]


@pytest.mark.parametrize("ask", CLIENTS)
@pytest.mark.parametrize("path, stream", LANES)
def test_a_slow_answer_is_bought_once(door, ask, path, stream):
    door.sandbox.fault(path, hold="until the app has asked again")
    sent = Sent(lambda: door.sandbox.release("until the app has asked again"))

    assert ask(door, path, stream, sent)

    assert sent.count >= 2
    assert len(door.sandbox.books()["debits"]) == 1
    assert door.sandbox.requests(path) == 1


@pytest.mark.parametrize("ask", [CLIENTS[0], CLIENTS[2]])
@pytest.mark.parametrize("path, stream", LANES)
def test_a_reply_that_is_lost_with_all_its_repeats_is_bought_once(door, ask, path, stream):
    # bursar's own three attempts run and their replies are lost; the app's own retry goes on with
    # the same key. A repeat shows 0, so the amount stays in doubt where no head contained it.
    door.doubt_allowed = True
    door.sandbox.fault(path, times=3, cut_before_head=True)
    sent = Sent(lambda: None)

    assert ask(door, path, stream, sent)

    debits = door.sandbox.books()["debits"]
    assert len(debits) == 1, f"{debits}\n{door.program.said()}"


@pytest.mark.parametrize("ask", CLIENTS)
@pytest.mark.parametrize("path, stream", LANES)
def test_a_purchase_outlives_a_kill_of_bursar(door, ask, path, stream):
    door.doubt_allowed = True
    door.sandbox.fault(path, hold="until bursar is back")

    def kill_and_start():
        door.kill_and_start()
        door.sandbox.release("until bursar is back")

    assert ask(door, path, stream, Sent(kill_and_start))

    debits = door.sandbox.books()["debits"]
    assert len(debits) == 1, f"{debits}\n{door.program.said()}"


@pytest.mark.parametrize("path", [CHAT, AGENT_CHAT])
def test_a_process_that_stands_still_between_two_tries_bills_once(door, path):
    # Its own app has ended its input, so for 50 ms its connection may still refuse the answer; the next try waits
    # for that. Both waits are over when the process goes on, and the refusal has come meanwhile.
    body = json.dumps({"model": "auto", "messages": PROMPT})
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    host, port = door.url.removeprefix("http://").split(":")
    pid = door.program.process.pid

    def sent():
        app = socket.create_connection((host, int(port)), timeout=10)
        app.sendall((head + body).encode())
        return app

    door.sandbox.fault(path, hold="the first has ended its input")
    first = sent()
    first.shutdown(socket.SHUT_WR)
    eventually("the service has the first", lambda: door.sandbox.requests(path) == 1)
    door.sandbox.release("the first has ended its input")
    select.select([first], [], [], 10)
    given = time.monotonic()
    second = sent()
    time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    in_time = time.monotonic() - given < 0.04
    # With an answer that was not read: it is refused.
    first.close()
    time.sleep(0.3)
    os.kill(pid, signal.SIGCONT)
    assert second.recv(12) == b"HTTP/1.1 200"
    second.close()
    # Later the first would have counted as one that reads: two purchases.
    assert len(door.sandbox.books()["debits"]) == 1 or not in_time
