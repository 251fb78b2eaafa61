//! Speech: text to a WAV and a recording to its length and words.

use crate::{model_server::ModelServer, support::*};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bursar_sandbox::{Options, Scenario, Settings, Synthesis};
use serde_json::{Value, json};

const SPEECH: &str = "/v1/audio/speech";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";

/// A WAV as a stranger reads it, from the format's description alone.
struct Riff {
    channels: u16,
    rate: u32,
    bits: u16,
    samples: Vec<i16>,
    chunks: Vec<String>,
}

fn le(bytes: &[u8], at: usize, n: usize) -> u32 {
    (0..n).map(|i| u32::from(bytes[at + i]) << (8 * i)).sum()
}

fn riff(bytes: &[u8]) -> Riff {
    assert_eq!((&bytes[..4], &bytes[8..12]), (&b"RIFF"[..], &b"WAVE"[..]));
    assert_eq!(le(bytes, 4, 4) as usize + 8, bytes.len(), "the RIFF size");
    let (mut at, mut chunks) = (12, Vec::new());
    let (mut format, mut samples) = (None, Vec::new());
    while at < bytes.len() {
        let name = std::str::from_utf8(&bytes[at..at + 4]).unwrap().to_owned();
        let size = le(bytes, at + 4, 4) as usize;
        let body = &bytes[at + 8..at + 8 + size];
        match name.as_str() {
            "fmt " => {
                assert_eq!(le(body, 0, 2), 1, "PCM");
                assert_eq!(
                    le(body, 8, 4),
                    le(body, 4, 4) * le(body, 12, 2),
                    "bytes a second"
                );
                format = Some((
                    le(body, 2, 2) as u16,
                    le(body, 4, 4),
                    le(body, 14, 2) as u16,
                ));
            }
            "data" => samples.extend(
                body.chunks(2)
                    .map(|two| i16::from_le_bytes([two[0], two[1]])),
            ),
            _ => {}
        }
        chunks.push(name);
        at += 8 + size + size % 2;
    }
    assert_eq!(at, bytes.len(), "chunks end with the file");
    let (channels, rate, bits) = format.unwrap();
    Riff {
        channels,
        rate,
        bits,
        samples,
        chunks,
    }
}

fn built_in() -> Options {
    Options {
        settings: Settings {
            synthesis: Synthesis::BuiltIn,
            ..Settings::default()
        },
        ..Options::default()
    }
}

fn sound(reply: &Reply) -> Vec<u8> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    STANDARD
        .decode(reply.json()["audio_base64"].as_str().unwrap())
        .unwrap()
}

async fn say(sandbox: &Sandbox, text: &str) -> Reply {
    sandbox.post(SPEECH, &[], &json!({"text": text})).await
}

async fn hear(sandbox: &Sandbox, audio: &[u8]) -> Reply {
    let body = json!({"audio_base64": STANDARD.encode(audio)});
    sandbox.post(TRANSCRIPTIONS, &[], &body).await
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/fixtures/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

// Interface, POST /v1/audio/speech: Response: `{audio_base64, sample_rate, duration_s, format}`.
#[tokio::test]
async fn a_text_becomes_a_wav_whose_answer_has_rate_and_length_to_the_sample() {
    let sandbox = Sandbox::start_with(built_in()).await;

    let reply = say(&sandbox, "Rivers run. Do lakes lie?").await;

    let wav = riff(&sound(&reply));
    let answer = reply.json();
    assert_eq!(answer.as_object().unwrap().len(), 4);
    assert_eq!((wav.channels, wav.bits, wav.rate), (1, 16, 16_000));
    assert_eq!(wav.chunks, ["fmt ", "data", "said"]);
    assert_eq!(
        (&answer["sample_rate"], &answer["format"]),
        (&json!(16_000), &json!("wav"))
    );
    let seconds = wav.samples.len() as f64 / 16_000.0;
    assert_eq!(answer["duration_s"].as_f64(), Some(seconds));
    assert!((1.0..5.0).contains(&seconds), "{seconds}");
    assert!(wav.samples.iter().any(|s| s.unsigned_abs() > 5_000));
    assert_eq!(
        reply.header("x-sandbox-assumed"),
        Some("speech-form,speech-text")
    );
    assert_eq!(reply.header("x-service-billed"), None);
}

// Interface, POST /v1/audio/speech: `text` (string, required, at most 5000 characters).
#[tokio::test]
async fn a_text_has_one_to_5000_characters_however_many_bytes() {
    let sandbox = Sandbox::start_with(built_in()).await;
    // Three bytes each and no sound of their own.
    let at_most = format!("é{}", "\u{3000}".repeat(4_999));

    for (text, status) in [
        (json!(at_most), 200),
        (json!(format!("{at_most}a")), 422),
        (json!(""), 422),
        (json!(" \n"), 422),
        (json!(7), 422),
        (Value::Null, 422),
    ] {
        let reply = sandbox.post(SPEECH, &[], &json!({"text": text})).await;
        assert_eq!(
            reply.status,
            status,
            "{}",
            reply.text().chars().take(200).collect::<String>()
        );
        if status == 422 {
            assert!(
                reply.json()["detail"]
                    .as_str()
                    .unwrap()
                    .starts_with("text ")
            );
        }
    }
    let openai = json!({"model": "x", "input": "hello", "voice": "alto"});
    assert_eq!(
        sandbox.post(SPEECH, &[], &openai).await.json()["detail"],
        "text is required"
    );
    let malformed = sandbox.send("POST", SPEECH, &[], Some(b"{".to_vec())).await;
    assert_eq!(malformed.status, 400);
    assert_eq!(sandbox.debits().await.len(), 1);
}

// Interface, POST /v1/audio/speech: `voice` (string, optional voice id; omit for the default voice).
#[tokio::test]
async fn each_voice_sounds_its_own_and_none_is_the_default() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let mut sounds = Vec::new();
    for voice in ["alto", "soprano", "tenor", "bass"] {
        let body = json!({"text": "one river", "voice": voice});
        sounds.push(sound(&sandbox.post(SPEECH, &[], &body).await));
    }

    assert_eq!(sound(&say(&sandbox, "one river").await), sounds[0]);
    for (at, one) in sounds.iter().enumerate() {
        assert!(!sounds[at + 1..].contains(one), "{at}");
    }
    for voice in [json!("nobody"), json!(""), json!(1)] {
        let reply = sandbox
            .post(SPEECH, &[], &json!({"text": "hi", "voice": voice}))
            .await;
        assert_eq!(reply.status, 422);
        assert!(
            reply.json()["detail"]
                .as_str()
                .unwrap()
                .starts_with("voice")
        );
    }
}

