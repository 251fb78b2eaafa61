//! The memory of a running daemon: it contains the key in use, and not the one used before.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";
const FIRST: &str = "sk-first-5d41402abc4b2a76b9719d911017c592";
const SECOND: &str = "sk-second-7d793037a0760186574b0282f2f435e7";

/// How often `secret` occurs in the process's writable memory; `None` if this test may not read it.
fn copies(pid: u32, secret: &str) -> Option<usize> {
    let maps = readable(std::fs::read_to_string(format!("/proc/{pid}/maps")))?;
    let memory = readable(File::open(format!("/proc/{pid}/mem")))?;
    let mut copies = 0;
    for line in maps.lines() {
        let mut columns = line.split_ascii_whitespace();
        let (range, rights) = (columns.next().expect("a range"), columns.next());
        if !rights.expect("rights").starts_with("rw") {
            continue;
        }
        let (from, to) = range.split_once('-').expect("a range");
        let address = |text| u64::from_str_radix(text, 16).expect("an address");
        let (from, to) = (address(from), address(to));
        let mut bytes = vec![0; usize::try_from(to - from).expect("a size")];
        // A mapping may be gone by now, or its last pages may be unbacked.
        let read = memory.read_at(&mut bytes, from).unwrap_or(0);
        copies += memmem::find_iter(&bytes[..read], secret).count();
    }
    Some(copies)
}

fn readable<T>(opened: std::io::Result<T>) -> Option<T> {
    match opened {
        Ok(opened) => Some(opened),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => panic!("the process cannot be looked at: {error}"),
    }
}

/// A daemon with its key in a file, in front of an origin.
struct Rotating {
    origin: Origin,
    daemon: Daemon,
    key: PathBuf,
    _directory: tempfile::TempDir,
}

impl Rotating {
    async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let origin = Origin::start([]).await;
        let key = directory.path().join("api-key");
        put(&key, FIRST);
        let state = directory.path().join("state");
        let url = origin.url();
        let mut arguments =
            crate::support::daemon::run_arguments(&url, state.to_str().expect("a path"));
        arguments.extend(["--api-key-file", key.to_str().expect("a path")]);
        let mut command = command(&arguments);
        command.env_remove("BURSAR_API_KEY");
        Self {
            daemon: Daemon::ready(command).await,
            origin,
            key,
            _directory: directory,
        }
    }

    fn pid(&self) -> u32 {
        self.daemon.child.id().expect("a pid")
    }

    /// Small and large bodies, an answer and a stream.
    async fn ask_for_all(&self) {
        let stream = [
            stream_head(),
            chunk(": service-billed-micro-usd 7\n\n"),
            chunk("data: [DONE]\n\n"),
            last_chunk(),
        ];
        for prompt in ["hi", &"long ".repeat(800)] {
            self.origin.push(Step::Answer(billed(3)));
            let app = self.daemon.connect().await;
            assert_eq!(app.post(CHAT, &chat(prompt)).await.status, 200);
            self.origin.push(Step::Answer(stream.concat()));
            let app = self.daemon.connect().await;
            let body = crate::support::chat_stream(prompt);
            assert!(app.post(CHAT, &body).await.complete);
        }
    }

    fn sent_with(&self, key: &str) -> bool {
        let received = self.origin.received();
        let sent = received.last().expect("a request");
        sent.header("authorization") == Some(&format!("Bearer {key}"))
    }

    async fn reload(&self) {
        self.daemon.signal(Signal::HUP);
        eventually("the reload", || async {
            let page = self.daemon.admin_page("/metrics").await.text();
            let line = "bursar_config_reloads_total{result=\"ok\"} 1";
            page.lines().any(|known| known == line).then_some(())
        })
        .await;
    }
}

fn put(path: &Path, key: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("{key}\n")).expect("a key file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}

#[tokio::test]
async fn a_key_that_was_replaced_is_wiped_when_its_last_request_has_ended() {
    let rotating = Rotating::start().await;
    rotating.ask_for_all().await;
    assert!(rotating.sent_with(FIRST));
    let pid = rotating.pid();
    let Some(before) = copies(pid, FIRST) else {
        // Not root: that the door is closed is what can be seen from here. That the key's own buffer
        // is wiped is seen by its unit test.
        eprintln!("memory is not looked at: only root may, and that is the defence");
        return;
    };
    assert!(before >= 1, "the search finds a key that is in use");

    // Some requests of the first key stay open over the reload, each on a connection of its own.
    let mut open = Vec::new();
    for number in 0..4 {
        let arrived = rotating.origin.received().len();
        rotating.origin.push(Step::Pieces(vec![billed(5)]));
        let mut app = rotating.daemon.connect().await;
        let body = chat(&format!("{number} {}", "under way ".repeat(300)));
        app.send(request("POST", CHAT, &[], &body)).await;
        eventually("the request to arrive", || async {
            (rotating.origin.received().len() > arrived).then_some(())
        })
        .await;
        open.push(app);
    }
    put(&rotating.key, SECOND);
    rotating.reload().await;
    assert!(copies(pid, FIRST) >= Some(1), "requests still use it");
    for mut app in open {
        rotating.origin.go();
        assert_eq!(app.answer().await.status, 200);
    }

    eventually("the first key to be gone from memory", || async {
        (copies(pid, FIRST) == Some(0)).then_some(())
    })
    .await;
    rotating.ask_for_all().await;
    assert!(rotating.sent_with(SECOND));
    assert!(copies(pid, SECOND) >= Some(1));
    assert_eq!(copies(pid, FIRST), Some(0));
    rotating.daemon.terminate().await;
}

/// pingora writes each head into a buffer of its own; when that is freed, it is wiped.
#[tokio::test]
async fn requests_leave_no_copies_of_the_key_behind() {
    let rotating = Rotating::start().await;
    let pid = rotating.pid();
    let Some(at_rest) = copies(pid, FIRST) else {
        eprintln!("memory is not looked at: only root may, and that is the defence");
        return;
    };
    assert_eq!(at_rest, 1, "the key is held once");
    for _ in 0..10 {
        rotating.ask_for_all().await;
    }
    eventually("buffers to be given back, wiped", || async {
        (copies(pid, FIRST) == Some(at_rest)).then_some(())
    })
    .await;
    rotating.daemon.terminate().await;
}
