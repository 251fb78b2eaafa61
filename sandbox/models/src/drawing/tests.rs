use super::{edit::edit, *};
use image::imageops;

fn order(prompt: &str) -> Order {
    Order {
        prompt: prompt.to_owned(),
        number: 0,
        user: String::new(),
    }
}

fn picture(prompt: &str) -> RgbaImage {
    generate(&order(prompt), 160, 160).image
}

fn rgb(name: &str) -> Rgb {
    vocabulary::colour(name).unwrap().1
}

fn is(pixel: &Rgba<u8>, colour: Rgb) -> bool {
    pixel.0[..3] == colour
}

/// How many separate patches of exactly this colour the picture has.
fn patches(image: &RgbaImage, colour: Rgb) -> usize {
    let mut seen = vec![false; (image.width() * image.height()) as usize];
    let mut patches = 0;
    for start in 0..seen.len() {
        let at = |n: usize| (n as u32 % image.width(), n as u32 / image.width());
        let wanted = |n: usize| is(image.get_pixel(at(n).0, at(n).1), colour);
        if seen[start] || !wanted(start) {
            continue;
        }
        patches += 1;
        let mut open = vec![start];
        while let Some(n) = open.pop() {
            if seen[n] || !wanted(n) {
                continue;
            }
            seen[n] = true;
            let (x, y) = at(n);
            let width = image.width() as usize;
            if x > 0 {
                open.push(n - 1);
            }
            if x + 1 < image.width() {
                open.push(n + 1);
            }
            if y > 0 {
                open.push(n - width);
            }
            if y + 1 < image.height() {
                open.push(n + width);
            }
        }
    }
    patches
}

fn share(image: &RgbaImage, colour: Rgb) -> f64 {
    let met = image.pixels().filter(|pixel| is(pixel, colour)).count();
    met as f64 / f64::from(image.width() * image.height())
}

#[test]
fn things_can_be_counted_in_their_colours() {
    for (prompt, colour, count) in [
        ("three red circles", "red", 3),
        ("seven blue squares and two red triangles", "blue", 7),
        ("seven blue squares and two red triangles", "red", 2),
        ("12 green diamonds on a black background", "green", 12),
        ("a purple heart", "purple", 1),
        ("24 small orange squares", "orange", 24),
        ("four big pink rings", "pink", 4),
    ] {
        for number in 0..3 {
            let mut order = order(prompt);
            order.number = number;
            let image = generate(&order, 200, 120).image;
            assert_eq!(patches(&image, rgb(colour)), count, "{prompt} {number}");
        }
    }
}

#[test]
fn every_kind_of_thing_is_drawn_in_its_colour() {
    for word in [
        "circle",
        "square",
        "rectangle",
        "triangle",
        "diamond",
        "star",
        "heart",
        "ring",
        "cross",
        "house",
        "tree",
        "flower",
        "car",
        "face",
        "sun",
        "moon",
        "cloud",
        "mountain",
        "boat",
        "fish",
        "sea",
        "meadow",
        "beach",
        "snow",
    ] {
        let image = picture(&format!("a purple {word} on a white background"));

        let shown = share(&image, rgb("purple"));
        assert!(shown > 0.01 && shown < 0.7, "{word}: {shown}");
        assert!(share(&image, WHITE) > 0.2, "{word}");
    }
}

#[test]
fn the_background_has_its_colour_and_things_stand_where_they_were_put() {
    let image = picture("a red circle in the top left corner on a navy background");

    assert!(share(&image, rgb("navy")) > 0.8);
    for (x, y, pixel) in image.enumerate_pixels() {
        if is(pixel, rgb("red")) {
            assert!(x < 160 / 3 + 1 && y < 160 / 3 + 1, "{x} {y}");
        }
    }
}

#[test]
fn text_without_a_colour_can_be_read_on_any_background() {
    assert!(share(&picture("\"HI\" on a navy background"), WHITE) > 0.1);
    assert!(share(&picture("\"HI\" on a yellow background"), vocabulary::BLACK) > 0.1);
}

#[test]
fn text_is_drawn_as_letters() {
    let image = picture("\"HI\" on a white background");
    let columns: Vec<bool> = (0..160)
        .map(|x| (0..160).any(|y| is(image.get_pixel(x, y), vocabulary::BLACK)))
        .collect();

    // H, the space between, I.
    let runs = columns.windows(2).filter(|two| !two[0] && two[1]).count();
    assert_eq!(runs, 2);
    assert_ne!(picture("\"HI\""), picture("\"HO\""));
}

#[test]
fn the_same_order_gives_the_same_picture_and_another_number_or_user_another() {
    let base = order("five red circles");
    let image = |order: &Order| generate(order, 96, 64).image;

    assert_eq!(image(&base), image(&base.clone()));
    assert_ne!(
        image(&base),
        image(&Order {
            number: 1,
            ..base.clone()
        })
    );
    assert_ne!(
        image(&base),
        image(&Order {
            user: "u".to_owned(),
            ..base.clone()
        })
    );
}

