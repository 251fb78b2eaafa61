"""Embeddings, pictures and edits through the unmodified SDK, and rerank as plain JSON.

Promise: what the SDK unpacks is what the service computed, and each call is one debit in its books.
"""

import base64
import io
import json
import urllib.request

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def size_of(png):
    """Width and height, from the head of the file."""
    assert png.startswith(PNG)
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def nearness(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_a_synonym_is_nearer_than_another_word(door, client):
    answer = client.embeddings.create(model="auto", input=["the physician", "a doctor", "a tax"])

    doctor, physician, tax = (entry.embedding for entry in answer.data)
    assert nearness(doctor, physician) > 0.5 > nearness(doctor, tax)
    assert door.sandbox.books()["debits"][0]["route"] == "/v1/embeddings"


@pytest.mark.parametrize("dimensions", [8, 1536])
def test_the_vectors_have_the_length_asked_for(client, dimensions):
    answer = client.embeddings.create(model="auto", input="one", dimensions=dimensions)

    assert len(answer.data[0].embedding) == dimensions


def test_a_generated_picture_is_billed_once_and_can_be_edited(door, client):
    made = client.images.with_raw_response.generate(
        model="auto", prompt="a red circle", size="128x64", n=2, response_format="b64_json"
    )
    pictures = [base64.b64decode(entry.b64_json) for entry in made.parse().data]
    assert [size_of(picture) for picture in pictures] == [(128, 64), (128, 64)]

    edited = client.images.with_raw_response.edit(
        image=("circle.png", io.BytesIO(pictures[0]), "image/png"), prompt="change red to blue"
    )
    [entry] = edited.parse().data

    assert entry.revised_prompt == "change red to blue"
    assert size_of(base64.b64decode(entry.b64_json)) == (128, 64)
    amounts = [debit["amount_micro_usd"] for debit in door.sandbox.books()["debits"]]
    assert amounts == [int(made.headers["X-Service-Billed"]), int(edited.headers["X-Service-Billed"])]


def test_a_key_of_the_app_brings_the_same_picture_again(door, client):
    mine = {"Idempotency-Key": "picture-1"}
    draw = client.images.with_raw_response.generate
    first, second = (draw(prompt="a star", size="64x64", extra_headers=mine) for _ in range(2))

    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.parse().data[0].b64_json == second.parse().data[0].b64_json
    assert len(door.sandbox.books()["debits"]) == 1


def test_the_fitting_document_comes_first(door):
    documents = ["Tax law of the north", "The doctor is in from nine to noon"]
    asked = {"model": "auto", "query": "When can I see a physician?", "documents": documents}
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{door.v1}/rerank", json.dumps(asked).encode(), head)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        results = json.load(answer)["results"]

    assert [result["index"] for result in results] == [1, 0]
    [debit] = door.sandbox.books()["debits"]
    assert int(answer.headers["X-Service-Billed"]) == debit["amount_micro_usd"]
