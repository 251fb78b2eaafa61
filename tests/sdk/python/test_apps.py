"""Apps and tokens as an unmodified SDK sees them: the token is its API key.

Promise: with its token an app spends under its own name; with another it raises the SDK's own
AuthenticationError, after one request.
"""

import json

import openai
import pytest
from requests_of_apps import PROMPT


@pytest.fixture
def token(door):
    return json.loads(door.ask("app", "add", "nightly"))["token"]


def test_the_token_is_the_api_key(door, token):
    with openai.OpenAI(base_url=door.v1, api_key=token) as client:
        answer = client.chat.completions.create(model="auto", messages=PROMPT)
        with client.chat.completions.create(model="auto", messages=PROMPT, stream=True) as stream:
            assert list(stream)

    assert answer.choices[0].message.content
    assert {entry["app"] for entry in door.entries()} == {"nightly"}
    assert door.metric("bursar_requests_total", app="nightly", status="200") == 2


@pytest.mark.parametrize("key", ["unused", "bursar_", "mistyped"])
def test_a_wrong_token_is_an_authentication_error_at_once(door, token, key):
    key = f"{token[:-1]}{'0' if token[-1] != '0' else '1'}" if key == "mistyped" else key
    with openai.OpenAI(base_url=door.v1, api_key=key) as client:
        with pytest.raises(openai.AuthenticationError, match="bursar app add") as error:
            client.chat.completions.create(model="auto", messages=PROMPT)

    assert error.value.code == "token_refused"
    assert door.metric("bursar_refusals_total", error="token_refused") == 1, "the SDK tried again"
    assert door.sandbox.books()["debits"] == []


def test_a_removed_app_is_refused_while_the_client_lives_on(door, token):
    with openai.OpenAI(base_url=door.agent, api_key=token) as client:
        client.chat.completions.create(model="auto", messages=PROMPT)
        door.ask("app", "remove", "nightly")
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="auto", messages=PROMPT)
