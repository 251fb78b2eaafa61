//! The way to a database on another machine: encrypted, the server's name checked, with a password.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use bursar::fleet::{Address, Fleet};

use super::{DATABASE, fleet};
use crate::tls::certs::{Authority, NOW};

const NAME: &str = "database.example";
const PASSWORD: &str = "a-long-password";

/// Of this process alone, so that the server's usual port is free there.
fn own_address() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    IpAddr::from(Ipv4Addr::new(127, high.max(1), middle, low.clamp(1, 254)))
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_is_reached_with_its_authority_its_name_and_its_password_and_in_no_other_way() {
    let postgres = fleet();
    let login = format!("ALTER ROLE node PASSWORD '{PASSWORD}'");
    postgres.sql("postgres", &login);
    let authority = Authority::new("the authority");
    let identity = authority.signs(&[NAME], &NOW);
    let address = own_address();
    postgres.listen(address, &identity.pem, &identity.key_pem);
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, pem: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).expect("a file");
        path
    };
    let known = file("known.pem", &authority.pem);
    let other = file("other.pem", &Authority::new("another").pem);

    let connect = |name: &str, password: &str, mode: &str, insecure: bool, ca: Option<&PathBuf>| {
        let url =
            format!("postgresql://node:{password}@{name}/{DATABASE}?hostaddr={address}{mode}");
        let parsed = Address::parse(&url, insecure, ca.cloned());
        async move {
            let parsed = parsed.map_err(|error| error.to_string())?;
            let fleet = Fleet::connect(&parsed).await;
            let fleet = fleet.map_err(|error| error.to_string())?;
            let greeting = fleet.greet().await;
            greeting.map_err(|error| error.to_string())
        }
    };
    for mode in ["", "&sslmode=verify-full"] {
        let greeting = connect(NAME, PASSWORD, mode, false, Some(&known)).await;
        assert!(greeting.expect("it is reached").is_node, "{mode}");
    }
    let ca = Some(&known);
    let table = [
        (NAME, "a-wrong-password", "", false, ca, "password"),
        ("other.example", PASSWORD, "", false, ca, "certificate"),
        (NAME, PASSWORD, "", false, Some(&other), "certificate"),
        (NAME, PASSWORD, "", false, None, "certificate"),
        (NAME, PASSWORD, "&sslmode=require", false, ca, "verify-full"),
        (NAME, PASSWORD, "&sslmode=disable", false, ca, "verify-full"),
        // Not checked less, because nobody else could have asked for it.
        (
            NAME,
            PASSWORD,
            "&sslmode=require",
            true,
            Some(&other),
            "certificate",
        ),
        // The server's own rule.
        (
            NAME,
            PASSWORD,
            "&sslmode=disable",
            true,
            ca,
            "no pg_hba.conf entry",
        ),
    ];
    for (name, password, mode, insecure, ca, wanted) in table {
        let refused = connect(name, password, mode, insecure, ca).await;
        let why = refused.expect_err("it is not reached");
        let case = format!("{name} {mode} {insecure} {ca:?}: {why}");
        assert!(why.contains(wanted), "{case}");
        assert!(!why.contains(PASSWORD), "{case}");
    }
}
