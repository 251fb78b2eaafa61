//! The sounds of the built-in voice: where the formants lie and what drives them.
//!
//! The targets are those of D. Klatt's cascade synthesiser (1980) for an adult, rounded.
//! Promise: every name that the letter rules use stands here once.

/// A stretch of sound with one aim; the voice glides from one to the next.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub ms: u16,
    /// First three formants, Hz.
    pub formants: [f32; 3],
    /// Strength of the glottal pulses, from 0 to 1.
    pub voicing: f32,
    /// Strength of breath through the formants.
    pub breath: f32,
    /// Strength of hiss at the teeth or lips, past the formants.
    pub hiss: f32,
    /// Where the hiss is strongest, and how wide, Hz.
    pub hiss_hz: f32,
    pub hiss_width_hz: f32,
}

#[derive(Debug)]
pub struct Phone {
    pub name: &'static str,
    pub segments: &'static [Segment],
}

pub const fn silence(ms: u16) -> Segment {
    Segment {
        ms,
        formants: [500.0, 1_500.0, 2_500.0],
        voicing: 0.0,
        breath: 0.0,
        hiss: 0.0,
        hiss_hz: 4_000.0,
        hiss_width_hz: 1_000.0,
    }
}

const fn voiced(ms: u16, formants: [f32; 3], voicing: f32) -> Segment {
    let mut segment = silence(ms);
    segment.formants = formants;
    segment.voicing = voicing;
    segment
}

const fn hissed(ms: u16, formants: [f32; 3], voicing: f32, hiss: [f32; 3]) -> Segment {
    let mut segment = voiced(ms, formants, voicing);
    let [strength, hz, width_hz] = hiss;
    segment.hiss = strength;
    segment.hiss_hz = hz;
    segment.hiss_width_hz = width_hz;
    segment
}

const fn breathed(ms: u16, formants: [f32; 3], breath: f32) -> Segment {
    let mut segment = voiced(ms, formants, 0.0);
    segment.breath = breath;
    segment
}

const fn phone(name: &'static str, segments: &'static [Segment]) -> Phone {
    Phone { name, segments }
}

pub fn by_name(name: &str) -> Option<&'static Phone> {
    PHONES.iter().find(|phone| phone.name == name)
}

const LABIAL: [f32; 3] = [300.0, 1_000.0, 2_150.0];
const DENTAL: [f32; 3] = [320.0, 1_300.0, 2_540.0];
const ALVEOLAR: [f32; 3] = [320.0, 1_600.0, 2_600.0];
const PALATAL: [f32; 3] = [300.0, 1_840.0, 2_750.0];
const VELAR: [f32; 3] = [300.0, 1_990.0, 2_850.0];

