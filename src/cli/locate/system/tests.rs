//! What is not connected to.

use std::os::unix::net::UnixListener;

use super::*;

#[tokio::test]
async fn what_only_looks_does_not_start_a_stopped_service() {
    for (has_socket, has_run, systemctl, starts) in [
        // Stopped, and its socket is open.
        (true, false, "echo SubState=listening", true),
        (true, true, "echo SubState=listening", false),
        (true, false, "echo SubState=running", false),
        // It cannot be known.
        (true, false, "exit 1", false),
        (false, false, "echo SubState=listening", false),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let (socket, invocation) = (
            folder.path().join("socket"),
            folder.path().join("invocation"),
        );
        let _open = has_socket.then(|| UnixListener::bind(&socket).expect("a socket"));
        if has_run {
            // systemd's is a link that leads nowhere.
            std::os::unix::fs::symlink("0123", &invocation).expect("a link");
        }
        let mut state = Command::new("sh");
        state.args(["-c", systemctl]);
        let unit = SocketUnit {
            socket: &socket,
            invocation: &invocation,
            state,
        };
        let found = unit.starts_service().await;
        assert_eq!(found, starts, "{has_socket} {has_run} {systemctl}");
    }
}

#[test]
fn only_the_units_own_socket_is_left_out() {
    let system = System {
        sockets: ["/a", "/b"]
            .map(|path| ListenAddr::Unix(path.into()))
            .to_vec(),
        address: ListenAddr::DEFAULT_ADMIN,
        state_dir: "/nowhere".into(),
    };
    let left = system.without(Path::new("/a"));
    assert_eq!(left.sockets, [ListenAddr::Unix("/b".into())]);
}
