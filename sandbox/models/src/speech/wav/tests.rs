use super::*;

#[test]
fn a_written_file_is_read_to_its_last_frame_with_its_words() {
    let samples: Vec<i16> = (0..801).collect();

    let file = write(&samples, 16_000, "Grüße, 世界").unwrap();
    let wav = read(&file).unwrap();

    assert_eq!(
        (wav.channels, wav.bits, wav.rate, wav.frames),
        (1, 16, 16_000, 801)
    );
    assert_eq!(wav.said.as_deref(), Some("Grüße, 世界"));
}

#[test]
fn words_beside_other_samples_are_not_believed() {
    let mut file = write(&[1, 2, 3, 4], 16_000, "yes").unwrap();
    file[44] ^= 1;

    assert_eq!(read(&file).unwrap().said, None);
}

#[test]
fn a_piped_file_ends_where_its_bytes_end() {
    for size in [0x7fff_f000, u32::MAX] {
        let mut file = write(&[1, 2, 3, 4], 8_000, "").unwrap();
        file.truncate(44 + 6);
        file[40..44].copy_from_slice(&size.to_le_bytes());
        assert_eq!(read(&file).unwrap().frames, 3, "{size}");
    }
}

#[test]
fn a_file_that_contradicts_itself_is_refused() {
    let whole = write(&[1, 2, 3, 4], 8_000, "").unwrap();
    for (at, byte) in [
        (22, 2_u8),
        (24, 0),
        (32, 3),
        (34, 7),
        (20, 2),
        (36, b'x'),
        (41, 9),
    ] {
        let mut file = whole.clone();
        file[at] = byte;
        if at == 24 {
            file[25] = 0;
        }
        assert!(read(&file).is_err(), "byte {at}");
    }
    assert!(read(&whole[..47]).is_err());
}
