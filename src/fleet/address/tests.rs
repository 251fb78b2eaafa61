//! Addresses: which are taken, and what is shown of them.

use super::{Address, AddressError, UrlFile};

fn parsed(text: &str, insecure: bool) -> Result<String, AddressError> {
    Address::parse(text, insecure, None).map(|address| address.to_string())
}

#[test]
fn beyond_this_machine_only_a_checked_server_is_reached() {
    let weak = |mode: &str| Err(AddressError::Weak(mode.to_owned()));
    let here = "books at 127.0.0.1 as node, unencrypted";
    let there = "books at db.example.com as node";
    let open = "books at db.example.com as node, unencrypted";
    let rows: [(&str, bool, Result<&str, AddressError>); 16] = [
        ("postgresql://node:pw@127.0.0.1/books", false, Ok(here)),
        (
            "postgresql://node:pw@127.0.0.1/books?sslmode=disable",
            false,
            Ok(here),
        ),
        (
            "postgresql://node:pw@localhost/books?sslmode=verify-full",
            false,
            Ok("books at localhost as node"),
        ),
        (
            "postgresql:///books?host=/run/postgresql&user=node",
            false,
            Ok("books at /run/postgresql as node, unencrypted"),
        ),
        (
            "postgresql://node:pw@db.example.com/books",
            false,
            Ok(there),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=verify-full&sslrootcert=system",
            false,
            Ok(there),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=disable",
            false,
            weak("disable"),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=prefer",
            false,
            weak("prefer"),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=require",
            false,
            weak("require"),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=verify-ca",
            false,
            weak("verify-ca"),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=disable",
            true,
            Ok(open),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=require",
            true,
            Ok(there),
        ),
        (
            "postgresql://node:pw@127.0.0.1,db.example.com/books?sslmode=disable",
            false,
            weak("disable"),
        ),
        (
            "postgresql://node:pw@localhost/books?hostaddr=10.0.0.5&sslmode=disable",
            false,
            weak("disable"),
        ),
        (
            "postgresql://node:pw@localhost/books?hostaddr=10.0.0.5",
            false,
            Ok("books at localhost as node"),
        ),
        (
            "postgresql://node:pw@db.example.com/books?sslmode=verify-most",
            true,
            Err(AddressError::UnknownMode("verify-most".to_owned())),
        ),
    ];
    for (text, insecure, expected) in rows {
        assert_eq!(
            parsed(text, insecure),
            expected.map(str::to_owned),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_address_is_refused_without_repeating_it() {
    let rows = [
        ("", AddressError::NoUser),
        ("mysql://node:pw@h/books", AddressError::Malformed),
        (
            "postgresql://node:pw@h/books?frobnicate=1",
            AddressError::Malformed,
        ),
        ("postgresql://h/books", AddressError::NoUser),
        ("postgresql:///books?user=node", AddressError::NoHost),
    ];
    for (text, expected) in rows {
        let error = parsed(text, false).expect_err("none");
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().contains("pw"), "{error}");
    }
    let missing = parsed("postgresql://node:pw@h/b?sslrootcert=/no/such/file", false);
    assert!(
        matches!(missing, Err(AddressError::Certificates { .. })),
        "{missing:?}"
    );
}

#[test]
fn the_file_has_the_address_and_perhaps_a_code_below_it() {
    let file = UrlFile::parse("\n postgresql://h/b \n\ncode-1\nmore\n");
    assert_eq!(
        (file.url.as_str(), file.code.as_deref()),
        ("postgresql://h/b", Some("code-1"))
    );
    let file = UrlFile::parse("postgresql://h/b");
    assert_eq!(file.code, None);
    assert!(!format!("{file:?}").contains("postgresql"));
}

#[test]
fn the_password_is_in_no_text() {
    let address =
        Address::parse("postgresql://node:secret@127.0.0.1/books", false, None).expect("one");
    assert!(!format!("{address} {address:?}").contains("secret"));
}
