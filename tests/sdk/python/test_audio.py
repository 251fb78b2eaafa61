"""Speech through the unmodified SDK, as far as its routes can: the interface's bodies are not OpenAI's.

`audio.speech.create` names the text `input`, and `audio.transcriptions.create` sends a form: both are refused with
the name of what is missing, once and unbilled. The SDK's way to a body of one's own (`client.post`) works.
Promise: what was said is heard again, and each of the two is one debit whose minutes the ledger knows.
"""

import base64
import io

import openai
import pytest

TEXT = "The river is wide and the water is cold."


def say(client, **body):
    return client.post("/audio/speech", cast_to=object, body=body)


def test_what_was_said_is_heard_again(door, client):
    said = say(client, text=TEXT)
    wav = base64.b64decode(said["audio_base64"])
    assert (wav[:4], wav[8:12]) == (b"RIFF", b"WAVE")

    body = {"audio_base64": said["audio_base64"], "language": "en"}
    heard = client.post("/audio/transcriptions", cast_to=object, body=body)

    assert (heard["text"], heard["language"]) == (TEXT, "en")
    assert heard["duration_s"] == said["duration_s"] > 1
    routes = [debit["route"] for debit in door.sandbox.books()["debits"]]
    assert routes == ["/v1/audio/speech", "/v1/audio/transcriptions"]
    # The interface gives these routes no receipt.
    assert [entry["state"] for entry in door.entries()] == ["unreported", "unreported"]


def test_another_voice_is_another_sound(client):
    alto, bass = (say(client, text=TEXT, voice=voice)["audio_base64"] for voice in ("alto", "bass"))

    assert alto != bass


def test_the_bodies_of_openai_are_refused_by_the_name_of_the_field_and_cost_nothing(door, client):
    with pytest.raises(openai.UnprocessableEntityError, match="text is required"):
        client.audio.speech.create(model="auto", voice="alto", input=TEXT)
    recording = ("river.wav", io.BytesIO(b"RIFF"), "audio/wav")
    # bursar knows that this route takes no form, and says so before anything is sent on.
    with pytest.raises(openai.APIStatusError, match="application/json") as refused:
        client.audio.transcriptions.create(model="auto", file=recording)

    assert refused.value.status_code == 415
    assert door.sandbox.books()["debits"] == []
    asked = [door.sandbox.requests(f"/v1/audio/{route}") for route in ("speech", "transcriptions")]
    assert asked == [1, 0], "a refusal is not retried"
