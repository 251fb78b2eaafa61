"""Speech through the unmodified SDK: in OpenAI's form by its own calls, in the service's by `client.post`.

Promise: what was said is heard again, in either form; each call is one debit whose minutes the ledger knows; what the
service does not have is refused by the name of the field, once and unbilled.
"""

import base64
import io

import openai
import pytest

TEXT = "The river is wide and the water is cold."


@pytest.fixture
def config():
    return '[models]\nvoices = { alloy = "alto", onyx = "bass" }\nspeech_formats = ["wav"]\n'


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


def test_the_sdks_own_calls_say_and_hear(door, client, tmp_path):
    said = client.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, instructions="slowly")
    assert said.content[:4] == b"RIFF"
    assert said.response.headers["content-type"] == "audio/wav"
    path = tmp_path / "river.wav"
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="onyx", input=TEXT, response_format="wav"
    ) as streamed:
        streamed.stream_to_file(path)
    assert path.read_bytes()[:4] == b"RIFF"
    assert path.read_bytes() != said.content, "another voice"

    recording = ("river.wav", io.BytesIO(said.content), "audio/wav")
    heard = client.audio.transcriptions.create(model="whisper-1", file=recording, prompt="rivers", temperature=0)
    assert heard.text == TEXT
    text = client.audio.transcriptions.create(model="whisper-1", file=path, response_format="text")
    assert text == TEXT
    verbose = client.audio.transcriptions.create(
        model="whisper-1", file=path, language="en", response_format="verbose_json"
    )
    assert (verbose.text, verbose.language) == (TEXT, "en")
    assert verbose.duration > 1

    assert len(door.sandbox.books()["debits"]) == 5
    entries = door.entries()
    assert {entry["spoken"] for entry in entries} == {"openai_audio"}
    assert {entry["model"] for entry in entries} == {"tts-1", "whisper-1"}
    assert all(entry["audio_ms"] > 1000 for entry in entries), entries


def test_what_the_service_does_not_have_is_refused_by_name_once_and_costs_nothing(door, client):
    recording = ("river.wav", io.BytesIO(b"RIFF"), "audio/wav")
    for more in (
        {"response_format": "srt"},
        {"response_format": "vtt"},
        {"response_format": "verbose_json", "timestamp_granularities": ["word"]},
        {"stream": True},
        {"include": ["logprobs"]},
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.audio.transcriptions.create(model="auto", file=recording, **more)
        assert refused.value.code == "untranslatable"
        assert refused.value.param in more
    for more in ({"response_format": "mp3"}, {"speed": 1.5}, {"stream_format": "sse"}):
        with pytest.raises(openai.BadRequestError) as refused:
            client.audio.speech.create(model="auto", voice="alloy", input=TEXT, **more)
        assert refused.value.param in more

    assert door.sandbox.books()["debits"] == []
    asked = [door.sandbox.requests(f"/v1/audio/{route}") for route in ("speech", "transcriptions")]
    assert asked == [0, 0]


def test_a_failure_that_may_have_run_is_not_retried(door, client):
    door.sandbox.fault("/v1/audio/speech", status=500, body={"detail": "broken"})

    with pytest.raises(openai.InternalServerError):
        client.audio.speech.create(model="auto", voice="alloy", input=TEXT)

    assert door.sandbox.requests("/v1/audio/speech") == 1


def test_a_model_is_looked_up_by_id(client):
    assert client.models.retrieve("auto").id == "auto"
    with pytest.raises(openai.NotFoundError) as unknown:
        client.models.retrieve("gpt-4o")
    assert unknown.value.code == "model_unknown"