#[rustfmt::skip]
static PHONES: &[Phone] = &[
    phone("IY", &[voiced(130, [310.0, 2_020.0, 2_960.0], 1.0)]),
    phone("IH", &[voiced(100, [400.0, 1_800.0, 2_570.0], 1.0)]),
    phone("EH", &[voiced(110, [530.0, 1_680.0, 2_500.0], 1.0)]),
    phone("AE", &[voiced(140, [640.0, 1_660.0, 2_430.0], 1.0)]),
    phone("AA", &[voiced(150, [700.0, 1_220.0, 2_600.0], 1.0)]),
    phone("AO", &[voiced(150, [600.0, 990.0, 2_570.0], 1.0)]),
    phone("AH", &[voiced(110, [620.0, 1_220.0, 2_550.0], 1.0)]),
    phone("AX", &[voiced(70, [550.0, 1_260.0, 2_470.0], 0.8)]),
    phone("UH", &[voiced(100, [450.0, 1_100.0, 2_350.0], 1.0)]),
    phone("UW", &[voiced(60, [350.0, 1_250.0, 2_200.0], 1.0), voiced(80, [320.0, 900.0, 2_200.0], 1.0)]),
    phone("ER", &[voiced(140, [470.0, 1_270.0, 1_540.0], 1.0)]),
    phone("EY", &[voiced(90, [480.0, 1_720.0, 2_520.0], 1.0), voiced(80, [330.0, 2_020.0, 2_600.0], 0.9)]),
    phone("OW", &[voiced(90, [540.0, 1_100.0, 2_300.0], 1.0), voiced(80, [450.0, 900.0, 2_300.0], 0.9)]),
    phone("AY", &[voiced(100, [660.0, 1_200.0, 2_550.0], 1.0), voiced(90, [400.0, 1_880.0, 2_500.0], 0.9)]),
    phone("AW", &[voiced(100, [640.0, 1_230.0, 2_550.0], 1.0), voiced(90, [420.0, 940.0, 2_350.0], 0.9)]),
    phone("OY", &[voiced(100, [550.0, 960.0, 2_400.0], 1.0), voiced(90, [360.0, 1_820.0, 2_450.0], 0.9)]),
    phone("W", &[voiced(60, [290.0, 610.0, 2_150.0], 0.7)]),
    phone("Y", &[voiced(60, [260.0, 2_070.0, 3_020.0], 0.7)]),
    phone("R", &[voiced(70, [310.0, 1_060.0, 1_380.0], 0.7)]),
    phone("L", &[voiced(65, [310.0, 1_050.0, 2_880.0], 0.7)]),
    phone("M", &[voiced(75, [270.0, 1_000.0, 2_130.0], 0.45)]),
    phone("N", &[voiced(70, [270.0, 1_340.0, 2_470.0], 0.45)]),
    phone("NX", &[voiced(80, [270.0, 2_000.0, 2_900.0], 0.45)]),
    phone("F", &[hissed(100, LABIAL, 0.0, [0.12, 5_000.0, 4_000.0])]),
    phone("V", &[hissed(70, LABIAL, 0.4, [0.06, 5_000.0, 4_000.0])]),
    phone("TH", &[hissed(90, DENTAL, 0.0, [0.10, 6_000.0, 4_000.0])]),
    phone("DH", &[hissed(55, DENTAL, 0.45, [0.04, 6_000.0, 4_000.0])]),
    phone("S", &[hissed(105, ALVEOLAR, 0.0, [0.35, 5_600.0, 1_500.0])]),
    phone("Z", &[hissed(80, ALVEOLAR, 0.35, [0.20, 5_600.0, 1_500.0])]),
    phone("SH", &[hissed(110, PALATAL, 0.0, [0.40, 2_800.0, 900.0])]),
    phone("ZH", &[hissed(80, PALATAL, 0.35, [0.22, 2_800.0, 900.0])]),
    phone("HH", &[breathed(65, [500.0, 1_500.0, 2_500.0], 0.5)]),
    phone("P", &[silence(65), hissed(12, LABIAL, 0.0, [0.40, 900.0, 700.0]), breathed(30, LABIAL, 0.35)]),
    phone("T", &[silence(60), hissed(14, ALVEOLAR, 0.0, [0.50, 4_500.0, 1_500.0]), breathed(35, ALVEOLAR, 0.35)]),
    phone("K", &[silence(60), hissed(20, VELAR, 0.0, [0.50, 1_900.0, 500.0]), breathed(35, VELAR, 0.35)]),
    phone("B", &[voiced(60, LABIAL, 0.12), hissed(10, LABIAL, 0.4, [0.20, 900.0, 700.0])]),
    phone("D", &[voiced(55, ALVEOLAR, 0.12), hissed(10, ALVEOLAR, 0.4, [0.25, 4_500.0, 1_500.0])]),
    phone("G", &[voiced(55, VELAR, 0.12), hissed(14, VELAR, 0.4, [0.25, 1_900.0, 500.0])]),
    phone("CH", &[silence(55), hissed(90, PALATAL, 0.0, [0.42, 2_800.0, 900.0])]),
    phone("J", &[voiced(45, PALATAL, 0.12), hissed(65, PALATAL, 0.35, [0.26, 2_800.0, 900.0])]),
];