// Interface, POST /v1/audio/transcriptions: Response: `{text, language, duration_s}`.
#[tokio::test]
async fn what_was_said_is_heard_again_word_for_word() {
    let sandbox = Sandbox::start_with(built_in()).await;
    for text in [
        "Hello, world.",
        "The river is wide and it runs to the sea.",
        "a",
        "42",
        "2,026 boats for $7 at 100%",
        "Is it? It is!",
        "Grüße aus Köln",
        "Où est la bibliothèque ?",
        "¿Dónde está?",
        "Привет, мир",
        "Γειά σου Κόσμε",
        "世界和平",
        "こんにちは",
        "안녕하세요",
        "مرحبا",
        "שלום",
        "नमस्ते",
        "🦀 crab 👩‍👩‍👧",
        "tab\tnew\nline\u{0} null",
        "e\u{301} is not é",
    ] {
        let spoken = say(&sandbox, text).await;
        let heard = hear(&sandbox, &sound(&spoken)).await;

        let answer = heard.json();
        assert_eq!(heard.status, 200, "{text}: {answer}");
        assert_eq!(answer["text"], text);
        assert_eq!(answer["duration_s"], spoken.json()["duration_s"], "{text}");
        assert_eq!(answer.as_object().unwrap().len(), 3);
    }
}

// Interface, POST /v1/audio/transcriptions: base64 of wav, mp3, m4a or webm audio.
#[tokio::test]
async fn each_kind_of_audio_has_its_length_measured_and_no_word_invented() {
    let sandbox = Sandbox::start().await;
    for (name, seconds) in [
        ("tone.mp3", 0.75),
        ("tone.m4a", 0.75),
        ("tone.webm", 0.758),
        ("tone-piped.wav", 0.75),
    ] {
        let reply = hear(&sandbox, &fixture(name)).await;

        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let expected = json!({"text": "", "language": "und", "duration_s": seconds});
        assert_eq!(reply.json(), expected, "{name}");
        let marks = reply.header("x-sandbox-assumed").unwrap();
        assert_eq!(
            marks,
            "transcription-text,transcription-language,transcription-duration"
        );
    }
}

