use super::*;

const HEARD: &str =
    r#"[{"app":"","since_ms":1,"by":"alice"},{"app":"ci","since_ms":2,"by":"bob"}]"#;

#[test]
fn what_was_heard_holds_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let state = Directory::open_or_create(&place.path().join("state")).unwrap();
    assert_eq!(
        FleetOrders::read(&state, 9).unwrap(),
        FleetOrders::default()
    );
    let orders = FleetOrders::parse(HEARD).unwrap();

    orders.store(&state).unwrap();

    let read = FleetOrders::read(&state, 9).unwrap();
    assert_eq!(read, orders);
    let freezes = read.freezes();
    assert_eq!(
        freezes.all.map(|all| all.by).as_deref(),
        Some("alice, for the whole fleet")
    );
    assert_eq!(freezes.apps.get("ci").map(|ci| ci.since_ms), Some(2));
    FleetOrders::remove(&state).unwrap();
    assert_eq!(
        FleetOrders::read(&state, 9).unwrap(),
        FleetOrders::default()
    );
}

#[test]
fn a_damaged_copy_freezes_everything() {
    let place = tempfile::tempdir().unwrap();
    let state = Directory::open_or_create(&place.path().join("state")).unwrap();
    FleetOrders::parse(HEARD).unwrap().store(&state).unwrap();
    let path = place.path().join("state").join(FILE);
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("alice", "alise");
    std::fs::write(&path, text).unwrap();

    let freezes = FleetOrders::read(&state, 9).unwrap().freezes();

    assert_eq!(freezes.all.map(|all| all.since_ms), Some(9));
}
