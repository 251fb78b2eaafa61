use super::*;
use crate::page::paper;
use image::{ImageFormat, Luma, imageops};

const LINES: [&str; 3] = [
    "1 FLAT WHITE  7.00",
    "TOTAL GBP  11.40",
    "CARD ****0000, 9:12",
];

fn read(picture: &GrayImage) -> String {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, ImageFormat::Png).unwrap();
    text(&file.into_inner())
}

#[test]
fn print_is_read_at_any_size_and_in_either_ink() {
    let page = image::load_from_memory(&paper::page(&LINES).unwrap())
        .unwrap()
        .to_luma8();
    let (width, height) = page.dimensions();
    let larger = imageops::resize(&page, width * 2, height * 2, imageops::FilterType::Nearest);
    let mut light = page.clone();
    image::imageops::invert(&mut light);

    for picture in [&page, &larger, &light] {
        assert_eq!(read(picture), LINES.join("\n"));
    }
}

#[test]
fn a_few_wrong_dots_do_not_matter() {
    let mut page = image::load_from_memory(&paper::page(&LINES).unwrap())
        .unwrap()
        .to_luma8();
    for (x, y) in [(30, 27), (72, 36), (108, 60)] {
        for dx in 0..3 {
            for dy in 0..3 {
                page.put_pixel(x + dx, y + dy, Luma([244]));
            }
        }
    }

    assert_eq!(read(&page), LINES.join("\n"));
}

#[test]
fn a_picture_without_print_has_no_text() {
    let checks = GrayImage::from_fn(90, 90, |x, y| {
        Luma([if (x / 7 + y / 7) % 2 == 0 { 0 } else { 255 }])
    });

    assert_eq!(read(&checks), "");
    assert_eq!(read(&GrayImage::from_pixel(50, 50, Luma([9]))), "");
    assert_eq!(text(b"\x89PNG no picture"), "");
}
