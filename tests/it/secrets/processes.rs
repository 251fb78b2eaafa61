//! What the kernel reveals about a running daemon: nothing to another user, and nothing to another
//! process of the same user either.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::daemon::{Daemon, command, run_arguments};

/// Users without any files: the daemon's, and another. Used if the test runs as root.
const USER: u32 = 65534;
const STRANGER: u32 = 65533;

/// What shows memory, environment or open files.
const FILES: [&str; 7] = [
    "environ",
    "mem",
    "maps",
    "auxv",
    "stack",
    "pagemap",
    "map_files",
];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a process of this user may read a file, or list a directory.
fn may_read(user: Option<u32>, path: &str) -> bool {
    use std::os::unix::process::CommandExt;
    let script = r#"if [ -d "$1" ]; then ls "$1"/ >/dev/null; else head -c 1 "$1" >/dev/null; fi"#;
    let mut reader = Command::new("/bin/sh");
    reader
        .args(["-c", script, "sh", path])
        .stderr(Stdio::null());
    if let Some(user) = user {
        reader.uid(user).gid(user);
    }
    reader.status().expect("a shell").success()
}

/// Where the daemon of a user without a name can be started from, and write.
fn open_to(user: u32, directory: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::{PermissionsExt, chown};
    let program = directory.join("bursar");
    std::fs::copy(env!("CARGO_BIN_EXE_bursar"), &program).expect("the program is copied");
    for path in [directory, &program] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("a mode");
    }
    let state = directory.join("state");
    std::fs::create_dir(&state).expect("a directory");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    chown(&state, Some(user), Some(user)).expect("an owner");
    program
}

#[tokio::test]
async fn no_other_process_may_look_into_a_running_daemon() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let arguments = run_arguments("http://127.0.0.1:9", state.to_str().expect("a path"));
    let mut daemon = command(&arguments);
    let (same, others): (Option<u32>, Vec<Option<u32>>) = if is_root() {
        let program = open_to(USER, directory.path());
        // A caller that would let it dump.
        let script = "ulimit -c unlimited; exec \"$@\"";
        let mut own = tokio::process::Command::new("/bin/sh");
        own.args(["-c", script, "sh"])
            .arg(program)
            .args(&arguments)
            .env_clear()
            .env("BURSAR_API_KEY", crate::support::KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .uid(USER)
            .gid(USER);
        daemon = own;
        (Some(USER), vec![Some(USER), Some(STRANGER)])
    } else {
        eprintln!("not root: only another process of the same user tries");
        (None, vec![None])
    };
    let mut control = tokio::process::Command::new("sleep");
    control.arg("60").kill_on_drop(true);
    if let Some(user) = same {
        control.uid(user).gid(user);
    }
    let control = control.spawn().expect("a process to compare with");
    let daemon = Daemon::ready(daemon).await;

    let pid = daemon.child.id().expect("a pid");
    for user in others {
        for file in FILES.iter().chain(&["fd", "fdinfo"]) {
            let path = format!("/proc/{pid}/{file}");
            assert!(!may_read(user, &path), "{user:?} reads {path}");
        }
    }
    // The same reader can read a process without this protection.
    let open = control.id().expect("a pid");
    for file in ["environ", "maps", "auxv", "fd"] {
        let path = format!("/proc/{open}/{file}");
        assert!(may_read(same, &path), "the reader reads nothing: {path}");
    }
    // Not even by dying: no core is written.
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let cores = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let cores: Vec<&str> = cores.expect("a line").split_ascii_whitespace().collect();
    assert_eq!(cores[4..6], ["0", "0"], "{cores:?}");
    daemon.terminate().await;
}

/// `--api-key-file <(pass show key)`: the process can still open for itself what it keeps from
/// others.
#[tokio::test]
async fn the_key_can_come_through_a_descriptor_of_a_process_that_keeps_to_itself() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = open_to(
        if is_root() {
            USER
        } else {
            rustix::process::geteuid().as_raw()
        },
        directory.path(),
    );
    let script = r#"printf %s sk-through-a-pipe | "$1" check --upstream http://127.0.0.1:9 --state-dir "$2" --api-key-file /dev/fd/0"#;
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell
        .args(["-c", script, "sh"])
        .arg(program)
        .arg(directory.path().join("state"));
    if is_root() {
        shell.uid(USER).gid(USER);
    }
    let done = shell.output().await.expect("an output");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert!(!said.contains("sk-through"), "{said}");
}
