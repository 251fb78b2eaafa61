use super::*;

fn fill(waiters: &Waiters, app: &Arc<str>, is_alone: bool) -> (Vec<WaiterGuard>, Crowd) {
    let mut inside = Vec::new();
    loop {
        match waiters.enter(app, is_alone) {
            Ok(waiter) => inside.push(waiter),
            Err(crowd) => return (inside, crowd),
        }
    }
}

#[test]
fn one_app_among_several_leaves_room_for_others() {
    let waiters = Waiters::beside(768);
    let (greedy, other): (Arc<str>, Arc<str>) = (Arc::from("greedy"), Arc::from("other"));
    let (inside, crowd) = fill(&waiters, &greedy, false);
    assert_eq!(inside.len(), 384);
    assert_eq!(crowd, Crowd::OfApp(384));
    let (others, crowd) = fill(&waiters, &other, false);
    assert_eq!(inside.len() + others.len(), 512);
    assert_eq!(crowd, Crowd::OfAll(512), "all together are too many");
    drop((inside, others));
    let counts = waiters.counts.lock();
    assert_eq!((counts.all, counts.by_app.len()), (0, 0), "given back");
}

#[test]
fn an_app_alone_has_all_places_but_not_all_connections() {
    let waiters = Waiters::beside(768);
    let (inside, crowd) = fill(&waiters, &Arc::from("default"), true);
    assert_eq!(inside.len(), 512);
    assert_eq!(crowd, Crowd::OfAll(512));
}
