use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AudioRequest, Form, Offer, Turn, Unsent, answer, speech, transcription};

const TYPE: &str = "multipart/form-data; boundary=edge";
const MAX: usize = 30 * 1024 * 1024;

/// A form as clients write it: fields, then the file where there is one.
fn form(fields: &[(&str, &str)], file: Option<&[u8]>) -> Bytes {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    if let Some(file) = file {
        body.extend_from_slice(
            b"--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n",
        );
        body.extend_from_slice(file);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    Bytes::from(body)
}

fn heard(fields: &[(&str, &str)]) -> Result<AudioRequest, Unsent> {
    transcription(TYPE, form(fields, Some(b"RIFF")), MAX)
}

fn names(request: &AudioRequest) -> String {
    request.dropped.to_string()
}

fn param(unsent: Unsent) -> String {
    match unsent {
        Unsent::Untranslatable(refused) => refused.param,
        Unsent::TooLarge { .. } => panic!("too large"),
    }
}

#[test]
fn a_form_becomes_the_services_json_and_keeps_only_the_language_of_its_words() {
    let request = heard(&[
        ("model", "whisper-1"),
        ("language", "de"),
        ("prompt", "secret words"),
        ("temperature", "0.2"),
        ("response_format", "verbose_json"),
        ("user", "u"),
        ("stream", "false"),
        ("chunking_strategy[type]", "server_vad"),
        ("languages[]", "de"),
        ("languages[]", "en"),
    ])
    .expect("a request");

    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(body, json!({"audio_base64": "UklGRg==", "language": "de"}));
    assert_eq!(request.model.as_deref(), Some("whisper-1"));
    assert_eq!(request.turn.form(), Form::VerboseJson);
    assert_eq!(
        names(&request),
        "prompt, temperature, other, chunking_strategy, languages ×2"
    );

    let plain = heard(&[("model", "auto"), ("language", "")]).expect("a request");
    assert_eq!(plain.body, br#"{"audio_base64":"UklGRg=="}"#);
    assert_eq!(plain.turn.form(), Form::Json);
    assert!(plain.dropped.is_empty());
}

#[test]
fn what_would_change_the_answer_and_cannot_be_honored_is_refused_by_name() {
    for (name, value, refused) in [
        ("response_format", "srt", "response_format"),
        ("response_format", "vtt", "response_format"),
        ("response_format", "diarized_json", "response_format"),
        ("response_format", "yaml", "response_format"),
        (
            "timestamp_granularities[]",
            "word",
            "timestamp_granularities",
        ),
        (
            "timestamp_granularities[]",
            "segment",
            "timestamp_granularities",
        ),
        ("stream", "true", "stream"),
        ("include[]", "logprobs", "include"),
        ("known_speaker_names[]", "Ada", "known_speaker_names"),
    ] {
        let unsent = heard(&[(name, value)]).expect_err(name);
        assert_eq!(param(unsent), refused, "{name}={value}");
    }
    for (body, refused) in [
        (form(&[("model", "auto")], None), "file"),
        (form(&[], Some(b"")), "file"),
        (Bytes::from_static(b"--edge\r\nContent-Dispo"), ""),
        (Bytes::from_static(b""), ""),
        (Bytes::from_static(b"{}"), ""),
    ] {
        let unsent = transcription(TYPE, body, MAX).expect_err("no recording");
        assert_eq!(param(unsent), refused);
    }
    let twice = [form(&[], Some(b"one")), form(&[], Some(b"two"))].concat();
    let twice = String::from_utf8(twice)
        .expect("text")
        .replacen("--edge--\r\n", "", 1);
    let unsent = transcription(TYPE, Bytes::from(twice), MAX).expect_err("two files");
    assert_eq!(param(unsent), "file");
    let unsent = transcription("multipart/form-data", form(&[], Some(b"x")), MAX);
    assert_eq!(param(unsent.expect_err("no boundary")), "");
    let many: Vec<_> = (0..65).map(|_| ("prompt", "x")).collect();
    assert_eq!(param(heard(&many).expect_err("many fields")), "");
}

#[test]
fn every_byte_of_a_recording_survives_and_the_largest_one_is_known_beforehand() {
    let file: Vec<u8> = (0..=255).cycle().take(999).collect();
    let body = form(&[("language", "\"en\"")], Some(&file));
    let request = transcription(TYPE, body, MAX).expect("a request");
    let sent: Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(sent["language"], "\"en\"");
    let said = json!({"audio_base64": sent["audio_base64"], "format": "wav"}).to_string();
    let back = answer(&Turn::from(Form::Sound), said.as_bytes()).expect("sound");
    assert_eq!(back.body, file);

    // 17 bytes before the sound and 2 behind it; 100 bytes leave room for 60.
    for (bytes, fits) in [(60, true), (61, false), (4000, false)] {
        let unsent = transcription(TYPE, form(&[], Some(&vec![7; bytes])), 100);
        match unsent {
            Ok(request) => assert!(fits && request.body.len() <= 100, "{bytes}"),
            Err(unsent) => {
                let largest = Unsent::TooLarge {
                    file_bytes: bytes,
                    file_bytes_max: 60,
                };
                assert_eq!((fits, unsent), (false, largest));
            }
        }
    }
}

/// A part of a recording is never sent as the whole.
#[test]
fn a_form_that_breaks_off_is_refused_wherever_it_does() {
    let body = form(&[("language", "en"), ("model", "auto")], Some(b"RIFF"));
    let end = body.len() - "--\r\n".len();
    for cut in 0..end {
        let unsent = transcription(TYPE, body.slice(..cut), MAX).expect_err("a part");
        assert_eq!(param(unsent), "", "{cut}");
    }
    assert!(transcription(TYPE, body, MAX).is_ok());
}

fn voices() -> BTreeMap<String, String> {
    BTreeMap::from([("alloy".to_owned(), "alto".to_owned())])
}

fn said(body: &Value) -> Option<Result<AudioRequest, String>> {
    let (voices, formats) = (voices(), ["wav".to_owned()]);
    let offer = Offer {
        voices: &voices,
        formats: &formats,
    };
    let body = body.to_string();
    let said = speech(body.as_bytes(), offer)?;
    Some(said.map_err(|refused| refused.param))
}

#[test]
fn a_text_becomes_the_services_and_its_own_form_is_left_alone() {
    for (asked, sent, dropped) in [
        (
            json!({"model": "tts-1", "input": "Hi", "voice": "alloy"}),
            json!({"text": "Hi", "voice": "alto"}),
            "",
        ),
        (
            json!({"input": "Hi", "voice": "nova"}),
            json!({"text": "Hi"}),
            "voice",
        ),
        (
            json!({"input": "Hi", "voice": {"id": "v"}}),
            json!({"text": "Hi"}),
            "voice",
        ),
        (
            json!({"input": "ü\n", "instructions": "x", "speed": 1.0, "stream": false, "stream_format": "audio",
                   "response_format": "wav", "user": "u", "voice": null}),
            json!({"text": "ü\n"}),
            "instructions, other",
        ),
    ] {
        let request = said(&asked).expect("OpenAI's").expect("a request");
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body, sent);
        assert_eq!(names(&request), dropped, "{asked}");
        assert!(request.turn.is_sound());
    }
    for own in [
        json!({"text": "Hi"}),
        json!({"text": "Hi", "input": "Hi"}),
        json!({"voice": "x"}),
        json!(["input"]),
    ] {
        assert!(said(&own).is_none(), "{own}");
    }
}

#[test]
fn speech_that_cannot_be_had_is_refused_by_name() {
    for (more, refused) in [
        (json!({"input": 5}), "input"),
        (json!({"input": null}), "input"),
        (json!({"speed": 1.5}), "speed"),
        (json!({"speed": "1"}), "speed"),
        (json!({"stream": true}), "stream"),
        (json!({"stream_format": "sse"}), "stream_format"),
        (json!({"response_format": "mp3"}), "response_format"),
        (json!({"response_format": 1}), "response_format"),
    ] {
        let mut asked = json!({"input": "Hi"});
        for (name, value) in more.as_object().expect("members") {
            asked[name] = value.clone();
        }
        let refusal = said(&asked).expect("OpenAI's").expect_err(refused);
        assert_eq!(refusal, refused, "{asked}");
    }
}

#[test]
fn a_transcript_has_the_services_words_and_numbers() {
    let heard = br#"{"text":"a \u00fc\n\"b\"","language":"en","duration_s":1.50}"#;
    for (form, body, kind) in [
        (
            Form::Json,
            r#"{"text":"a \u00fc\n\"b\""}"#,
            "application/json",
        ),
        (Form::Text, "a ü\n\"b\"", "text/plain; charset=utf-8"),
        (
            Form::VerboseJson,
            r#"{"task":"transcribe","language":"en","duration":1.50,"text":"a \u00fc\n\"b\""}"#,
            "application/json",
        ),
    ] {
        let given = answer(&Turn::from(form), heard).expect("an answer");
        assert_eq!(String::from_utf8(given.body).expect("text"), body);
        assert_eq!(given.content_type, kind);
    }
    let bare = br#"{"text":"x","language":null}"#;
    let given = answer(&Turn::from(Form::VerboseJson), bare).expect("an answer");
    assert_eq!(given.body, br#"{"task":"transcribe","text":"x"}"#);
    for unfit in [&b"{}"[..], b"[]", b"no", br#"{"text":5}"#] {
        assert!(answer(&Turn::from(Form::Json), unfit).is_err());
    }
}

#[test]
fn sound_is_bytes_with_the_type_that_the_service_named() {
    for (served, bytes, kind) in [
        (
            r#"{"audio_base64":"UklGRg==","format":"wav"}"#,
            &b"RIFF"[..],
            "audio/wav",
        ),
        (
            r#"{"audio_base64":"UklGRg","format":"MP3"}"#,
            b"RIFF",
            "audio/mpeg",
        ),
        (
            r#"{"audio_base64":"\/\/8="}"#,
            b"\xff\xff",
            "application/octet-stream",
        ),
        (
            r#"{"audio_base64":"","format":"tape"}"#,
            b"",
            "application/octet-stream",
        ),
    ] {
        let given = answer(&Turn::from(Form::Sound), served.as_bytes()).expect("sound");
        assert_eq!((given.body.as_slice(), given.content_type), (bytes, kind));
    }
    for unfit in [
        r#"{"audio_base64":"*"}"#,
        r#"{"audio_base64":5}"#,
        r#"{"format":"wav"}"#,
        "[]",
    ] {
        assert!(
            answer(&Turn::from(Form::Sound), unfit.as_bytes()).is_err(),
            "{unfit}"
        );
    }
    // A format that was promised is kept, or the answer is not given as that.
    let named = said(&json!({"input": "x", "response_format": "wav"}));
    let turn = named.expect("OpenAI's").expect("a request").turn;
    assert!(answer(&turn, br#"{"audio_base64":"UklGRg==","format":"wav"}"#).is_ok());
    assert!(answer(&turn, br#"{"audio_base64":"UklGRg==","format":"mp3"}"#).is_err());
    assert!(answer(&turn, br#"{"audio_base64":"UklGRg=="}"#).is_err());
}