#[test]
fn a_prompt_that_names_nothing_known_gives_a_picture_of_its_own() {
    let (one, two) = (picture("the meaning of life"), picture("justice"));

    assert_ne!(one, two);
    assert!(share(&one, WHITE) < 0.5);
    let told = generate(&order("justice"), 32, 32).description;
    assert!(told.starts_with("an abstract picture: "), "{told}");
}

#[test]
fn tiny_and_crowded_pictures_are_drawn_too() {
    for (width, height) in [(16, 16), (16, 300), (300, 16)] {
        let prompt = "\"a long text in letters\", 24 cars, a sea, 24 clouds, a house on the left";
        let image = generate(&order(prompt), width, height).image;
        assert_eq!(image.dimensions(), (width, height));
    }
}

fn changed(prompt: &str, before: &RgbaImage) -> RgbaImage {
    edit(before, None, &order(prompt)).image
}

#[test]
fn each_change_does_what_its_word_says() {
    let before = picture("a red square on the left and a blue circle on the right");
    let red = rgb("red");

    assert_eq!(
        share(&changed("change red to green", &before), rgb("green")),
        share(&before, red)
    );
    assert_eq!(
        share(&changed("invert the colours", &before), vocabulary::BLACK),
        share(&before, WHITE)
    );
    assert!(
        changed("make it black and white", &before)
            .pixels()
            .all(|p| p.0[0] == p.0[1] && p.0[1] == p.0[2])
    );
    assert!(
        changed("in grey", &before)
            .pixels()
            .all(|p| p.0[0] == p.0[2])
    );
    assert!(
        changed("tint it purple", &before)
            .pixels()
            .any(|p| is(p, rgb("purple")))
    );
    let blurred = changed("blur it", &before);
    assert!(share(&blurred, red) < share(&before, red) && blurred.get_pixel(0, 0).0[3] == 255);
    assert_eq!(
        changed("mirror it", &before),
        imageops::flip_horizontal(&before)
    );
    assert_eq!(
        changed("flip vertically", &before),
        imageops::flip_vertical(&before)
    );
    assert_eq!(
        changed("rotate by 90 degrees", &before),
        imageops::rotate90(&before)
    );
    assert_eq!(
        changed("rotate 90 to the left", &before),
        imageops::rotate270(&before)
    );
    assert_eq!(
        changed("turn it upside down", &before),
        imageops::rotate180(&before)
    );
    assert!(
        changed("brighten", &before)
            .pixels()
            .zip(before.pixels())
            .all(|(a, b)| a.0 >= b.0)
    );
    assert!(changed("darker please", &before).get_pixel(0, 0).0[0] < 255);
    assert_ne!(changed("sepia", &before), before);
    assert_eq!(share(&changed("erase everything", &before), WHITE), 1.0);
    assert!(share(&changed("add a green star", &before), rgb("green")) > 0.0);
}

#[test]
fn things_are_drawn_into_what_is_there() {
    let before = picture("a red background");
    let after = changed("draw two blue circles", &before);

    assert_eq!(patches(&after, rgb("blue")), 2);
    assert!(share(&after, rgb("red")) > 0.3);
}

#[test]
fn a_prompt_may_change_colours_and_draw_too() {
    let before = picture("a red square on the left");
    let told = |prompt: &str| edit(&before, None, &order(prompt)).description;

    assert_eq!(
        told("change the red to blue, then draw a green heart"),
        "change red to blue, then draw one green heart"
    );
    assert_eq!(
        told("paint a red house next to a blue tree"),
        "draw one red house and one blue tree"
    );
    assert_eq!(told("paint it blue"), "tint blue");
    assert_eq!(told("make it grey"), "turn grey");
    assert_eq!(told("draw a grey circle"), "draw one grey circle");
}

#[test]
fn only_what_the_mask_leaves_open_is_changed() {
    let before = picture("nine red circles on a yellow background");
    let mut mask = RgbaImage::from_pixel(160, 160, Rgba([0, 0, 0, 255]));
    for x in 100..150 {
        for y in 20..70 {
            mask.put_pixel(x, y, Rgba([0; 4]));
        }
    }
    mask.put_pixel(0, 0, Rgba([0, 0, 0, 128]));
    assert!(edit::is_open(&mask));

    for prompt in [
        "invert",
        "draw a blue square",
        "erase",
        "rotate by 45",
        "hope",
    ] {
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
    // 245 is red's part of yellow, 10 what is left when it is inverted.
    assert_eq!(half.get_pixel(0, 0).0[0], 128);
}
