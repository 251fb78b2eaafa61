use super::*;

/// An element with a size of one byte.
fn element(id: &[u8], body: &[u8]) -> Vec<u8> {
    let size = 0x80 | u8::try_from(body.len()).unwrap();
    [id, &[size], body].concat()
}

/// A browser's recording: nothing has an end, and the header has no duration.
fn recorded(duration: Option<f64>, blocks: &[(u8, u8)]) -> Vec<u8> {
    let unknown = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let mut file = element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], b"webm"));
    file.extend([0x18, 0x53, 0x80, 0x67].iter().chain(&unknown));
    let duration_field = duration.map_or(Vec::new(), |d| element(&[0x44, 0x89], &d.to_be_bytes()));
    file.extend(element(&[0x15, 0x49, 0xa9, 0x66], &duration_field));
    let track = [
        element(&[0xd7], &[1]),
        element(&[0x83], &[2]),
        element(&[0x86], b"A_OPUS"),
    ];
    let tracks = element(&[0xae], &track.concat());
    file.extend(element(&[0x16, 0x54, 0xae, 0x6b], &tracks));
    file.extend([0x1f, 0x43, 0xb6, 0x75].iter().chain(&unknown));
    file.extend(element(&[0xe7], &[0]));
    for (at, toc) in blocks {
        file.extend(element(&[0xa3], &[0x81, 0, *at, 0x80, *toc, 0]));
    }
    file
}

/// A single Opus frame of 20 ms.
const TOC_20_MS: u8 = 1 << 3;

#[test]
fn a_recording_without_a_duration_ends_with_its_last_block() {
    let file = recorded(None, &[(0, TOC_20_MS), (20, TOC_20_MS), (40, TOC_20_MS)]);

    assert_eq!(length(&file).unwrap().parts, 60_000_000);
}

#[test]
fn a_duration_is_believed_as_far_as_the_blocks_allow() {
    for (header_ms, ms) in [
        (53.5, 53.5),
        (1.0, 40.0),
        (1e9, 1_040.0),
        (f64::NAN, 60.0),
        (-1.0, 60.0),
    ] {
        let file = recorded(Some(header_ms), &[(0, TOC_20_MS), (40, TOC_20_MS)]);
        let parts = length(&file).unwrap().parts;
        assert_eq!(parts as f64 / 1e6, ms, "{header_ms}");
    }
}

#[test]
fn the_length_of_an_opus_packet_is_read_from_it() {
    for (packet, ms) in [
        (&[0_u8 << 3][..], 10.0),
        (&[3 << 3], 60.0),
        (&[(15 << 3) | 1], 40.0),
        (&[16 << 3], 2.5),
        (&[(31 << 3) | 3, 3], 60.0),
        (&[(3 << 3) | 3, 63], 120.0),
        (&[(31 << 3) | 3], 0.0),
        (&[], 0.0),
    ] {
        assert_eq!(opus_ns(packet) as f64 / 1e6, ms, "{packet:?}");
    }
}

#[test]
fn a_file_without_sound_and_a_cut_file_are_different_errors() {
    let file = recorded(None, &[(0, TOC_20_MS)]);

    assert_eq!(length(&recorded(Some(5.0), &[])), Err(ListenError::NoSound));
    assert!(matches!(
        length(&file[..file.len() - 1]),
        Err(ListenError::Broken(_))
    ));
    let tracks = [&file[..], &element(&[0xae], &[]).repeat(TRACKS_MAX - 1)].concat();
    assert!(length(&tracks).is_ok());
    let tracks = [&tracks[..], &element(&[0xae], &[])].concat();
    assert!(matches!(length(&tracks), Err(ListenError::Unsupported(_))));
    let other = element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], b"else"));
    assert_eq!(length(&other), Err(ListenError::UnknownContainer));
}
