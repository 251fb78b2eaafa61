use super::*;

#[test]
fn the_default_name_gives_the_names_of_the_interface() {
    let names = ServiceNames::new("service").unwrap();

    let headers = [
        (&names.billed, "X-Service-Billed"),
        (&names.would_have_cost, "X-Service-Frontier-Would-Have-Cost"),
        (&names.served_by, "X-Service-Served-By"),
        (&names.specialist, "X-Service-Specialist"),
        (&names.escalated, "X-Service-Escalated"),
        (&names.route_version, "X-Service-Route-Version"),
        (&names.input_required, "X-Service-Input-Required"),
        (&names.session, "X-Service-Session"),
        (&names.rte_query, "X-Service-RTE-Query"),
        (&IDEMPOTENCY_KEY, "Idempotency-Key"),
        (&IDEMPOTENT_REPLAYED, "Idempotent-Replayed"),
    ];
    for (name, literal) in headers {
        assert_eq!(*name, HeaderName::try_from(literal).unwrap(), "{literal}");
    }
    let comments = [
        (&names.comment_billed, "service-billed-micro-usd"),
        (
            &names.comment_would_have_cost,
            "service-frontier-would-have-cost-micro-usd",
        ),
        (&names.comment_served_by, "service-served-by"),
        (&names.comment_route_version, "service-route-version"),
    ];
    for (name, literal) in comments {
        assert_eq!(**name, *literal.as_bytes(), "{literal}");
    }
}

#[test]
fn another_name_stands_in_every_header_and_comment() {
    let names = ServiceNames::new("acme-2").unwrap();

    assert_eq!(names.billed, "x-acme-2-billed");
    assert_eq!(names.session, "x-acme-2-session");
    assert_eq!(*names.comment_billed, *b"acme-2-billed-micro-usd");
}

#[test]
fn a_name_outside_the_grammar_is_refused() {
    let too_long = "a".repeat(33);
    for name in [
        "", "Service", "2x", "-a", "a b", "a_b", "é", "a\r\nx", &too_long,
    ] {
        assert_eq!(
            ServiceNames::new(name),
            Err(NamesError::Grammar),
            "{name:?}"
        );
    }
    assert!(ServiceNames::new(&"a".repeat(32)).is_ok());
}
