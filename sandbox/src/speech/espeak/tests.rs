use super::*;
use bursar_models::speech::voices;
use std::{fs, os::unix::fs::PermissionsExt};

/// A program of our own in the place of espeak-ng.
struct Stand {
    directory: PathBuf,
    espeak: Espeak,
}

impl Stand {
    fn new(name: &str, script: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("sandbox-espeak-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let program = directory.join("espeak-ng");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let espeak = Espeak { program };
        Self { directory, espeak }
    }

    async fn speak(&self, clock: &Clock) -> Result<Sound, EspeakError> {
        self.espeak.speak("hello", voices::default(), clock).await
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test]
async fn a_child_that_fails_or_says_nothing_is_an_error() {
    let clock = Clock::system();
    for (name, script) in [
        ("fails", "cat >/dev/null; exit 3"),
        ("mute", "cat >/dev/null"),
        ("noise", "cat >/dev/null; echo this is no sound"),
        ("deaf", "exit 0"),
    ] {
        let stand = Stand::new(name, script);
        assert!(stand.speak(&clock).await.is_err(), "{name}");
    }
    let absent = Espeak {
        program: PathBuf::from("/nowhere/espeak-ng"),
    };
    let error = absent.speak("hello", voices::default(), &clock).await;
    assert!(matches!(error, Err(EspeakError::Io(_))));
}

#[tokio::test]
async fn a_child_that_hangs_is_given_up_at_the_deadline() {
    let stand = Stand::new("hangs", "exec sleep 1000");
    let clock = Clock::system();

    let speaking = stand.speak(&clock);
    let moving = async {
        tokio::task::yield_now().await;
        clock.advance(DEADLINE);
    };
    let (said, ()) = tokio::join!(speaking, moving);

    assert!(matches!(said, Err(EspeakError::TimedOut)), "{said:?}");
}

#[tokio::test]
async fn a_child_that_never_ends_its_sound_is_stopped_at_the_bound() {
    let stand = Stand::new("endless", "cat >/dev/null; exec cat /dev/zero");

    let said = stand.speak(&Clock::system()).await;

    assert!(matches!(said, Err(EspeakError::TooLong)), "{said:?}");
}

#[tokio::test]
async fn the_child_sees_the_text_and_no_environment_of_ours() {
    let stand = Stand::new(
        "sees",
        "cat >\"$(dirname \"$0\")/text\"; env >\"$(dirname \"$0\")/env\"",
    );
    let text = "$(touch /tmp/x) `id` [[h@loU]] Grüße";

    let _ = stand
        .espeak
        .speak(text, voices::default(), &Clock::system())
        .await;

    let seen = fs::read_to_string(stand.directory.join("text")).unwrap();
    assert_eq!(seen, text.replace("[[", "[ ["));
    let environment = fs::read_to_string(stand.directory.join("env")).unwrap();
    assert!(environment.contains("LC_ALL=C.UTF-8"));
    assert!(
        !environment.contains("CARGO") && !environment.contains("HOME="),
        "{environment}"
    );
}

#[tokio::test]
async fn espeak_speaks_each_voice() {
    let Some(espeak) = Espeak::find() else {
        println!("skipped: espeak-ng is not installed");
        return;
    };
    let clock = Clock::system();
    for id in voices::ids().split(", ") {
        let voice = voices::by_id(id).unwrap();
        let said = espeak.speak("A wide river.", voice, &clock).await.unwrap();
        assert!(said.samples.len() > said.rate as usize / 2, "{id}");
        assert!(
            said.samples.iter().any(|s| s.unsigned_abs() > 3_000),
            "{id}"
        );
    }
}

// Interface, POST /v1/audio/speech: "Response: `{audio_base64, sample_rate, duration_s, format}`", whichever voice
// speaks: one that is installed and breaks is no reason to answer less.
#[tokio::test]
async fn the_route_speaks_with_the_built_in_voice_when_the_installed_one_breaks() {
    use crate::{Options, router, speech::Speech, state::State};
    use http_body_util::BodyExt;
    use std::sync::Arc;
    use tower::ServiceExt;

    for (name, script) in [("breaks", "cat >/dev/null; exit 3"), ("lies", "echo RIFF")] {
        let stand = Stand::new(name, script);
        let installed = Espeak {
            program: stand.espeak.program.clone(),
        };
        let mut speech = Speech::new();
        speech.espeak = Some(installed);
        let state = State::with_speech(&Options::default(), speech).unwrap();
        let request = http::Request::post("/v1/audio/speech")
            .header("Authorization", "Bearer sandbox-key")
            .body(axum::body::Body::from(r#"{"text": "rivers"}"#))
            .unwrap();

        let answer = router(Arc::clone(&state)).oneshot(request).await.unwrap();

        assert_eq!(answer.status(), 200, "{name}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        // The rate of the built-in voice; espeak-ng's is 22,050.
        assert_eq!(body["sample_rate"], 16_000, "{name}");
        assert!(body["duration_s"].as_f64().unwrap() > 0.2, "{name}");
        assert_eq!(state.books.requests().requests.len(), 1);
    }
}
