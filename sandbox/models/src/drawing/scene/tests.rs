use super::*;

fn one(prompt: &str) -> Thing {
    let scene = Scene::read(prompt);
    assert_eq!(scene.things.len(), 1, "{prompt}: {scene:?}");
    scene.things[0].clone()
}

#[test]
fn what_stands_before_a_thing_belongs_to_it() {
    let rows = [
        ("a red circle", Kind::Circle, 1, "red", 1.0),
        ("three small blue squares", Kind::Square, 3, "blue", 0.6),
        ("2 dark green trees", Kind::Tree, 2, "dark green", 1.0),
        ("a dozen golden stars", Kind::Star, 12, "golden", 1.0),
        ("a huge pink heart", Kind::Heart, 1, "pink", 1.33),
        ("several purple crosses", Kind::Cross, 5, "purple", 1.0),
    ];
    for (prompt, kind, count, colour, size) in rows {
        let thing = one(prompt);
        assert_eq!((thing.kind, thing.count), (kind, count), "{prompt}");
        assert_eq!(thing.colour.unwrap().name, colour, "{prompt}");
        assert!((thing.size - size).abs() < 0.001, "{prompt}");
    }
    assert_eq!(one("circles").count, 3);
    assert_eq!(one("a house").colour, None);
}

#[test]
fn each_thing_takes_only_its_own_words() {
    let scene = Scene::read("two red circles and a square, with a green triangle");

    let told: Vec<_> = scene
        .things
        .iter()
        .map(|t| (t.kind, t.count, t.colour.as_ref().map(|c| c.name.as_str())))
        .collect();
    assert_eq!(
        told,
        [
            (Kind::Circle, 2, Some("red")),
            (Kind::Square, 1, None),
            (Kind::Triangle, 1, Some("green"))
        ]
    );
    assert_eq!(
        scene.describe(),
        "2 red circles, one square and one green triangle"
    );
}

#[test]
fn a_place_belongs_to_the_thing_before_it_unless_a_comma_parts_them() {
    let scene =
        Scene::read("a sun in the top right corner, on the left a house and a tree at the bottom");

    let places: Vec<_> = scene
        .things
        .iter()
        .map(|t| (t.kind, t.place.column, t.place.row))
        .collect();
    assert_eq!(
        places,
        [
            (Kind::Sun, Some(2), Some(0)),
            (Kind::House, Some(0), None),
            (Kind::Tree, None, Some(2))
        ]
    );
}

#[test]
fn the_background_is_named_before_or_after_its_word() {
    for (prompt, name) in [
        ("a star on a navy background", "navy"),
        ("a star, background light blue", "light blue"),
        ("the background is yellow, with a star", "yellow"),
        ("a star in a red sky", "red"),
        ("a star at night", "night-blue"),
        ("a night sky with a star", "night-blue"),
        ("a star in the sky", "sky-blue"),
    ] {
        let scene = Scene::read(prompt);
        assert_eq!(scene.background.unwrap().name, name, "{prompt}");
        assert_eq!(scene.things.len(), 1, "{prompt}");
        assert_eq!(scene.things[0].colour, None, "{prompt}");
    }
}

#[test]
fn text_in_quotes_is_drawn_as_letters_and_an_apostrophe_is_no_quote() {
    for prompt in [
        "a sign \"Open late\"",
        "text 'Open late' in red",
        "\u{201c}Open late\u{201d}",
    ] {
        let thing = one(prompt);
        assert_eq!((thing.kind, thing.text.as_str()), (Kind::Text, "Open late"));
    }
    assert_eq!(one("the dog's house and the cat's").kind, Kind::House);
    assert!(Scene::read("an unclosed \"quote").is_empty());
}

#[test]
fn a_picture_holds_a_bounded_number_of_things() {
    let many = Scene::read(&"99 circles and ".repeat(50));

    assert_eq!(
        many.things.iter().map(|t| t.count).sum::<usize>(),
        THINGS_MAX
    );
    assert_eq!(one("1000000 circles").count, 24);
    assert!(Scene::read("0 circles").is_empty());
    assert!(Scene::read("").is_empty());
}

#[test]
fn two_words_for_the_ground_are_one_ground() {
    assert_eq!(one("a snow field").kind, Kind::Snow);
    assert_eq!(Scene::read("a sea and a beach").things.len(), 2);
}
