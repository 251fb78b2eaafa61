use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::*;

fn config(state_dir: &Path, proxy: &str) -> Config {
    let overrides = Overrides {
        upstream: Some("http://127.0.0.1:9".to_owned()),
        listen: vec![proxy.to_owned()],
        admin: Some("127.0.0.1:0".to_owned()),
        state_dir: Some(state_dir.to_owned()),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", "key-of-the-test")]);
    Config::load(&overrides, &env).unwrap()
}

async fn start(state_dir: &Path, proxy: &str) -> Result<Server, ServerError> {
    Server::start(config(state_dir, proxy), SystemClock::shared()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reachable_on_every_address_it_reports_until_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    let mut server = start(&state_dir, "127.0.0.1:0").await.unwrap();
    let socket = state_dir.join("admin.sock");

    let Some(ListenAddr::Tcp(proxy)) = server.listening().proxy.first().cloned() else {
        panic!("no proxy address");
    };
    assert!(TcpStream::connect(proxy).await.is_ok());
    let mut admin = UnixStream::connect(&socket).await.unwrap();
    admin
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    admin.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    server.stop().await;
    drop(server);

    assert!(TcpStream::connect(proxy).await.is_err());
    assert!(!socket.exists());
    assert!(
        start(&state_dir, "127.0.0.1:0").await.is_ok(),
        "the lock is free again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_on_the_same_ledger_is_refused_by_name_and_disturbs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path().join("state").as_path(), "127.0.0.1:0")
        .await
        .unwrap();

    let second = start(folder.path().join("state").as_path(), "127.0.0.1:0").await;

    let error = second.err().unwrap().to_string();
    let pid = std::process::id().to_string();
    assert!(error.contains("locked") && error.contains(&pid), "{error}");
    assert!(folder.path().join("state/admin.sock").exists());
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let error = start(&state_dir, &address).await.err().unwrap();

    let error = error.to_string();
    let cause = format!("cannot listen on {address}: address in use: ");
    assert!(error.starts_with(&cause), "{error}");
    assert!(error.contains("`bursar doctor`"), "{error}");
    assert!(!state_dir.exists(), "no ledger was begun");
    assert!(
        start(&state_dir, "127.0.0.1:0").await.is_ok(),
        "the lock is free again"
    );
}
