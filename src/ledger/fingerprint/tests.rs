use std::collections::HashSet;

use super::{FingerprintParts, GivenAs};
use crate::ledger::fixtures::Bench;
use crate::protocol::Dialect;

const PARTS: FingerprintParts<'_> = FingerprintParts {
    method: "POST",
    path_and_query: "/v1/chat/completions",
    body: b"{}",
    session: None,
    rte_query: None,
    given_as: GivenAs::Served,
};

#[test]
fn every_part_counts_and_no_byte_can_move_between_parts() {
    let all = [
        PARTS,
        FingerprintParts {
            method: "PUT",
            ..PARTS
        },
        FingerprintParts {
            path_and_query: "/v1/chat/completions?a",
            ..PARTS
        },
        FingerprintParts {
            body: b"{} ",
            ..PARTS
        },
        FingerprintParts {
            session: Some(b""),
            ..PARTS
        },
        FingerprintParts {
            session: Some(b"s"),
            ..PARTS
        },
        FingerprintParts {
            rte_query: Some(b"s"),
            ..PARTS
        },
        FingerprintParts {
            session: Some(b"sx"),
            rte_query: Some(b"y"),
            ..PARTS
        },
        FingerprintParts {
            session: Some(b"s"),
            rte_query: Some(b"xy"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::MadeStream,
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Responses, "a"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Messages, "a"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Audio, "a"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Audio, "b"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Responses, "b"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Messages, "b"),
            ..PARTS
        },
        FingerprintParts {
            given_as: GivenAs::rendered(Dialect::Chat, "a"),
            ..PARTS
        },
    ];

    let distinct: HashSet<_> = all.iter().map(|parts| parts.hash(&[1; 32])).collect();

    assert_eq!(distinct.len(), all.len());
    assert_eq!(PARTS.hash(&[1; 32]), PARTS.hash(&[1; 32]));
    assert_ne!(PARTS.hash(&[1; 32]), PARTS.hash(&[2; 32]));
}

#[test]
fn a_hash_made_while_the_body_arrives_is_that_of_the_whole() {
    let body: Vec<u8> = (0..300_000_u32).map(|n| n.to_be_bytes()[3]).collect();
    for given_as in [GivenAs::Served, GivenAs::MadeStream] {
        let parts = FingerprintParts {
            body: &body,
            session: Some(b"s"),
            given_as,
            ..PARTS
        };
        for piece_bytes in [1000, 65_536, 300_000] {
            let mut arriving = parts.begin(&[1; 32], body.len());
            body.chunks(piece_bytes)
                .for_each(|piece| arriving.update(piece));
            assert_eq!(arriving.fingerprint(given_as), parts.hash(&[1; 32]));
        }
    }
}

#[test]
fn a_ledger_keeps_its_secret_over_a_restart_and_shares_it_with_no_other() {
    let [bench, other] = [Bench::new(), Bench::new()];

    let first = bench.open().fingerprint(&PARTS);
    let second = bench.open().fingerprint(&PARTS);

    assert_eq!(first, second);
    assert_ne!(first, other.open().fingerprint(&PARTS));
}

#[test]
fn as_the_service_compares_two_requests_order_and_white_space_do_not_count() {
    let of = |body: &'static [u8]| {
        let parts = FingerprintParts { body, ..PARTS };
        parts.hash_as_compared(&[1; 32])
    };
    let base = of(br#"{"model":"auto","n":1}"#);

    assert_eq!(base, of(b"{ \"n\": 1,\n \"model\": \"auto\" }"));
    assert_ne!(base, of(br#"{"model":"auto","n":2}"#));
    assert_ne!(of(b"no JSON"), of(b"no  JSON"));
    // A body that is another's hash is another body.
    assert_ne!(PARTS.hash(&[1; 32]), PARTS.hash_as_compared(&[1; 32]));
    // The service sees no difference: a stream is made of its answer.
    let made_stream = FingerprintParts {
        given_as: GivenAs::MadeStream,
        ..PARTS
    };
    assert_eq!(
        PARTS.hash_as_compared(&[1; 32]),
        made_stream.hash_as_compared(&[1; 32])
    );
    let session = FingerprintParts {
        session: Some(b"s"),
        ..PARTS
    };
    let rte_query = FingerprintParts {
        rte_query: Some(b"s"),
        ..PARTS
    };
    let endpoint = FingerprintParts {
        path_and_query: "/agent/v1/chat/completions",
        ..PARTS
    };
    let all = [PARTS, session, rte_query, endpoint];
    let distinct: HashSet<_> = all
        .iter()
        .map(|parts| parts.hash_as_compared(&[1; 32]))
        .collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn a_fingerprint_is_read_from_64_hex_digits_of_either_case_and_from_nothing_else() {
    let hex = "00ff1a2b".repeat(8);
    let read = super::unhex(&hex);

    assert_eq!(
        read.map(|bytes| bytes[..4].to_vec()),
        Some(vec![0, 0xff, 0x1a, 0x2b])
    );
    assert_eq!(super::unhex(&hex.to_uppercase()), read);
    let signed = hex.replacen("00", "+0", 1);
    for wrong in [
        "",
        &hex[1..],
        &format!("{hex}0"),
        &hex.replacen('f', "g", 1),
        &signed,
        &hex.replacen("ff", "ä", 1),
    ] {
        assert_eq!(super::unhex(wrong), None, "{wrong}");
    }
}
