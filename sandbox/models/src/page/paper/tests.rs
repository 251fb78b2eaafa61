use super::*;
use image::ImageFormat;

#[test]
fn the_picture_can_be_read_back_dot_by_dot() {
    let file = page(&["TOTAL 11.40"]).unwrap();

    let picture = image::load_from_memory(&file).unwrap().to_luma8();
    assert_eq!(picture.dimensions(), ((11 * 6 + 16) * 3, (10 + 16) * 3));
    let line = "TOTAL 11.40";
    for (at, letter) in (0_u32..).zip(line.chars()) {
        let seen: [u8; 5] = std::array::from_fn(|column| {
            let x = (MARGIN + at * ADVANCE.0 + u32::try_from(column).unwrap()) * SCALE + 1;
            (0..7).fold(0, |bits, row| {
                let dark = picture.get_pixel(x, (MARGIN + row) * SCALE + 1).0[0] < 128;
                bits | u8::from(dark) << row
            })
        });
        assert_eq!(Some(seen), font::glyph(letter), "{letter}");
    }
}

#[test]
fn letters_the_print_does_not_have_and_pages_without_end_are_refused() {
    assert!(page(&["total"]).is_err());
    assert!(page(&vec!["A"; 1_000]).is_err());
}

#[test]
fn a_page_is_a_whole_png_that_holds_its_words() {
    let lines = ["1 FLAT WHITE  7.00", "TOTAL GBP  11.40"];
    let file = page(&lines).unwrap();

    assert_eq!(text(&file), lines.join("\n"));
    // The end of the file is its last chunk still.
    assert_eq!(file[file.len() - 8..file.len() - 4], *b"IEND");
    let mut plain = Cursor::new(Vec::new());
    let picture = GrayImage::new(9, 9);
    picture.write_to(&mut plain, ImageFormat::Png).unwrap();
    assert_eq!(text(plain.get_ref()), "");
    for end in 0..file.len() {
        assert!(lines.join("\n").starts_with(&text(&file[..end])), "{end}");
    }
    assert_eq!(text(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xfftEXtComment\0a"), "");
}