// Interface, POST /v1/audio/transcriptions: `audio_base64` (string, required).
#[tokio::test]
async fn audio_that_cannot_be_heard_is_422_with_its_reason_and_costs_nothing() {
    let sandbox = Sandbox::start().await;
    let half = fixture("tone.m4a");
    let half = STANDARD.encode(&half[..half.len() / 2]);
    for (body, reason) in [
        (json!({}), "audio_base64 is required"),
        (json!({"audio_base64": 1}), "audio_base64 must be a string"),
        (
            json!({"audio_base64": ""}),
            "audio_base64 must not be empty",
        ),
        (
            json!({"audio_base64": "no base64!"}),
            "audio_base64 is no base64",
        ),
        (
            json!({"audio_base64": "AAAA"}),
            "audio_base64: the audio is neither wav, mp3, m4a nor webm",
        ),
        (
            json!({"audio_base64": half}),
            "audio_base64: the audio is broken",
        ),
        (
            json!({"audio_base64": STANDARD.encode(vec![0; 20 * 1024 * 1024 + 1])}),
            "audio_base64 holds more than",
        ),
        (json!([]), "the body must be a JSON object"),
    ] {
        let reply = sandbox.post(TRANSCRIPTIONS, &[], &body).await;
        assert_eq!(reply.status, 422, "{reason}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with(reason), "{detail}");
    }
    assert!(sandbox.debits().await.is_empty());
}

// Interface, POST /v1/audio/transcriptions: `language` (string, optional).
#[tokio::test]
async fn the_language_is_the_one_asked_for_or_that_of_the_text() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let german = sound(&say(&sandbox, "Der Fluss ist breit und das Wasser ist kalt.").await);
    let audio = STANDARD.encode(german);
    for (asked, language) in [
        (Value::Null, Some("de")),
        (json!("pt-BR"), Some("pt-BR")),
        (json!("en_US"), None),
        (json!(""), None),
        (json!(["en"]), None),
    ] {
        let body = json!({"audio_base64": audio, "language": asked});
        let reply = sandbox.post(TRANSCRIPTIONS, &[], &body).await;
        match language {
            Some(language) => assert_eq!(reply.json()["language"], language),
            None => {
                assert_eq!(reply.status, 422, "{asked}");
                assert!(
                    reply.json()["detail"]
                        .as_str()
                        .unwrap()
                        .starts_with("language")
                );
            }
        }
    }
}

// Interface, Metering: Speech routes bill per minute of audio.
#[tokio::test]
async fn a_minute_of_sound_made_or_heard_has_its_price_to_the_sample() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let audio = sound(&say(&sandbox, "Rivers run to the sea.").await);
    let samples = i64::try_from(riff(&audio).samples.len()).unwrap();
    hear(&sandbox, &audio).await;
    hear(&sandbox, &fixture("tone.mp3")).await;

    let made = (samples * 15_000 + 959_999) / 960_000;
    let heard = (samples * 6_000 + 959_999) / 960_000;
    // 0.75 s at 100 micro-USD a second.
    assert_eq!(sandbox.debits().await, [made, heard, 75]);
    let books = sandbox.books().await;
    assert_eq!(books["balance_micro_usd"], 100_000_000 - made - heard - 75);
    assert_eq!(books["debits"][0]["route"], SPEECH);
}

// Interface, Errors 402: organization balance empty (inference, eval runs, frontier comparison, speech).
#[tokio::test]
async fn an_empty_balance_is_402_before_any_work() {
    let sandbox = Sandbox::start_with(built_in()).await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    assert_eq!(say(&sandbox, "hello").await.status, 402);
    // Bytes that no work could read: it was not begun.
    assert_eq!(hear(&sandbox, b"no audio").await.status, 402);
    sandbox.control("balance", json!({"micro_usd": 1})).await;
    assert_eq!(hear(&sandbox, b"no audio").await.status, 422);
    assert_eq!(say(&sandbox, "hello").await.status, 200);
    assert_eq!(say(&sandbox, "hello").await.status, 402);
}

// Interface, Idempotency-Key: The audio routes ignore it: a retry runs and bills again.
#[tokio::test]
async fn an_idempotency_key_is_ignored_and_a_retry_bills_again() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let key = [("Idempotency-Key", "k-1")];
    let first = sandbox.post(SPEECH, &key, &json!({"text": "one"})).await;
    let again = sandbox.post(SPEECH, &key, &json!({"text": "one"})).await;
    let other = sandbox
        .post(SPEECH, &key, &json!({"text": "another"}))
        .await;
    let audio = json!({"audio_base64": STANDARD.encode(fixture("tone.mp3"))});
    let heard = sandbox.post(TRANSCRIPTIONS, &key, &audio).await;

    for reply in [&first, &again, &other, &heard] {
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("idempotent-replayed"), None);
    }
    assert_eq!(sandbox.debits().await.len(), 4);
}

// Interface, Limits: concurrency and rate apply to inference.
#[tokio::test]
async fn the_ceilings_on_inference_do_not_hold_for_speech() {
    let sandbox = Sandbox::start_with(built_in()).await;
    sandbox
        .control("limits", json!({"in_flight": 0, "per_minute": 0}))
        .await;

    assert_eq!(say(&sandbox, "hello").await.status, 200);
    assert_eq!(hear(&sandbox, &fixture("tone.mp3")).await.status, 200);
    assert_eq!(sandbox.post(CHAT, &[], &ask("hello")).await.status, 429);
}

