//! What is sent, how often, and what a program gets and does not get.

use std::fs;
use std::path::Path;

use parking_lot::Mutex;
use rcgen::generate_simple_self_signed;
use rustls::ServerConfig;
use rustls_pki_types::PrivatePkcs8KeyDer;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

fn notice() -> Notice {
    Notice::trial(1)
}

fn url(text: &str) -> NotifyWay {
    NotifyWay::Url(NotifyUrl::parse(text).unwrap())
}

fn shell(script: &str) -> NotifyWay {
    NotifyWay::Command(vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()])
}

/// Answers each connection with the next of these, and with success from then on. What was asked, in its order.
async fn receiver(answers: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    tokio::spawn(async move {
        let always = std::iter::repeat_with(|| "200 OK".to_owned());
        for answer in answers.into_iter().chain(always) {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
            while !asked.ends_with(b"}") {
                let bytes = stream.read(&mut piece).await.unwrap();
                assert_ne!(bytes, 0, "a whole request");
                asked.extend_from_slice(&piece[..bytes]);
            }
            hearing.lock().push(String::from_utf8(asked).unwrap());
            let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (base, heard)
}

#[tokio::test]
async fn an_object_is_posted_once_where_it_is_taken() {
    let (base, heard) = receiver(vec!["204 No Content".to_owned()]).await;
    send(&url(&format!("{base}/a/b?k=1")), &notice())
        .await
        .unwrap();
    let heard = heard.lock();
    assert_eq!(heard.len(), 1);
    let (head, body) = heard[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /a/b?k=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("application/json"), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["event"], "trial");
}

#[tokio::test]
async fn it_is_tried_three_times_and_not_again_where_that_cannot_help() {
    let pauses = [Duration::ZERO; 2];
    // A redirect names another receiver, which would take it.
    let (other, heard_by_other) = receiver(Vec::new()).await;
    let redirect = format!("302 Found\r\nLocation: {other}/");
    for (answers, is_sent) in [
        (&["500 E", "503 E", "200 OK"][..], true),
        (&["500 E", "503 E", "502 E"], false),
        (&["429 E", "408 E", "202 OK"], true),
        (&["404 E"], false),
        (&[&*redirect], false),
    ] {
        let (base, heard) =
            receiver(answers.iter().map(|&answer| answer.to_owned()).collect()).await;
        let sent = send_with(&url(&base), &notice(), pauses).await;
        assert_eq!(sent.is_ok(), is_sent, "{answers:?}: {sent:?}");
        assert_eq!(heard.lock().len(), answers.len(), "{answers:?}");
    }
    assert_eq!(heard_by_other.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_answer_is_waited_for_for_five_seconds() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let began = tokio::time::Instant::now();
    let sent = try_once(&url(&base), &notice()).await;
    assert!(matches!(sent, Err(Unsent::Slow)), "{sent:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_receiver_without_a_certificate_that_holds_gets_nothing() {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.is_ok()
    });
    let sent = try_once(&url(&format!("https://localhost:{port}/secret")), &notice()).await;
    let why = sent.expect_err("nobody trusts it").to_string();
    assert!(!why.contains("secret"), "{why}");
    assert!(!accepted.await.unwrap(), "no handshake was whole");
}

#[tokio::test]
async fn a_program_gets_the_object_path_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let script = format!(
        "tr '\\0' '\\n' </proc/$$/environ >{}; cat >{}; pwd >{}",
        at("environment"),
        at("input"),
        at("directory")
    );
    send(&shell(&script), &notice()).await.unwrap();
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    assert_eq!(read("environment"), format!("PATH={PATH}\n"));
    assert_eq!(read("directory"), "/\n");
    let input: serde_json::Value = serde_json::from_str(&read("input")).unwrap();
    assert_eq!(input["event"], "trial");
}

#[tokio::test]
async fn a_program_that_fails_or_is_not_there_is_no_success() {
    let failed = send(&shell("exit 3"), &notice()).await;
    assert!(matches!(failed, Err(Unsent::Ended(_))), "{failed:?}");
    // It need not read what it is given.
    send(&shell("exec true"), &notice()).await.unwrap();
    let nowhere = NotifyWay::Command(vec!["/nowhere/tell".to_owned()]);
    let failed = send(&nowhere, &notice()).await;
    assert!(matches!(failed, Err(Unsent::Start(_))), "{failed:?}");
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    // Both hold it open.
    let fifo = folder.path().join("alive");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let script = format!("exec 9<>{}; sleep 600 & sleep 600", fifo.display());
    let NotifyWay::Command(words) = shell(&script) else {
        panic!("a program");
    };
    let running = tokio::spawn(async move { run(&words, b"{}", Duration::from_secs(2)).await });
    while !is_held(&fifo) {
        tokio::task::yield_now().await;
    }
    let killed = running.await.unwrap();
    assert!(matches!(killed, Err(Unsent::Killed)), "{killed:?}");
    while is_held(&fifo) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_end_is_killed_after_ten_seconds() {
    let began = tokio::time::Instant::now();
    let sent = try_once(&shell("exec sleep 600"), &notice()).await;
    let why = sent.expect_err("it does not end");
    assert!(matches!(why, Unsent::Killed), "{why:?}");
    assert_eq!(why.to_string(), "it ran for 10 s and was killed");
    assert_eq!(began.elapsed().as_secs(), 10);
}

/// A pipe that nobody has open for reading cannot be opened for writing.
fn is_held(fifo: &Path) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    open(fifo, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_ok()
}
