use super::*;

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len()).expect("small");
    let mut chunk = [&name[..], &size.to_le_bytes(), body].concat();
    chunk.resize(chunk.len() + body.len() % 2, 0);
    chunk
}

fn wav(rate: u32, block: u16, sound: &[u8]) -> Vec<u8> {
    let format = [
        &1u16.to_le_bytes()[..],
        &1u16.to_le_bytes(),
        &rate.to_le_bytes(),
        &(rate * u32::from(block)).to_le_bytes(),
        &block.to_le_bytes(),
        &16u16.to_le_bytes(),
    ];
    let chunks = [
        chunk(b"said", b"odd"),
        chunk(b"fmt ", &format.concat()),
        chunk(b"data", sound),
    ];
    [&b"RIFF\0\0\0\0WAVE"[..], &chunks.concat()].concat()
}

#[test]
fn a_sound_is_as_long_as_its_samples() {
    let sound = Sound::of_wav(&wav(8_000, 2, &[0; 2 * 12_004])).expect("a WAV");

    let expected = Sound {
        rate: 8_000,
        samples: 12_004,
    };
    assert_eq!(sound, expected);
    // 1.5005 s, and halves go up.
    assert_eq!(sound.ms(), Some(1501));
}

#[test]
fn what_is_cut_or_no_wav_is_no_sound() {
    let whole = wav(8_000, 2, &[0; 16]);

    for cut in [0, 3, 11, 20, 40, whole.len() - 1] {
        assert!(Sound::of_wav(&whole[..cut]).is_err(), "{cut}");
    }
    assert!(Sound::of_wav(&wav(8_000, 0, &[0; 16])).is_err());
    assert!(Sound::of_wav(b"\x89PNG\r\n\x1a\n").is_err());
}

#[test]
fn a_picture_has_the_size_of_its_head() {
    let png = [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
        &3u32.to_be_bytes(),
        &2u32.to_be_bytes(),
    ]
    .concat();

    let pixels = Pixels::of_png(&png).expect("a PNG");

    assert_eq!((pixels.width, pixels.height), (3, 2));
    assert!(Pixels::of_png(&png[..20]).is_err());
    assert!(Pixels::of_png(&wav(8_000, 2, &[])).is_err());
}

#[test]
fn a_data_url_is_its_type_and_bytes() {
    let read = data_url("data:text/plain;base64,aGk=").expect("a data URL");

    assert_eq!(read, ("text/plain".to_owned(), b"hi".to_vec()));
    assert!(data_url("data:text/plain,hi").is_err());
    assert!(data_url("data:text/plain;base64,?").is_err());
}
