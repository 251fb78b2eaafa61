//! Users of a Unix socket, really other ones: what the kernel says of a peer decides.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bursar::ledger::query::EntryView;
use tokio::process::Command;

use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, command};
use crate::support::origin::billed;
use crate::support::{Origin, Step};

/// Users of nothing: one that is an app, and one that is not.
const LISTED: u32 = 65534;
const STRANGER: u32 = 65533;

/// Posts to a Unix socket, and gets without a body; returns the status, and the code or whether there is a key.
const SCRIPT: &str = r#"
import json, socket, sys
peer = socket.socket(socket.AF_UNIX)
try:
    peer.connect(sys.argv[1])
except OSError as error:
    sys.exit(print(type(error).__name__))
body = sys.argv[3].encode()
method = "POST" if body else "GET"
head = f"{method} {sys.argv[2]} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
for line in sys.argv[4:]:
    head += line + "\r\n"
peer.sendall(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
answer = b""
while chunk := peer.recv(65536):
    answer += chunk
head, _, body = answer.partition(b"\r\n\r\n")
error = json.loads(body).get("error") if body.startswith(b"{") else None
said = error["code"] if error else "a key" if b'"key":"bursar-' in body else "-"
print(head.split()[1].decode(), said)
"#;

/// The answer that the process of a user gets.
async fn answer_to(user: u32, socket: &Path, path: &str, body: &str, headers: &[&str]) -> String {
    let mut process = Command::new("python3");
    process.args(["-c", SCRIPT]).arg(socket).args([path, body]);
    process.args(headers).uid(user).gid(user).current_dir("/");
    let output = process.output().await.expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

#[tokio::test]
async fn a_listed_user_is_its_app_and_another_is_a_stranger() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: another user's process is started by root alone");
        return;
    }
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let folder = tempfile::tempdir().expect("a directory");
    // Others reach the socket, and nothing in the state directory.
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).expect("a mode");
    let (socket, state) = (folder.path().join("app.sock"), folder.path().join("state"));
    let config = folder.path().join("config.toml");
    let text = format!("[[app]]\nname = \"team\"\nuids = [{LISTED}]\n");
    std::fs::write(&config, text).expect("a file");
    let listen = format!("unix:{}", socket.display());
    let config = config.to_str().expect("a path");
    let more = ["--listen", listen.as_str(), "--config", config];
    let daemon = Daemon::start(&origin.url(), &state, &more).await;
    let chat = crate::support::chat("hi");
    let placeholder = "Authorization: Bearer unused";
    let post = |user, headers: &'static [&'static str]| {
        let (socket, chat) = (socket.clone(), chat.clone());
        async move { answer_to(user, &socket, "/v1/chat/completions", &chat, headers).await }
    };

    assert_eq!(post(LISTED, &[]).await, "200 -");
    assert_eq!(
        post(LISTED, &["Authorization: Bearer unused"]).await,
        "200 -"
    );
    for user in [STRANGER, 0] {
        assert_eq!(post(user, &[]).await, "401 token_missing", "user {user}");
        let shown = answer_to(user, &socket, "/v1/chat/completions", &chat, &[placeholder]).await;
        assert_eq!(shown, "401 token_refused", "user {user}");
        // A caller's own claims about its user count for nothing.
        let claims = answer_to(
            user,
            &socket,
            "/v1/chat/completions",
            &chat,
            &["X-Bursar-App: team", "X-Bursar-Uid: 65534"],
        )
        .await;
        assert_eq!(claims, "401 token_missing", "user {user}");
    }
    assert_eq!(origin.received().len(), 2);

    // Nothing is changed by either: the admin socket lies where they cannot go.
    let admin = state.join("admin.sock");
    for user in [LISTED, STRANGER] {
        let refused = answer_to(user, &admin, "/api/apps/add", "{\"name\":\"evil\"}", &[]).await;
        assert_eq!(refused, "PermissionError", "user {user}");
    }
    // As `systemd/bursar-admin.socket` opens it to a group: its peers read, without keys, and change nothing.
    for (path, mode) in [(&state, 0o711), (&admin, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let add = "{\"name\":\"evil\"}";
    for (user, read, changed) in [
        (LISTED, "200 -", false),
        (STRANGER, "200 -", false),
        (0, "200 a key", true),
    ] {
        let receipts = answer_to(user, &admin, "/api/receipts", "", &[]).await;
        assert_eq!(receipts, read, "user {user}");
        let answer = answer_to(user, &admin, "/api/apps/add", add, &[]).await;
        assert_eq!(answer.starts_with("200"), changed, "user {user}: {answer}");
        assert_eq!(answer.starts_with("405"), !changed, "user {user}: {answer}");
    }
    // A user that is added at run time is known at once.
    let added = command(&["app", "add", "late", "--uid", "65533", "--state-dir"])
        .arg(&state)
        .args(["--config", config])
        .output()
        .await
        .expect("it ends");
    assert!(
        added.status.success(),
        "{}",
        String::from_utf8_lossy(&added.stderr)
    );
    assert_eq!(post(STRANGER, &[]).await, "200 -");
    daemon.terminate().await;
    let apps: Vec<EntryView> = entries(&state);
    let apps: Vec<&str> = apps.iter().map(|entry| &*entry.app).collect();
    assert_eq!(apps, ["team", "team", "late"]);
}
