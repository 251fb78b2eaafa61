//! Daemons of other releases.

use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

use super::*;
use crate::admin::documents::{ReceiptsDocument, SpendDocument};
use crate::config::ListenAddr;

/// A daemon that gives this answer to every request.
pub async fn answering(body: &str) -> ListenAddr {
    giving(answer_of("200 OK", body)).await
}

async fn giving(answer: String) -> ListenAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            give(&answer, connection).await;
        }
    });
    ListenAddr::Tcp(address)
}

/// The same at a Unix socket.
pub fn answering_at(path: &Path, body: &str) {
    let listener = UnixListener::bind(path).expect("a socket");
    let answer = answer_of("200 OK", body);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            give(&answer, connection).await;
        }
    });
}

fn answer_of(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

async fn give(answer: &str, mut to: impl AsyncRead + AsyncWrite + Unpin) {
    let mut head = [0; 4096];
    let _ = to.read(&mut head).await;
    let _ = to.write_all(answer.as_bytes()).await;
}

#[tokio::test]
async fn an_answer_of_another_release_that_cannot_be_read_is_named_with_what_to_do() {
    let receipts = json!({ "receipts": [{ "id": "01a2063b-047b-7000-b00d-3dda899d660c" }] });
    let address = answering(&receipts.to_string()).await;
    let client = Client::new(address.clone());
    let errors = [
        ask::<ReceiptsDocument>(&client, &Question::new("/api/receipts"))
            .await
            .map(|_| ()),
        ask::<SpendDocument>(&client, &Question::new("/api/spend"))
            .await
            .map(|_| ()),
    ];
    for error in errors {
        let words = error.unwrap_err().to_string();
        let address = address.to_string();
        let wanted = [&*address, "missing field", "two releases", "restart"];
        for wanted in wanted {
            assert!(words.contains(wanted), "{wanted}: {words}");
        }
    }
}

#[tokio::test]
async fn an_order_whose_answer_cannot_be_read_was_carried_out() {
    let client = Client::new(answering("{}").await);

    let ordered = order::<AppsDocument>(&client, "/api/apps/remove", &json!({})).await;

    let words = ordered.unwrap_err().to_string();
    for wanted in ["two releases", "It has carried the order out"] {
        assert!(words.contains(wanted), "{words}");
    }
}

#[tokio::test]
async fn a_user_who_may_only_read_is_told_to_use_sudo_for_a_change() {
    let refused = answer_of("405 Method Not Allowed", "use the command line");
    let client = Client::new(giving(refused).await);

    let ordered = order::<AppsDocument>(&client, "/api/freeze", &json!({})).await;

    let words = ordered.unwrap_err().to_string();
    for wanted in ["Nothing was changed", "use sudo"] {
        assert!(words.contains(wanted), "{words}");
    }
    assert!(!words.contains("command line"), "{words}");
}

#[test]
fn the_words_of_whatever_answered_are_no_control_of_the_terminal() {
    assert_eq!(shown_lines("a\u{1b}]0;x\u{7}\nb"), "a\\u{1b}]0;x\\u{7}\nb");
}