// Interface, Authentication: A missing or invalid key returns 401; authenticated but not allowed 403.
#[tokio::test]
async fn speech_needs_a_key_that_is_allowed_and_debits_its_own_organization() {
    let mut scenario = Scenario::default().apply(built_in());
    scenario.forbidden_keys.push("barred".to_owned());
    let second =
        Scenario::from_toml_str("[[organization]]\nname = \"org-2\"\napi_key = \"two\"").unwrap();
    let sandbox = Sandbox::start_with(second.apply(scenario)).await;
    let body = json!({"text": "hello"});
    for (key, status) in [
        ("Bearer wrong", 401),
        ("Bearer barred", 403),
        ("Bearer two", 200),
    ] {
        let reply = sandbox.post(SPEECH, &[("Authorization", key)], &body).await;
        assert_eq!(reply.status, status, "{key}");
    }

    let books = sandbox.books().await;
    assert_eq!(books["balances_micro_usd"]["org-1"], 100_000_000);
    assert_eq!(books["debits"][0]["org"], "org-2");
    assert_eq!(sandbox.send("GET", SPEECH, &[], None).await.status, 405);
}

// Interface, Metering: A request or turn that fails bills nothing.
#[tokio::test]
async fn a_fault_in_the_place_of_speech_bills_nothing_and_one_after_it_was_billed() {
    let sandbox = Sandbox::start_with(built_in()).await;
    sandbox
        .fault(json!({"status": 503, "retry_after": "1"}))
        .await;
    assert_eq!(say(&sandbox, "hello").await.status, 503);
    assert!(sandbox.debits().await.is_empty());

    sandbox.fault(json!({"cut_before_head": true})).await;
    assert_eq!(say(&sandbox, "hello").await.status, 0);
    assert_eq!(sandbox.debits().await.len(), 1);
}

#[tokio::test]
async fn espeak_speaks_when_it_is_installed_and_wanted() {
    if !std::path::Path::new("/usr/bin/espeak-ng").is_file() {
        println!("skipped: espeak-ng is not installed");
        return;
    }
    let sandbox = Sandbox::start().await;
    let text = "A wide river; <b>\"quoted\"</b> -v de [[h@loU]] Grüße 世界.";

    let reply = say(&sandbox, text).await;
    let audio = sound(&reply);
    let wav = riff(&audio);
    let heard = hear(&sandbox, &audio).await.json();
    let changed = sandbox
        .control("settings", json!({"synthesis": "built_in"}))
        .await;

    assert_eq!((wav.channels, wav.bits, wav.rate), (1, 16, 22_050));
    assert_eq!(
        reply.json()["duration_s"],
        json!(wav.samples.len() as f64 / 22_050.0)
    );
    assert_eq!(heard["text"], text);
    assert_eq!(changed["synthesis"], "built_in");
    assert_eq!(say(&sandbox, text).await.json()["sample_rate"], 16_000);
}

// Interface, What the service does: Speech: transcription (speech to text) and speech synthesis (text to speech).
#[tokio::test]
async fn a_transcription_server_of_ones_own_hears_the_bytes_and_its_words_win() {
    let server = ModelServer::start();
    let toml = server.model("transcription", "", json!({}));
    let scenario = Scenario::from_toml_str(&toml).unwrap();
    let sandbox = Sandbox::start_with(scenario.apply(built_in())).await;
    let audio = sound(&say(&sandbox, "words of our own").await);

    let body = json!({"audio_base64": STANDARD.encode(&audio), "language": "de-AT"});
    let heard = sandbox.post(TRANSCRIPTIONS, &[], &body).await;

    let seen = server.seen().await;
    let form = seen[0]["body"].as_str().unwrap();
    assert_eq!(seen[0]["path"], TRANSCRIPTIONS);
    assert!(form.contains("filename=\"audio.wav\""));
    assert!(form.contains("name=\"language\"\r\n\r\nde\r\n"));
    let text = heard.json()["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with(" bytes came"), "{text}");
    let came: usize = text.split(' ').next().unwrap().parse().unwrap();
    assert!(came > audio.len());
    assert_eq!(heard.json()["language"], "de-AT");
    assert_eq!(
        heard.header("x-sandbox-assumed"),
        Some("transcription-language,transcription-duration")
    );
    let debits = sandbox.debits().await.len();
    // What cannot be heard is not sent on.
    assert_eq!(hear(&sandbox, b"no audio").await.status, 422);
    assert_eq!(server.seen().await.len(), 1);
    drop(server);
    let failed = hear(&sandbox, &audio).await;
    assert!([502, 503].contains(&failed.status), "{}", failed.text());
    assert_eq!(sandbox.debits().await.len(), debits);
}
