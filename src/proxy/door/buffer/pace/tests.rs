use super::*;

/// Seconds until it is too slow, at most 700; `steps` of a wait and what came after it, over and over.
fn ends_after(steps: &[(u64, usize)]) -> Option<u64> {
    let (mut pace, mut now) = (Pace::default(), 0);
    for (seconds, bytes) in steps.iter().cycle() {
        let wait = Duration::from_secs(*seconds);
        if wait >= pace.left() {
            return Some(now + pace.left().as_secs());
        }
        now += seconds;
        if !pace.keeps(wait, *bytes) {
            return Some(now);
        }
        if now > 700 {
            return None;
        }
    }
    None
}

#[test]
fn a_body_that_drips_is_too_slow_and_one_that_flows_is_not() {
    for (what, steps, ends) in [
        ("nothing", &[(700, 1)][..], Some(15)),
        ("a byte a second", &[(1, 1)], Some(15)),
        ("a byte in each stretch", &[(14, 1)], Some(15)),
        ("just below", &[(1, 1092)], Some(15)),
        ("just quick enough", &[(1, 1171)], Some(601)),
        (
            "5 kB a second and 10 s of nothing",
            &[(1, 5000), (1, 5000), (1, 5000), (10, 5000)],
            Some(601),
        ),
        ("much, then nothing", &[(1, 1024 * 1024), (15, 1)], Some(16)),
        (
            "much without a pause",
            &[(0, 30_000_000), (500, 1)],
            Some(15),
        ),
    ] {
        assert_eq!(ends_after(steps), ends, "{what}");
    }
}

#[test]
fn a_body_keeps_its_place_for_a_moment_or_as_quickly_as_it_comes() {
    for (what, steps, millis) in [
        ("nothing yet", &[][..], 1000),
        ("a byte at once", &[(0, 1)], 1000),
        ("a byte late", &[(900, 1)], 100),
        ("a byte now and then", &[(900, 1), (900, 1)], 0),
        (
            "small and quick, then a drip",
            &[(0, 60_000), (900, 1), (900, 1)],
            115,
        ),
        (
            "as slowly as a body may come",
            &[(1000, 1171), (1000, 1171)],
            0,
        ),
        ("64 KiB a second", &[(1000, 65536), (1000, 65536)], 1000),
        ("after a stop", &[(3000, 131_072)], 0),
        ("whatever came before", &[(0, 30_000_000)], 1000),
    ] {
        let mut pace = Pace::default();
        for (wait, bytes) in steps {
            assert!(pace.keeps(Duration::from_millis(*wait), *bytes), "{what}");
        }
        assert_eq!(pace.patience().as_millis(), millis, "{what}");
    }
}
