"""What an app sees when the answer is no: the SDK's own exception, with the text in it.

Promise: the text of every refusal reaches the person who reads the traceback; nothing is billed.
"""

import openai
import pytest
from requests_of_apps import PROMPT


def test_an_unknown_model_is_not_found_and_says_what_to_set(door, client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="gpt-none", messages=PROMPT)

    assert "auto" in error.value.message
    assert "aliases" in error.value.message
    assert error.value.body["message"]
    assert door.sandbox.books()["debits"] == []


def test_a_bad_request_shows_the_text_of_the_service(agent):
    with pytest.raises(openai.BadRequestError) as error:
        agent.chat.completions.create(model="auto", messages=PROMPT, n=2)

    assert error.value.body["message"]
    assert error.value.body["message"] in error.value.message


def test_what_of_the_responses_api_cannot_be_honored_is_named(client):
    with pytest.raises(openai.BadRequestError, match="background|request runs") as error:
        client.responses.create(model="auto", input="hello", background=True)

    assert error.value.code == "untranslatable"
    assert error.value.param == "background"
    with pytest.raises(openai.NotFoundError, match="keeps no responses"):
        client.responses.retrieve("resp_1")


def test_a_base_url_without_v1_says_so(door):
    with openai.OpenAI(base_url=door.url, api_key="unused") as client:
        with pytest.raises(openai.NotFoundError, match="/v1"):
            client.chat.completions.create(model="auto", messages=PROMPT)


def test_an_empty_balance_is_refused_once(door, client):
    door.sandbox.set_balance(0)

    with pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(model="auto", messages=PROMPT)

    assert error.value.status_code == 402
    assert door.metric("bursar_requests_total", status="402") == 1


def test_embeddings_are_keyed_and_metered(door, client):
    answer = client.embeddings.create(model="auto", input=["one", "two"])

    assert len(answer.data) == 2
    assert len(answer.data[0].embedding) == len(answer.data[1].embedding) > 0
    [entry] = door.entries()
    assert entry["operation"] == "embeddings"
