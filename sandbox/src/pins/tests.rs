use super::*;

fn key(n: usize) -> PinKey {
    PinKey::session("org-1", n.to_string().as_bytes())
}

#[tokio::test(start_paused = true)]
async fn a_full_table_gives_up_the_pin_that_is_idle_longest() {
    let clock = Clock::system();
    let pins = Pins::kept(clock.clone(), Keep::off(), Vec::new());
    for n in 0..PINS_MAX {
        pins.remember(key(n), Category::Coding, false);
        clock.advance(Duration::from_millis(1));
    }
    pins.remember(key(0), Category::Coding, false);

    pins.remember(key(PINS_MAX), Category::Coding, false);

    let pinned = |n| pins.route(&key(n)).category.is_some();
    assert_eq!(
        [pinned(0), pinned(1), pinned(2), pinned(PINS_MAX)],
        [true, false, true, true]
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_modality_forgets_the_escalations() {
    let pins = Pins::kept(Clock::system(), Keep::off(), Vec::new());
    pins.remember(key(1), Category::Coding, true);
    pins.remember(key(1), Category::Vision, true);
    assert!(!pins.route(&key(1)).frontier);

    pins.remember(key(1), Category::Vision, true);
    assert!(pins.route(&key(1)).frontier);
}

#[test]
fn keys_of_other_organizations_and_kinds_differ() {
    let basis = vec!["a".to_owned()];
    let keys = [
        PinKey::session("org-1", b"a"),
        PinKey::session("org-2", b"a"),
        PinKey::derived("org-1", &basis),
        PinKey::derived("org-1", &["a".to_owned(), String::new()]),
    ];
    for (at, key) in keys.iter().enumerate() {
        assert!(keys.iter().skip(at + 1).all(|other| other != key));
    }
}
