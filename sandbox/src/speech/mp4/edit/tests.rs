use super::*;

fn a_box(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes(), name.as_slice(), body].concat()
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// A movie of 1,000 ticks a second with one track of 8,000, and this edit list.
fn file(list: &[u32]) -> Vec<u8> {
    let head = a_box(b"mdhd", &numbers(&[0, 0, 0, 8_000, 0, 0]));
    let sound = a_box(b"hdlr", &[&[0; 8], b"soun".as_slice(), &[0; 12]].concat());
    let media = a_box(b"mdia", &[head, sound].concat());
    let edits = a_box(b"edts", &a_box(b"elst", &numbers(list)));
    let track = a_box(b"trak", &[edits, media].concat());
    let movie = a_box(b"mvhd", &numbers(&[0, 0, 0, 1_000, 0]));
    a_box(b"moov", &[movie, track].concat())
}

#[test]
fn an_edit_list_decides_what_is_played() {
    const PAUSE: u32 = u32::MAX;
    for (list, played_frames) in [
        // One second from the 1,024th tick on, of 10,240.
        (vec![0, 1, 1_000, 1_024, 1], 8_000),
        // To the end.
        (vec![0, 1, 0, 1_024, 1], 9_216),
        // More than there is.
        (vec![0, 1, 60_000, 1_024, 1], 9_216),
        // A pause first; then two pieces.
        (vec![0, 3, 500, PAUSE, 1, 500, 0, 1, 250, 4_000, 1], 6_000),
        // Longer fields: a duration and a begin of 64 bits.
        (vec![1 << 24, 1, 0, 1_000, 0, 1_024, 1], 8_000),
        // Nothing that could be read.
        (vec![0, 0], 10_240),
        (vec![0, 9, 1_000, 1_024, 1], 10_240),
        (vec![0, 1, 500, PAUSE, 1], 10_240),
    ] {
        assert_eq!(
            played(&file(&list), 10_240, 8_000),
            played_frames,
            "{list:?}"
        );
    }
    // Decoded at twice the track's ticks.
    let list = file(&[0, 1, 1_000, 1_024, 1]);
    assert_eq!(played(&list, 20_480, 16_000), 16_000);
    assert_eq!(played(b"", 7, 8_000), 7);
}

#[test]
fn without_an_edit_list_the_tag_decides() {
    let tagged = |text: &str| {
        let value = a_box(b"data", &[&[0; 8], text.as_bytes()].concat());
        let tag = [b"iTunSMPB".as_slice(), &value].concat();
        a_box(b"moov", &a_box(b"udta", &tag))
    };
    let usual = " 00000000 00000840 000001C4 0000000000001F40 00000000 00000000";
    assert_eq!(played(&tagged(usual), 10_564, 8_000), 8_000);
    assert_eq!(played(&tagged(usual), 3_000, 8_000), 888);
    for odd in ["", " 0 840", " 0 840 1C4 xyz"] {
        assert_eq!(played(&tagged(odd), 10_564, 8_000), 10_564, "{odd}");
    }
}
