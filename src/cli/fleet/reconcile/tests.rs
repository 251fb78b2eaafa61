use uuid::Uuid;

use super::*;

#[test]
fn what_can_make_the_difference_is_named_and_else_it_is_not_explained() {
    let sum = MicroUsdSum::from_micro_usd;
    // The service's figure, in doubt, lines behind, losses, counted twice.
    let cases = [
        (100, 0, 0, 0, 0, Conclusion::Equal),
        (101, 0, 0, 0, 0, Conclusion::Unexplained),
        (101, 1, 0, 0, 0, Conclusion::Explained),
        (101, 0, 3, 0, 0, Conclusion::Explained),
        (101, 0, 0, 1, 0, Conclusion::Explained),
        (101, 0, 0, 0, 9, Conclusion::Unexplained),
        (99, 1, 3, 0, 0, Conclusion::Unexplained),
        (99, 0, 0, 0, 1, Conclusion::Explained),
        (98, 0, 0, 0, 1, Conclusion::Unexplained),
    ];
    for (service, in_doubt, lines_behind, losses, twice, wanted) in cases {
        let row = |host: &str, billed| FleetSpend {
            labels: vec![host.to_owned()],
            requests: 1,
            billed: sum(billed),
            in_doubt: 0,
            unreported: 0,
        };
        let rows = [
            row("a", 60),
            FleetSpend {
                in_doubt,
                ..row("b", 40)
            },
        ];
        let ledger = FleetLedger {
            ledger: Uuid::nil(),
            host: "a".to_owned(),
            bursar: "0.1.0".to_owned(),
            heard_ms: 1,
            lines_behind,
            mark_seq: 1,
            losses: 7,
            clock_ahead_ms: 0,
            copy_of: None,
            is_revoked: false,
            is_gone: false,
            is_awaited: false,
            lag_s: 0,
        };
        let figure = ServiceFigure {
            source: "typed".to_owned(),
            service: sum(service),
            since_ms: 0,
            until_ms: 1,
        };
        let compared = FleetReconciliation::new(figure, &rows, &[ledger], losses, sum(twice));
        let case = (service, in_doubt, lines_behind, losses, twice);
        assert_eq!(compared.conclusion, wanted, "{case:?}");
        let difference = i64::try_from(service).unwrap() - 100;
        assert_eq!(compared.difference_micro_usd, Some(difference), "{case:?}");
        assert_eq!(compared.fleet_micro_usd, sum(100));
    }
}
