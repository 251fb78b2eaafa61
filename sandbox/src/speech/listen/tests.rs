use super::*;

mod memory;

/// Three quarters of a second of 440 Hz, in each container (made with ffmpeg).
const TONES: [(&str, &[u8]); 9] = [
    (
        "tone.mp3",
        include_bytes!("../../../tests/fixtures/tone.mp3"),
    ),
    (
        "tone-bare.mp3",
        include_bytes!("../../../tests/fixtures/tone-bare.mp3"),
    ),
    (
        "tone.m4a",
        include_bytes!("../../../tests/fixtures/tone.m4a"),
    ),
    (
        "tone-fragmented.m4a",
        include_bytes!("../../../tests/fixtures/tone-fragmented.m4a"),
    ),
    (
        "tone-alac.m4a",
        include_bytes!("../../../tests/fixtures/tone-alac.m4a"),
    ),
    (
        "tone.webm",
        include_bytes!("../../../tests/fixtures/tone.webm"),
    ),
    (
        "tone-live.webm",
        include_bytes!("../../../tests/fixtures/tone-live.webm"),
    ),
    (
        "tone-vorbis.webm",
        include_bytes!("../../../tests/fixtures/tone-vorbis.webm"),
    ),
    (
        "tone-piped.wav",
        include_bytes!("../../../tests/fixtures/tone-piped.wav"),
    ),
];

fn hear(bytes: &[u8]) -> Result<Heard, ListenError> {
    listen(&Bytes::copy_from_slice(bytes), &AtomicBool::new(false))
}

fn tone(name: &str) -> &'static [u8] {
    TONES.iter().find(|(other, _)| *other == name).unwrap().1
}

#[test]
fn each_kind_of_file_lasts_as_long_as_its_samples() {
    for (name, container, parts, per_second) in [
        // Exactly the 0.75 s that went in: the mp3's tag names the padding.
        ("tone.mp3", Container::Mp3, 12_000, 16_000),
        // Without the tag, whole frames of 576: 23 of them.
        ("tone-bare.mp3", Container::Mp3, 23 * 576, 16_000),
        // So does the m4a's edit list.
        ("tone.m4a", Container::M4a, 12_000, 16_000),
        // Without one: 13 frames of 1,024, the encoder's lead-in among them.
        ("tone-fragmented.m4a", Container::M4a, 13 * 1_024, 16_000),
        // Not decoded: as long as its packets say.
        ("tone-alac.m4a", Container::M4a, 6_000, 8_000),
        // As their headers say.
        ("tone.webm", Container::Webm, 758_000_000, 1_000_000_000),
        (
            "tone-vorbis.webm",
            Container::Webm,
            766_000_000,
            1_000_000_000,
        ),
        // No duration in the header: the last block begins at 741 ms and lasts 20.
        (
            "tone-live.webm",
            Container::Webm,
            761_000_000,
            1_000_000_000,
        ),
        ("tone-piped.wav", Container::Wav, 6_000, 8_000),
    ] {
        let heard = hear(tone(name)).unwrap();
        let length = Length { parts, per_second };
        assert_eq!(
            (heard.container, heard.length),
            (container, length),
            "{name}"
        );
        assert_eq!(heard.said, None);
        assert!((heard.length.seconds() - 0.75).abs() < 0.1, "{name}");
    }
}

#[test]
fn what_is_no_audio_is_refused_with_its_reason() {
    let broken = |error| matches!(error, Err(ListenError::Broken(_)));
    let m4a = tone("tone.m4a");
    let mut no_index = m4a.to_vec();
    let at = m4a.windows(4).position(|four| four == b"moov").unwrap();
    no_index[at..at + 4].copy_from_slice(b"free");

    assert_eq!(
        hear(b"this is a text, no sound"),
        Err(ListenError::UnknownContainer)
    );
    assert_eq!(hear(&[0; 4_000]), Err(ListenError::UnknownContainer));
    assert!(broken(hear(b"RIFF\0\0\0\0WAVE")));
    assert!(broken(hear(&no_index)));
    assert!(broken(hear(&m4a[..m4a.len() / 2])));
    let webm = tone("tone.webm");
    assert!(broken(hear(&webm[..webm.len() / 2])));
    let adpcm = include_bytes!("../../../tests/fixtures/tone-adpcm.wav");
    assert!(matches!(hear(adpcm), Err(ListenError::Unsupported(_))));
    let silent = wav::write(&[], 8_000, "").unwrap();
    assert_eq!(hear(&silent), Err(ListenError::NoSound));
}

#[test]
fn a_recording_over_the_longest_is_refused_and_the_longest_is_not() {
    let longest = usize::try_from(AUDIO_S_MAX).unwrap();
    let fits = wav::write(&vec![0; longest], 1, "").unwrap();
    let over = wav::write(&vec![0; longest + 1], 1, "").unwrap();

    assert!(hear(&fits).is_ok());
    assert_eq!(hear(&over), Err(ListenError::TooLong));
}

#[test]
fn a_listener_ends_when_its_stop_flag_is_set() {
    let audio = Bytes::from_static(tone("tone.mp3"));

    assert_eq!(
        listen(&audio, &AtomicBool::new(true)),
        Err(ListenError::Stopped)
    );
}

/// Two readers of the same file: ours and symphonia's, which only the tests have.
#[test]
fn symphonia_reads_our_wav_to_the_same_sample() {
    use symphonia::default::{codecs::PcmDecoder, formats::WavReader};
    let samples: Vec<i16> = (0..12_345).map(|n| n % 700).collect();
    let wav = Bytes::from(wav::write(&samples, 16_000, "some words").unwrap());

    let mut reader = WavReader::try_new(source(wav.clone()), &gapless()).unwrap();
    let track = reader.tracks()[0].clone();
    let decoder = PcmDecoder::try_new(&track.codec_params, &DecoderOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let count = Count::of(&mut reader, &track, Some(Box::new(decoder)), &stop).unwrap();

    assert_eq!(count.length(count.frames), Ok(hear(&wav).unwrap().length));
}

/// A numbered stream of bytes, the same in every run.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn no_bytes_make_a_listener_panic() {
    let mut refused = 0;
    for seed in 0..500_u64 {
        let mut next = noise(seed + 1);
        let (_, tone) = TONES[seed as usize % TONES.len()];
        let mut bytes = tone.to_vec();
        match seed % 3 {
            // Cut anywhere.
            0 => bytes.truncate(next() as usize % bytes.len()),
            // Some bytes changed.
            1 => {
                for _ in 0..=next() % 12 {
                    let at = next() as usize % bytes.len();
                    bytes[at] = next() as u8;
                }
            }
            // A true beginning, then noise.
            _ => {
                let from = next() as usize % bytes.len().min(400);
                bytes[from..]
                    .iter_mut()
                    .for_each(|byte| *byte = next() as u8);
            }
        }
        let heard = std::panic::catch_unwind(|| hear(&bytes)).expect("no panic");
        refused += usize::from(heard.is_err());
    }
    println!("refused {refused}");
    assert!(refused > 200, "{refused}");
}
