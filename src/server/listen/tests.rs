use std::os::unix::net::UnixListener as BlockingUnixListener;

use super::*;

fn tcp(text: &str) -> ListenAddr {
    ListenAddr::Tcp(text.parse().unwrap())
}

#[tokio::test]
async fn port_0_is_bound_to_a_port_that_is_reported() {
    let bound = bind_all(&[tcp("127.0.0.1:0")], false).unwrap();

    assert!(matches!(bound[0].address(), ListenAddr::Tcp(address) if address.port() != 0));
}

#[tokio::test]
async fn a_taken_port_is_one_clear_line() {
    let first = bind_all(&[tcp("127.0.0.1:0")], false).unwrap();
    let taken = first[0].address();

    let error = bind_all(std::slice::from_ref(&taken), false).unwrap_err();

    let line = error.to_string();
    let wanted = format!("cannot listen on {taken}: address in use: ");
    assert!(line.starts_with(&wanted), "{line}");
    assert!(line.contains("--listen") && !line.contains('\n'), "{line}");
}

#[tokio::test]
async fn an_address_the_machine_lacks_is_skipped_only_where_it_was_not_configured() {
    // 192.0.2.0/24 is reserved for documentation: no machine has it.
    let addresses = [tcp("127.0.0.1:0"), tcp("192.0.2.1:0")];

    assert_eq!(bind_all(&addresses, true).unwrap().len(), 1);
    assert!(bind_all(&addresses, false).is_err());
    assert!(bind_all(&addresses[1..], true).is_err(), "one must be left");
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_the_new_one_is_the_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    // Dropping a listener leaves its file: what a killed process leaves.
    drop(BlockingUnixListener::bind(&path).unwrap());

    let bound = bind_all(&[ListenAddr::Unix(path.clone())], false).unwrap();

    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    drop(bound);
    assert!(!path.exists(), "the file goes with the listener");
}

#[tokio::test]
async fn a_socket_in_use_and_a_plain_file_stay() {
    let folder = tempfile::tempdir().unwrap();
    let used = folder.path().join("used.sock");
    let _listening = BlockingUnixListener::bind(&used).unwrap();
    let plain = folder.path().join("notes.txt");
    fs::write(&plain, "mine").unwrap();

    let in_use = bind_all(&[ListenAddr::Unix(used.clone())], false).unwrap_err();
    let no_socket = bind_all(&[ListenAddr::Unix(plain.clone())], false).unwrap_err();

    assert!(in_use.to_string().ends_with("address in use"), "{in_use}");
    assert!(no_socket.to_string().contains("no socket"), "{no_socket}");
    assert_eq!(fs::read(&plain).unwrap(), b"mine");
    assert!(BlockingUnixStream::connect(&used).is_ok());
}
