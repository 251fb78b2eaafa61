use super::*;

fn say(text: &str) -> Vec<i16> {
    speak(text, voices::default(), &AtomicBool::new(false)).unwrap()
}

fn loudness(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|s| f64::from(*s).powi(2)).sum();
    (sum / samples.len().max(1) as f64).sqrt()
}

#[test]
fn the_same_text_gives_the_same_samples_and_another_others() {
    assert_eq!(say("a wide river"), say("a wide river"));
    assert_ne!(say("a wide river"), say("a wide liver"));
    assert_eq!(say("River"), say("river"));
}

#[test]
fn words_are_audible_and_pauses_are_silent() {
    let samples = say("Rivers run. Lakes lie.");

    assert!(loudness(&samples) > 1_000.0, "{}", loudness(&samples));
    assert!(samples.iter().any(|s| s.unsigned_abs() > 10_000));
    assert!(samples.iter().all(|s| s.unsigned_abs() <= 12_000));
    assert_eq!(loudness(&samples[..640]), 0.0);
    let quietest = samples
        .chunks_exact(1_600)
        .map(loudness)
        .fold(f64::MAX, f64::min);
    assert_eq!(quietest, 0.0, "a pause between the sentences");
}

#[test]
fn a_tone_crosses_zero_as_often_as_its_pitch_says() {
    let samples: Vec<i16> = (0..16_000_u64)
        .map(|at| sample(at * ((200 << 32) / 16_000), FADE))
        .collect();
    let rises = samples.windows(2).filter(|two| two[0] < 0 && two[1] >= 0);

    assert!((199..=200).contains(&rises.count()));
}

#[test]
fn a_text_that_would_take_too_long_is_spoken_faster() {
    let within = |longest_ms: u64| {
        let stop = AtomicBool::new(false);
        let samples = speak_within(longest_ms, "eight, nine. ten.", voices::default(), &stop);
        samples.unwrap().len()
    };
    let unhurried = within(SPEECH_S_MAX * 1_000);

    assert_eq!(say("eight, nine. ten.").len(), unhurried);
    assert!(unhurried > 16_000);
    assert_eq!(within(1_000), 16_000);
    assert_eq!(within(10), 160);
}

#[test]
fn a_voice_ends_when_its_stop_flag_is_set() {
    assert_eq!(
        speak("hello", voices::default(), &AtomicBool::new(true)),
        None
    );
}
