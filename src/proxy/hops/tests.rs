use http::HeaderMap;
use uuid::Uuid;

use super::{HOPS_MAX, Hops, is_near};
use crate::ledger::entry::EntryId;
use crate::protocol::names::X_BURSAR_VIA;
use crate::proxy::refuse::Code;

const OWN: u128 = 0x0a;

fn id(number: u128) -> String {
    format!("{number:032x}")
}

/// What a request with these header lines goes on with.
fn passed(lines: &[String]) -> Result<Vec<String>, Code> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(X_BURSAR_VIA, line.parse().expect("a value"));
    }
    let hops = Hops::new(EntryId(Uuid::from_u128(OWN)));
    let value = hops.of(&headers).map_err(|refusal| refusal.code)?;
    let ids = value.to_str().expect("printable").split(", ");
    Ok(ids.map(str::to_owned).collect())
}

#[test]
fn a_request_that_has_been_here_is_refused_and_one_that_was_elsewhere_goes_on() {
    let own = id(OWN);
    for (lines, wanted) in [
        (vec![], Ok(vec![own.clone()])),
        (vec![id(1)], Ok(vec![id(1), own.clone()])),
        (
            vec![format!("{},{}", id(1), id(2)), id(3)],
            Ok(vec![id(1), id(2), id(3), own.clone()]),
        ),
        (vec![own.clone()], Err(Code::UpstreamLoop)),
        (
            vec![id(1), format!("{} , {own}", id(2))],
            Err(Code::UpstreamLoop),
        ),
        // What is no id belongs to no bursar.
        (
            vec!["x".into(), format!("{own}0"), "evil, ".into()],
            Ok(vec![own.clone()]),
        ),
    ] {
        assert_eq!(passed(&lines), wanted, "{lines:?}");
    }
    let many = |count: usize| {
        (1..=count)
            .map(|at| id(0x100 + at as u128))
            .collect::<Vec<_>>()
    };
    assert!(passed(&many(HOPS_MAX - 1)).is_ok());
    assert_eq!(passed(&many(HOPS_MAX)), Err(Code::UpstreamLoop));
}

#[test]
fn the_header_goes_to_near_addresses_only() {
    for near in [
        "127.0.0.1",
        "127.9.9.9",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "100.127.255.255",
        "0.0.0.0",
        "::1",
        "::",
        "fd00::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
    ] {
        assert!(is_near(near.parse().expect("an address")), "{near}");
    }
    for far in [
        "8.8.8.8",
        "172.32.0.1",
        "192.169.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "203.0.113.1",
        "2001:db8::1",
        "2606:4700::1",
        "::ffff:8.8.8.8",
    ] {
        assert!(!is_near(far.parse().expect("an address")), "{far}");
    }
}
