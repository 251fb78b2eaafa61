//! The built-in voice: a source-filter synthesiser.
//!
//! Glottal pulses and breath pass a cascade of formant resonators; hiss passes one of its own. The aims of
//! [`super::phones`] are reached by gliding, as a tongue does.
//! Promise: the same words, voice and build give the same samples; no text takes longer than
//! [`SPEECH_S_MAX`]: what would is spoken faster.

use super::{
    phones::{Segment, silence},
    reading::{self, Said},
    voices::Voice,
};
use std::{
    f32::consts::TAU,
    sync::atomic::{AtomicBool, Ordering},
};

/// Samples a second.
pub const RATE_HZ: u32 = 16_000;
/// No speech is longer.
pub const SPEECH_S_MAX: u64 = 600;
/// Samples between two looks at the aims: 5 ms.
const STEP: usize = 80;
const RATE: f32 = 16_000.0;
/// Formant widths, Hz; the fourth formant stands still.
const WIDTHS_HZ: [f32; 3] = [70.0, 100.0, 150.0];
const FOURTH_HZ: f32 = 3_500.0;
const FOURTH_WIDTH_HZ: f32 = 250.0;
const EDGE_MS: u16 = 40;
const SENTENCE_MS: u16 = 320;
const WORD_MS: u16 = 45;

/// Says `text`. `None` when `stop` was set meanwhile.
pub fn speak(text: &str, voice: &Voice, stop: &AtomicBool) -> Option<Vec<i16>> {
    speak_within(SPEECH_S_MAX * 1_000, text, voice, stop)
}

fn speak_within(longest_ms: u64, text: &str, voice: &Voice, stop: &AtomicBool) -> Option<Vec<i16>> {
    let plan = plan(text);
    let ms: u64 = plan.iter().map(|(segment, _)| u64::from(segment.ms)).sum();
    let mut tract = Tract::new(voice);
    let mut samples = Vec::new();
    let mut spoken_ms = 0_u64;
    for (segment, pitch) in &plan {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        spoken_ms += u64::from(segment.ms);
        // The end of each segment on the time line, shrunk when the whole is too long.
        let end_ms = spoken_ms * longest_ms.min(ms) / ms.max(1);
        let end = usize::try_from(end_ms * u64::from(RATE_HZ) / 1_000).unwrap_or(usize::MAX);
        while samples.len() < end {
            let n = STEP.min(end - samples.len());
            tract.glide(segment, *pitch);
            samples.extend((0..n).map(|_| tract.sample(segment)));
        }
    }
    Some(samples)
}

/// What is said one after the other, each with its pitch over the voice's own.
fn plan(text: &str) -> Vec<(Segment, f32)> {
    let mut plan = vec![(silence(EDGE_MS), 1.0)];
    let mut sentence: Vec<Segment> = Vec::new();
    for said in reading::read(text) {
        match said {
            Said::Word(sounds) => {
                if !sentence.is_empty() {
                    sentence.push(silence(WORD_MS));
                }
                sentence.extend(sounds.iter().flat_map(|sound| sound.segments));
            }
            Said::Pause { ms } => sentence.push(silence(ms)),
            Said::End { question } => {
                intone(&mut plan, &sentence, question);
                sentence.clear();
                plan.push((silence(SENTENCE_MS), 1.0));
            }
        }
    }
    intone(&mut plan, &sentence, false);
    plan.push((silence(EDGE_MS), 1.0));
    plan
}

/// A statement falls; a question rises at its end.
fn intone(plan: &mut Vec<(Segment, f32)>, sentence: &[Segment], question: bool) {
    let all_ms: f32 = sentence.iter().map(|segment| f32::from(segment.ms)).sum();
    let mut before_ms = 0.0;
    for segment in sentence {
        let at = before_ms / all_ms.max(1.0);
        let pitch = if question && at > 0.6 {
            1.0 + (at - 0.6) * 0.9
        } else {
            1.12 - at * 0.27
        };
        plan.push((*segment, pitch));
        before_ms += f32::from(segment.ms);
    }
}

