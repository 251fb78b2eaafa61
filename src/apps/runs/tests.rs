use super::*;

fn run() -> Run {
    Run::new(&App::new("a"), 1_000).unwrap()
}

#[test]
fn no_more_runs_than_the_bound_and_an_ended_one_makes_room() {
    let runs = Runs::default();
    let all: Vec<Arc<Run>> = (0..RUNS_MAX).map(|_| Arc::new(run())).collect();
    for (number, run) in all.iter().enumerate() {
        let token = TokenHash::of(number.to_string().as_bytes());
        runs.open(Arc::clone(run), token).unwrap();
    }
    let more = Arc::new(run());
    let said = runs
        .open(Arc::clone(&more), TokenHash::of(b"x"))
        .unwrap_err();
    assert!(matches!(said, AppsError::RunsFull));

    runs.close(&all[3]);
    assert!(runs.with(TokenHash::of(b"3")).is_none());
    assert!(runs.with(TokenHash::of(b"4")).is_some());
    runs.open(more, TokenHash::of(b"x")).unwrap();
}
