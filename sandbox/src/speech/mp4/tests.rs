use super::*;

fn a_box(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes(), name.as_slice(), body].concat()
}

#[test]
fn a_table_that_promises_more_rows_than_bytes_is_refused() {
    let table = |rows: u32| {
        let stco = a_box(b"stco", &[[0; 4], rows.to_be_bytes(), [0; 4]].concat());
        a_box(b"moov", &a_box(b"trak", &a_box(b"mdia", &stco)))
    };

    assert_eq!(check(&table(1)), Ok(()));
    assert!(check(&table(2)).is_err());
    assert!(check(&table(u32::MAX)).is_err());
}

#[test]
fn a_packet_larger_than_the_file_is_refused() {
    let in_moov = |name: &[u8; 4], numbers: &[u32]| {
        let body: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
        check(&a_box(b"moov", &a_box(name, &body)))
    };
    for size in [20_u32, 1 << 30] {
        let ok = size < 1_000;
        assert_eq!(in_moov(b"stsz", &[0, size, 9]).is_ok(), ok);
        assert_eq!(in_moov(b"stsz", &[0, 0, 2, 5, size]).is_ok(), ok);
        assert_eq!(in_moov(b"trex", &[0, 1, 1, 0, size, 0]).is_ok(), ok);
        assert_eq!(in_moov(b"tfhd", &[0x18, 1, 1_024, size]).is_ok(), ok);
        assert_eq!(in_moov(b"trun", &[0x301, 2, 0, 9, 5, 9, size]).is_ok(), ok);
        // So many packets without a row each: their sizes stand elsewhere, and none is of less than a byte.
        assert_eq!(in_moov(b"trun", &[0, size]).is_ok(), ok);
        assert_eq!(in_moov(b"stco", &[0, size / 20, 1]).is_ok(), ok);
    }
}

#[test]
fn a_tag_over_the_end_and_a_short_sample_entry_are_refused() {
    let tag = |size: u32| {
        let mut text = a_box(b"data", &[0; 8]);
        text[..4].copy_from_slice(&size.to_be_bytes());
        let ilst = a_box(b"ilst", &a_box(b"desc", &text));
        check(&a_box(
            b"udta",
            &a_box(b"meta", &[&[0; 4], &ilst[..]].concat()),
        ))
    };
    let entry = |bytes: usize| {
        let entry = a_box(b"mp4a", &vec![0; bytes]);
        check(&a_box(
            b"stsd",
            &[&[0, 0, 0, 0, 0, 0, 0, 1], &entry[..]].concat(),
        ))
    };

    assert_eq!((tag(16), tag(17).is_err()), (Ok(()), true));
    assert_eq!((entry(28), entry(27).is_err()), (Ok(()), true));
}

#[test]
fn a_descriptor_over_the_end_of_its_place_is_refused() {
    let descriptor = |tag: u8, size: &[u8], body: &[u8]| [&[tag], size, body].concat();
    let entry = |kind: &[u8; 4], version: u8, boxes: &[u8]| {
        let mut fields = vec![0; SOUND_ENTRY_BYTES];
        fields[9] = version;
        let entry = a_box(kind, &[&fields, boxes].concat());
        check(&a_box(
            b"stsd",
            &[&[0, 0, 0, 0, 0, 0, 0, 1], &entry[..]].concat(),
        ))
    };
    let checked = |kind: &[u8; 4], specific: &[u8]| {
        let size = |body: &[u8]| [u8::try_from(body.len()).unwrap()];
        let config = [&[0x40; 13], specific].concat();
        let config = descriptor(4, &size(&config), &config);
        let stream = [&[0, 1, 0], &config[..], &[6, 1, 2]].concat();
        let stream = descriptor(3, &size(&stream), &stream);
        let esds = a_box(b"esds", &[&[0; 4], &stream[..]].concat());
        (
            entry(kind, 0, &esds),
            entry(kind, 0, &a_box(b"wave", &esds)),
        )
    };
    let (fits, over) = ((Ok(()), Ok(())), (Err(TABLE), Err(TABLE)));

    assert_eq!(checked(b"mp4a", &descriptor(5, &[2], &[0x14, 0x08])), fits);
    assert_eq!(
        checked(b"mp4a", &descriptor(5, &[0x80, 2], &[0x14, 0x08])),
        fits
    );
    assert_eq!(checked(b"mp4a", &descriptor(5, &[3], &[0x14, 0x08])), over);
    let huge = descriptor(5, &[0xff, 0xff, 0xff, 0x7f], &[0x14, 0x08]);
    assert_eq!(checked(b"mp4a", &huge), over);
    // Of a picture's entry nothing more is read.
    assert_eq!(checked(b"avc1", &huge), fits);
    // The fields of a later version have to be there, or the reader goes on behind the entry.
    assert_eq!(entry(b"mp4a", 1, &[0; 16]), Ok(()));
    assert_eq!(entry(b"mp4a", 1, &[0; 15]), Err(TABLE));
    assert_eq!(entry(b"lpcm", 2, &[0; 35]), Err(TABLE));
    let sizeless = [&[0; 4], b"esds".as_slice(), &[0; 8]].concat();
    assert!(entry(b"mp4a", 0, &sizeless).is_err());
}

#[test]
fn a_box_over_the_end_and_a_tower_of_boxes_are_refused() {
    let mut long = a_box(b"free", &[0; 8]);
    long[3] += 1;
    assert!(check(&long).is_err());

    let tower = (0..40).fold(Vec::new(), |inner, _| a_box(b"moov", &inner));
    assert!(check(&tower).is_err());
}