/// Two poles at a frequency.
#[derive(Debug, Default)]
struct Resonator {
    a: f32,
    b: f32,
    c: f32,
    last: f32,
    last_but_one: f32,
}

// === impl Resonator ===

impl Resonator {
    fn tune(&mut self, hz: f32, width_hz: f32) {
        let radius = (-std::f32::consts::PI * width_hz / RATE).exp();
        self.c = -radius * radius;
        self.b = 2.0 * radius * (TAU * hz.min(RATE * 0.48) / RATE).cos();
        self.a = 1.0 - self.b - self.c;
    }

    fn pass(&mut self, input: f32) -> f32 {
        let output = self.a * input + self.b * self.last + self.c * self.last_but_one;
        self.last_but_one = self.last;
        self.last = output;
        output
    }
}

#[derive(Debug)]
struct Tract {
    pitch_hz: f32,
    scale: f32,
    aims: [f32; 3],
    voicing: f32,
    breath: f32,
    hiss: f32,
    phase: f32,
    step: f32,
    glottis: Resonator,
    formants: [Resonator; 3],
    fourth: Resonator,
    teeth: Resonator,
    noise: u32,
    last: f32,
}

// === impl Tract ===

impl Tract {
    fn new(voice: &Voice) -> Self {
        let mut tract = Self {
            pitch_hz: voice.pitch_hz,
            scale: voice.tract,
            aims: [500.0, 1_500.0, 2_500.0],
            voicing: 0.0,
            breath: 0.0,
            hiss: 0.0,
            phase: 0.0,
            step: 0.0,
            glottis: Resonator::default(),
            formants: Default::default(),
            fourth: Resonator::default(),
            teeth: Resonator::default(),
            noise: 0x2545_f491,
            last: 0.0,
        };
        tract.glottis.tune(0.0, 200.0);
        tract.fourth.tune(FOURTH_HZ * voice.tract, FOURTH_WIDTH_HZ);
        tract
    }

    /// One step nearer to the aim.
    fn glide(&mut self, segment: &Segment, pitch: f32) {
        let near = |now: f32, aim: f32, part: f32| now + (aim - now) * part;
        for (now, aim) in self.aims.iter_mut().zip(segment.formants) {
            *now = near(*now, aim, 0.2);
        }
        self.voicing = near(self.voicing, segment.voicing, 0.55);
        self.breath = near(self.breath, segment.breath, 0.7);
        self.hiss = near(self.hiss, segment.hiss, 0.8);
        for ((formant, hz), width_hz) in self.formants.iter_mut().zip(self.aims).zip(WIDTHS_HZ) {
            formant.tune(hz * self.scale, width_hz);
        }
        self.teeth.tune(segment.hiss_hz, segment.hiss_width_hz);
        self.step = self.pitch_hz * pitch / RATE;
    }

    fn sample(&mut self, segment: &Segment) -> i16 {
        self.phase += self.step;
        let pulse = if self.phase >= 1.0 {
            self.phase -= 1.0;
            1.0
        } else {
            0.0
        };
        // One pulse in a period holds as much energy as the period is long.
        let voice = self
            .glottis
            .pass(pulse * self.voicing / self.step.max(0.001));
        let noise = self.noise();
        let mut sound = voice + noise * self.breath * 0.6;
        for formant in &mut self.formants {
            sound = formant.pass(sound);
        }
        sound = self.fourth.pass(sound);
        // Lips radiate the change of the flow.
        let mouth = sound - self.last * 0.95;
        self.last = sound;
        let hiss =
            self.teeth.pass(noise * self.hiss) * segment.hiss_width_hz.max(1.0).sqrt() / 120.0;
        to_i16((mouth * 1.6 + hiss) * 0.55)
    }

    /// White noise from -1 to 1 (xorshift).
    fn noise(&mut self) -> f32 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 17;
        self.noise ^= self.noise << 5;
        let high = u16::try_from(self.noise >> 16).unwrap_or_default();
        f32::from(high) / 32_768.0 - 1.0
    }
}

