use super::{edit::edit, *};
use image::imageops;

const RED: Rgba<u8> = Rgba([220, 40, 40, 255]);
const NAVY: Rgba<u8> = Rgba([20, 30, 100, 255]);
const BLUE: Rgba<u8> = Rgba([40, 90, 220, 255]);

fn order(prompt: &str) -> Motif {
    Motif {
        prompt: prompt.to_owned(),
        number: 0,
        user: String::new(),
    }
}

fn picture(prompt: &str) -> RgbaImage {
    generate(&order(prompt), 160, 120).image
}

fn count(image: &RgbaImage, colour: Rgba<u8>) -> usize {
    image.pixels().filter(|pixel| **pixel == colour).count()
}

#[test]
fn opposite_corners_have_the_colours_that_the_prompt_names() {
    for number in 0..8 {
        let mut order = order("red circles on a navy background");
        order.number = number;
        let made = generate(&order, 200, 150);
        let corner = |x, y| *made.image.get_pixel(x, y);
        let pairs = [
            (corner(0, 0), corner(199, 149)),
            (corner(199, 0), corner(0, 149)),
        ];
        assert!(
            pairs.contains(&(RED, NAVY)) || pairs.contains(&(NAVY, RED)),
            "{pairs:?}"
        );
        assert!(
            made.description.ends_with("from red to navy"),
            "{}",
            made.description
        );
    }
}

#[test]
fn the_words_stand_in_the_picture() {
    let ink = |prompt: &str| {
        let image = picture(prompt);
        let white = Rgba([255; 4]);
        image
            .pixels()
            .map(|pixel| *pixel == white)
            .collect::<Vec<_>>()
    };
    let (one, other) = (ink("HI navy black"), ink("HO navy black"));

    assert!(one.contains(&true));
    assert_ne!(one, other);
    // Twelve letters, thirty-odd dots of each: as many pixels as the font has dots.
    let dots = font::dots("HI NAVY BLACK").count();
    assert_eq!(one.iter().filter(|dot| **dot).count(), dots);
}

#[test]
fn the_same_order_gives_the_same_picture_and_another_number_or_user_another() {
    let base = order("five red circles");
    let image = |order: &Motif| generate(order, 96, 64).image;
    let mut numbered = base.clone();
    numbered.number = 1;
    let mut of_user = base.clone();
    of_user.user = "u".to_owned();

    assert_eq!(image(&base), image(&base.clone()));
    assert_ne!(image(&base), image(&numbered));
    assert_ne!(image(&base), image(&of_user));
    assert_ne!(picture("the meaning of life"), picture("justice"));
}

#[test]
fn tiny_and_crowded_pictures_are_drawn_too() {
    for (width, height) in [(1, 1), (16, 16), (16, 300), (300, 16)] {
        let image = generate(&order(&"a long text ".repeat(300)), width, height).image;
        assert_eq!(image.dimensions(), (width, height));
    }
}

#[test]
fn each_change_does_what_its_word_says() {
    let before = RgbaImage::from_fn(64, 32, |x, _| if x < 32 { RED } else { NAVY });
    let changed = |prompt: &str| edit(&before, None, &order(prompt));

    let blue = changed("change the red to blue");
    assert_eq!(blue.description, "change red to blue");
    assert_eq!(
        (count(&blue.image, BLUE), count(&blue.image, NAVY)),
        (1_024, 1_024)
    );
    let inverted = changed("invert the colours").image;
    assert_eq!(count(&inverted, Rgba([35, 215, 215, 255])), 1_024);
    let grey = changed("make it grey").image;
    assert!(
        grey.pixels()
            .all(|pixel| pixel.0[0] == pixel.0[1] && pixel.0[1] == pixel.0[2])
    );
    assert_eq!(
        changed("mirror it").image,
        imageops::flip_horizontal(&before)
    );
    let brighter = changed("brighten").image;
    assert!(
        brighter
            .pixels()
            .zip(before.pixels())
            .all(|(a, b)| a.0 >= b.0 && a != b)
    );
    assert!(changed("darker please").image.get_pixel(0, 0).0[0] < 220);
    assert!(count(&changed("blur it").image, RED) < 1_024);
    let both = changed("invert, then mirror");
    assert_eq!(both.description, "invert, then mirror");
    let new = changed("draw a house");
    assert!(
        new.description.starts_with("“draw a house” on"),
        "{}",
        new.description
    );
}

#[test]
fn only_what_the_mask_leaves_open_is_changed() {
    let before = picture("red on yellow");
    let mut mask = RgbaImage::from_pixel(160, 120, Rgba([0, 0, 0, 255]));
    for x in 100..150 {
        for y in 20..70 {
            mask.put_pixel(x, y, Rgba([0; 4]));
        }
    }
    mask.put_pixel(0, 0, Rgba([0, 0, 0, 128]));
    assert!(edit::is_open(&mask));

    for prompt in ["invert", "draw a blue square", "blur", "hope"] {
        let after = edit(&before, Some(&mask), &order(prompt)).image;
        let mut changed = 0;
        for ((x, y, a), b) in after.enumerate_pixels().zip(before.pixels()) {
            if mask.get_pixel(x, y).0[3] == 255 {
                assert_eq!(a, b, "{prompt} {x} {y}");
            } else if a != b {
                changed += 1;
            }
        }
        assert!(changed > 0, "{prompt}");
    }
    let half = edit(&before, Some(&mask), &order("invert")).image;
    // Half of what it was and half of its contrary is the middle, whatever it was.
    assert!((126..=129).contains(&half.get_pixel(0, 0).0[0]));
}
