use super::*;

const HEARD: &str =
    r#"[{"app":"","since_ms":1,"by":"alice"},{"app":"ci","since_ms":2,"by":"bob"}]"#;
const NONE: &str = "[]";

fn heard(freezes: &str, thaws: Option<&str>) -> HeardOrders {
    HeardOrders::parse(freezes, thaws).unwrap()
}

/// What is in force behind it, which is on the disk.
fn kept(state: &Directory, freezes: &str, thaws: Option<&str>) -> FleetOrders {
    let orders = FleetOrders::read(state, 9)
        .unwrap()
        .after(&heard(freezes, thaws));
    orders.store_new(state).unwrap();
    assert_eq!(FleetOrders::read(state, 9).unwrap(), orders);
    orders
}

#[test]
fn what_was_heard_holds_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let state = Directory::open_or_create(&place.path().join("state")).unwrap();
    let nothing = FleetOrders::Heard(Vec::new());
    assert_eq!(FleetOrders::read(&state, 9).unwrap(), nothing);

    let freezes = kept(&state, HEARD, Some(NONE)).freezes();

    assert_eq!(
        freezes.all.map(|all| all.by).as_deref(),
        Some("alice, for the whole fleet")
    );
    assert_eq!(freezes.apps.get("ci").map(|ci| ci.since_ms), Some(2));
    FleetOrders::remove(&state).unwrap();
    assert_eq!(FleetOrders::read(&state, 9).unwrap(), nothing);
}

#[test]
fn a_freeze_ends_by_its_own_thaw_alone() {
    // Frozen before: all apps since 1, and ci since 2.
    let rows = [
        (NONE, Some(NONE), vec![("", 1), ("ci", 2)]),
        (NONE, Some(r#"[{"app":"","at_ms":1}]"#), vec![("ci", 2)]),
        (NONE, Some(r#"[{"app":"ci","at_ms":3}]"#), vec![("", 1)]),
        // Thaws of an earlier freeze, and of another app.
        (
            NONE,
            Some(r#"[{"app":"ci","at_ms":1},{"app":"web","at_ms":9}]"#),
            vec![("", 1), ("ci", 2)],
        ),
        // Frozen anew behind its thaw.
        (
            r#"[{"app":"ci","since_ms":5,"by":"bob"}]"#,
            Some(r#"[{"app":"ci","at_ms":4}]"#),
            vec![("", 1), ("ci", 5)],
        ),
        (
            r#"[{"app":"web","since_ms":5,"by":"bob"}]"#,
            Some(NONE),
            vec![("", 1), ("ci", 2), ("web", 5)],
        ),
        // Restored from before its schema kept thaws.
        (NONE, None, vec![("", 1), ("ci", 2)]),
    ];
    for (freezes, thaws, wanted) in rows {
        let place = tempfile::tempdir().unwrap();
        let state = Directory::open_or_create(&place.path().join("state")).unwrap();
        kept(&state, HEARD, Some(NONE));

        let FleetOrders::Heard(now) = kept(&state, freezes, thaws) else {
            panic!("it was heard");
        };

        let now: Vec<_> = now
            .iter()
            .map(|freeze| (&*freeze.app, freeze.since_ms))
            .collect();
        assert_eq!(now, wanted, "{freezes} {thaws:?}");
    }
}

#[test]
fn a_freeze_of_an_older_schema_ends_where_it_is_not_there_any_more() {
    for thaws in [None, Some(NONE)] {
        let place = tempfile::tempdir().unwrap();
        let state = Directory::open_or_create(&place.path().join("state")).unwrap();
        kept(&state, HEARD, None);
        assert_eq!(
            kept(&state, NONE, thaws),
            FleetOrders::Heard(Vec::new()),
            "{thaws:?}"
        );
    }
}

#[test]
fn what_is_no_list_is_refused() {
    for (freezes, thaws) in [
        ("{}", None),
        (HEARD, Some("{}")),
        (r#"[{"app":"ci"}]"#, Some(NONE)),
    ] {
        assert_eq!(
            HeardOrders::parse(freezes, thaws),
            None,
            "{freezes} {thaws:?}"
        );
    }
}

#[test]
fn a_damaged_copy_freezes_everything_until_the_database_is_heard() {
    let place = tempfile::tempdir().unwrap();
    let state = Directory::open_or_create(&place.path().join("state")).unwrap();
    kept(&state, HEARD, Some(NONE));
    let path = place.path().join("state").join(FILE);
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("alice", "alise");
    std::fs::write(&path, text).unwrap();

    let freezes = FleetOrders::read(&state, 9).unwrap().freezes();

    assert_eq!(freezes.all.map(|all| all.since_ms), Some(9));
    assert_eq!(
        kept(&state, NONE, Some(NONE)),
        FleetOrders::Heard(Vec::new())
    );
}