fn to_i16(sound: f32) -> i16 {
    // Soft at the top, so that a loud vowel does not crack.
    let bounded = (sound / (1.0 + sound.abs())) * 32_000.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded to 32,000; a cast saturates"
    )]
    let sample = bounded as i16;
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::voices;

    fn say(text: &str) -> Vec<i16> {
        speak(text, voices::default(), &AtomicBool::new(false)).unwrap()
    }

    fn loudness(samples: &[i16]) -> f64 {
        let sum: f64 = samples.iter().map(|s| f64::from(*s).powi(2)).sum();
        (sum / samples.len().max(1) as f64).sqrt()
    }

    /// How strong one frequency is (Goertzel).
    fn strength(samples: &[i16], hz: f64) -> f64 {
        let turn = std::f64::consts::TAU * hz / 16_000.0;
        let (re, im) = samples
            .iter()
            .enumerate()
            .fold((0.0, 0.0), |(re, im), (n, s)| {
                let angle = turn * n as f64;
                (
                    re + f64::from(*s) * angle.cos(),
                    im + f64::from(*s) * angle.sin(),
                )
            });
        (re * re + im * im).sqrt() / samples.len() as f64
    }

    fn band(samples: &[i16], from: u32, to: u32) -> f64 {
        (from..to)
            .step_by(20)
            .map(|hz| strength(samples, f64::from(hz)).powi(2))
            .sum()
    }

    #[test]
    fn the_same_text_gives_the_same_samples_and_another_others() {
        assert_eq!(say("a wide river"), say("a wide river"));
        assert_ne!(say("a wide river"), say("a wide liver"));
    }

    #[test]
    fn speech_is_audible_and_pauses_are_silent() {
        let samples = say("Rivers run. Lakes lie.");

        assert!(loudness(&samples) > 1_000.0, "{}", loudness(&samples));
        assert!(samples.iter().all(|s| s.unsigned_abs() < 32_000));
        assert!(loudness(&samples[..320]) < 50.0);
        let quietest = samples
            .chunks_exact(1_600)
            .map(loudness)
            .fold(f64::MAX, f64::min);
        assert!(quietest < 50.0, "a pause between the sentences: {quietest}");
    }

    #[test]
    fn vowels_have_their_formants_and_an_s_hisses() {
        let middle = |text: &str| {
            let samples = say(text);
            samples[samples.len() / 2 - 400..samples.len() / 2 + 400].to_vec()
        };
        let (see, saw) = (middle("ee"), middle("aw"));
        // The second formant of "ee" lies far above that of "aw", in every voice.
        let bright = |samples: &[i16]| band(samples, 1_900, 2_700) / band(samples, 600, 1_400);
        assert!(
            bright(&see) > 0.3 && bright(&saw) < 0.03,
            "{} {}",
            bright(&see),
            bright(&saw)
        );
        let s = phones_of("S");
        assert!(band(&s, 4_800, 6_400) > band(&s, 200, 2_000) * 4.0);
    }

    fn phones_of(name: &str) -> Vec<i16> {
        let mut tract = Tract::new(voices::default());
        let segment = crate::speech::phones::by_name(name).unwrap().segments[0];
        (0..20)
            .flat_map(|_| {
                tract.glide(&segment, 1.0);
                (0..STEP)
                    .map(|_| tract.sample(&segment))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn a_text_that_would_take_too_long_is_spoken_faster() {
        let within = |longest_ms: u64| {
            let stop = AtomicBool::new(false);
            let samples = speak_within(longest_ms, "eight, nine.", voices::default(), &stop);
            samples.unwrap().len()
        };
        let unhurried = within(SPEECH_S_MAX * 1_000);

        assert_eq!(say("eight, nine.").len(), unhurried);
        assert!(unhurried > 16_000);
        assert_eq!(within(1_000), 16_000);
        assert_eq!(within(10), 160);
    }

    #[test]
    fn a_voice_that_is_told_to_stop_stops() {
        assert_eq!(
            speak("hello", voices::default(), &AtomicBool::new(true)),
            None
        );
    }
}
