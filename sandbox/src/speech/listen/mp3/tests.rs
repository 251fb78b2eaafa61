use super::*;

/// MPEG 2, layer III, 64 kbit/s at 16 kHz: 288 bytes of frame.
const HEADER: [u8; 4] = [0xff, 0xf3, 0x88, 0xc0];

fn frame(header: [u8; 4]) -> Vec<u8> {
    let bytes = Header::read(&header).unwrap().bytes;
    let mut frame = vec![0; bytes];
    frame[..4].copy_from_slice(&header);
    frame
}

fn tag(flags: u8, size: [u8; 4], body: usize) -> Vec<u8> {
    let head = [b"ID3".as_slice(), &[4, 0, flags], &size].concat();
    [head, vec![0x55; body]].concat()
}

#[test]
fn a_frame_counts_when_another_one_follows() {
    let one = frame(HEADER);
    let stereo = frame([0xff, 0xf3, 0x88, 0x00]);
    let fast = frame([0xff, 0xfb, 0x90, 0xc0]);
    assert_eq!((one.len(), fast.len()), (288, 417));
    let tail = [b"TAG".as_slice(), &[0; 125]].concat();
    let table: [(&str, Vec<u8>, Option<usize>); 9] = [
        ("two", one.repeat(2), Some(0)),
        ("the last", one.clone(), Some(0)),
        ("the last before a tag", [&one[..], &tail].concat(), Some(0)),
        ("cut", one[..287].to_vec(), None),
        ("one and noise", [&one[..], &[7; 40]].concat(), None),
        (
            "another rate behind it",
            [&one[..], &fast, &fast].concat(),
            Some(288),
        ),
        (
            "other channels behind it",
            [&one[..], &stereo].concat(),
            Some(288),
        ),
        ("junk first", [&[0xff; 9][..], &one, &one].concat(), Some(9)),
        ("text", b"this is a text, no sound".to_vec(), None),
    ];
    for (name, file, expected) in table {
        assert_eq!(first_frame(&file).ok(), expected, "{name}");
    }
    for before in [LEAD_IN_BYTES_MAX - 1, LEAD_IN_BYTES_MAX] {
        let file = [vec![0; before], one.repeat(2)].concat();
        assert_eq!(first_frame(&file).is_ok(), before < LEAD_IN_BYTES_MAX);
    }
}

#[test]
fn tags_at_the_front_are_passed_over_and_never_believed_beyond_the_end() {
    let sound = frame(HEADER).repeat(2);
    let behind = |tags: &[Vec<u8>]| first_frame(&[tags.concat(), sound.clone()].concat());
    // 2 * 128 + 3 bytes.
    let whole = tag(0, [0, 0, 2, 3], 259);
    let footed = tag(0x10, [0, 0, 0, 5], 15);

    assert_eq!(behind(std::slice::from_ref(&whole)), Ok(269));
    assert_eq!(behind(&[whole, footed]), Ok(269 + 25));
    for size in [[0x7f; 4], [0, 1, 0, 0], [0xff; 4], [0, 0, 0, 0x80]] {
        let found = behind(&[tag(0, size, 4)]);
        assert!(matches!(found, Err(ListenError::Broken(_))), "{size:?}");
    }
    assert!(matches!(
        first_frame(&tag(0x10, [0, 0, 0, 5], 14)),
        Err(ListenError::Broken(_))
    ));
    assert_eq!(first_frame(b"ID3"), Err(ListenError::UnknownContainer));
}
