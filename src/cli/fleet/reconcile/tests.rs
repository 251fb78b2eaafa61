use super::*;

fn sum(micro_usd: u128) -> MicroUsdSum {
    MicroUsdSum::from_micro_usd(micro_usd)
}

/// Two machines with 60 and 40, and so many entries in doubt.
fn against(service: u128, in_doubt: i64, beside: &Beside) -> FleetReconciliation {
    let row = |host: &str, billed, in_doubt| FleetSpend {
        labels: vec![host.to_owned()],
        requests: 1,
        billed: sum(billed),
        in_doubt,
        unreported: 0,
    };
    let figure = ServiceFigure {
        source: "typed".to_owned(),
        service: sum(service),
        since_ms: 0,
        until_ms: 1,
    };
    let rows = [row("a", 60, 0), row("b", 40, in_doubt)];
    FleetReconciliation::new(figure, &rows, beside)
}

/// The database was asked for everything, and has nothing.
fn nothing() -> Beside {
    Beside {
        under_way: Some(0),
        counted_twice: Some(sum(0)),
        ..Beside::default()
    }
}

#[test]
fn what_can_make_the_difference_is_named_and_else_it_is_not_explained() {
    use Conclusion::{Equal, Explained, Unexplained};
    type Change = fn(&mut Beside);
    // What there is; the service's figure one above the fleet's, one below it; words of what it is explained by.
    let cases: [(&str, Change, Conclusion, Conclusion); 8] = [
        ("", |_| {}, Unexplained, Unexplained),
        (
            "1 request without an end",
            |of| of.under_way = Some(1),
            Explained,
            Unexplained,
        ),
        (
            "3 lines that are not there",
            |of| of.lines_behind = 3,
            Explained,
            Unexplained,
        ),
        (
            "2 machines that were not heard",
            |of| of.not_heard_since = 2,
            Explained,
            Unexplained,
        ),
        ("1 lost range", |of| of.losses = 1, Explained, Unexplained),
        (
            "just outside the period",
            |of| of.outside = sum(1),
            Explained,
            Unexplained,
        ),
        (
            "the period's ends",
            |of| of.inside = sum(1),
            Unexplained,
            Explained,
        ),
        (
            "billed once",
            |of| of.counted_twice = Some(sum(1)),
            Unexplained,
            Explained,
        ),
    ];
    for (words, change, above, below) in cases {
        let mut beside = nothing();
        change(&mut beside);
        assert_eq!(against(100, 0, &beside).conclusion, Equal, "{words}");
        for (service, wanted) in [(101, above), (99, below)] {
            let compared = against(service, 0, &beside);
            assert_eq!(compared.conclusion, wanted, "{words}: {service}");
            let text = compared.text(&Look::unlimited());
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(
                text.contains(words),
                wanted == Explained || words.is_empty(),
                "{text}"
            );
        }
    }
    let doubt = against(101, 1, &nothing());
    assert_eq!(doubt.conclusion, Explained);
    assert_eq!(doubt.fleet_micro_usd, sum(100));
    assert_eq!(doubt.difference_micro_usd, Some(1));
    // It can only make the service's figure the higher one.
    let below = against(99, 1, &nothing());
    assert_eq!(
        (below.conclusion, below.difference_micro_usd),
        (Unexplained, Some(-1))
    );
    assert!(below.text(&Look::unlimited()).contains("on two machines"));
}

#[test]
fn an_amount_explains_no_more_than_itself() {
    let beside = Beside {
        outside: sum(5),
        inside: sum(2),
        counted_twice: Some(sum(1)),
        ..nothing()
    };
    for (service, wanted) in [
        (105, Conclusion::Explained),
        (106, Conclusion::Unexplained),
        (97, Conclusion::Explained),
        (96, Conclusion::Unexplained),
    ] {
        assert_eq!(against(service, 0, &beside).conclusion, wanted, "{service}");
    }
}

#[test]
fn what_is_not_known_explains_nothing_and_is_named() {
    let beside = Beside {
        silent: 3,
        ..Beside::default()
    };
    for (service, silent) in [(101, true), (99, false)] {
        let compared = against(service, 0, &beside);
        assert_eq!(compared.conclusion, Conclusion::Unexplained, "{service}");
        let text = compared.text(&Look::unlimited());
        assert!(text.contains("too slow to say"), "{text}");
        let named = text.contains("Not heard since the period began: 3 machines.");
        assert_eq!(named, silent, "{text}");
    }
}
