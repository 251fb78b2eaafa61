use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

use super::*;

#[tokio::test]
async fn a_stream_arrives_chunk_by_chunk() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(ListenAddr::Tcp(listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 1024];
        let read = stream.read(&mut head).await.unwrap();
        assert!(head[..read].starts_with(b"POST /v1/x HTTP/1.1\r\n"));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            .await
            .unwrap();
        // The second chunk leaves only when the first was read.
        let mut go = [0];
        stream.read(&mut go).await.unwrap()
    });

    let mut answer = client.post_json("/v1/x", "{}").await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "one");
    drop(answer);

    assert_eq!(
        server.await.unwrap(),
        0,
        "dropping the answer closes the connection"
    );
}

#[tokio::test]
async fn a_unix_socket_answers_and_a_long_body_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 1024];
            let _ = stream.read(&mut head).await.unwrap();
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
                .await;
        }
    });
    let client = Client::new(ListenAddr::Unix(path));

    let text = client.get("/").await.unwrap().text(5).await.unwrap();
    let refused = client.get("/").await.unwrap().text(4).await;

    assert_eq!(text, "hello");
    assert!(matches!(
        refused,
        Err(ClientError::TooLarge { bytes_max: 4 })
    ));
}

#[tokio::test]
async fn a_missing_daemon_is_a_connect_error_that_names_the_address() {
    let client = Client::new(ListenAddr::Unix("/nonexistent/admin.sock".into()));

    let error = client.get("/").await.unwrap_err();

    assert!(
        error
            .to_string()
            .starts_with("cannot connect to unix:/nonexistent/admin.sock")
    );
}

#[tokio::test]
async fn a_hanging_daemon_is_not_waited_for_and_a_stream_is_never_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(ListenAddr::Tcp(listener.local_addr().unwrap()));
    let client = client.answering_within(Duration::from_millis(200));

    // Accepted by the system alone: no process accepts.
    let silent = client.get("/").await.unwrap_err();
    assert!(
        silent.means_silence() && !silent.means_no_daemon(),
        "{silent}"
    );
    assert!(
        silent
            .to_string()
            .ends_with("takes connections and does not answer: 0 s have passed")
    );
    drop(listener.accept().await.unwrap());

    let server = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 1024];
            let _ = stream.read(&mut head).await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";
            stream.write_all(head).await.unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            // A client that did not wait is gone.
            let _ = stream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").await;
        }
    });
    let mut held = client.get("/").await.unwrap();
    assert_eq!(held.chunk().await.unwrap().unwrap(), "one");
    assert_eq!(
        held.chunk().await.unwrap().unwrap(),
        "two",
        "a held connection"
    );
    drop(held);
    let whole = client.get("/").await.unwrap().bytes(100).await;
    assert!(whole.unwrap_err().means_silence());
    server.await.unwrap();
}

#[tokio::test]
async fn a_socket_that_another_user_listens_on_is_sent_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("admin.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let own = rustix::process::geteuid().as_raw();
    let client = Client::new(ListenAddr::Unix(path)).of_users(vec![own + 1]);

    let refused = client.get("/api/status").await;

    assert!(
        matches!(refused, Err(ClientError::Peer { .. })),
        "{refused:?}"
    );
    let (mut connection, _) = listener.accept().await.expect("the connection");
    let mut sent = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut connection, &mut sent).await;
    assert_eq!((read.ok(), sent.len()), (Some(0), 0));
}
