//! The memory of a running daemon: it contains the key in use, and not the one used before, whether the
//! service is spoken to in the clear, with TLS, or over HTTP/2.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;

use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, eventually};
use crate::tls::certs::{Authority, NOW};
use crate::tls::front::Front;
use crate::tls::http2::Reply;

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
    origin: Arc<Origin>,
    /// Before the origin, where TLS is spoken.
    front: Option<Front>,
    daemon: Daemon,
    key: PathBuf,
    _directory: tempfile::TempDir,
}

impl Rotating {
    /// In the clear.
    async fn start() -> Self {
        let origin = Arc::new(Origin::start([]).await);
        let url = origin.url();
        Self::before(origin, None, &url, "").await
    }

    async fn with_tls(protocol: &str) -> Self {
        let authority = Authority::new("tests");
        let identity = authority.signs(&["localhost"], &NOW);
        let front = Front::start(identity.server(&[protocol])).await;
        let (origin, url) = (Arc::clone(&front.origin), front.url());
        Self::before(origin, Some(front), &url, &authority.pem).await
    }

    async fn before(origin: Arc<Origin>, front: Option<Front>, url: &str, authority: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let text_of = |path: &Path| path.to_str().expect("a path").to_owned();
        put(&at("api-key"), FIRST);
        std::fs::write(at("ca.pem"), authority).expect("a file");
        let settings = match front {
            Some(_) => format!("[upstream]\nca_file = {:?}\n", text_of(&at("ca.pem"))),
            None => String::new(),
        };
        std::fs::write(at("config.toml"), settings).expect("a file");
        let (state, key) = (text_of(&at("state")), text_of(&at("api-key")));
        let config = text_of(&at("config.toml"));
        let mut arguments = crate::support::daemon::run_arguments(url, &state);
        arguments.extend(["--api-key-file", &key, "--config", &config]);
        let mut command = command(&arguments);
        command.env_remove("BURSAR_API_KEY");
        Self {
            daemon: Daemon::ready(command).await,
            origin,
            front,
            key: at("api-key"),
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

/// Requests of the first key stay open over its replacement, and are the last to hold it.
async fn replace(rotating: Rotating) {
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

    // Each on a connection of its own.
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

#[tokio::test]
async fn a_key_that_was_replaced_is_wiped_when_its_last_request_has_ended() {
    replace(Rotating::start().await).await;
}

#[tokio::test]
async fn a_key_that_was_replaced_is_wiped_with_tls_as_well() {
    replace(Rotating::with_tls("http/1.1").await).await;
}

/// In this protocol the key is sent in a coding; this looks for the key as it is.
#[tokio::test]
async fn a_key_that_was_replaced_is_wiped_over_http2_as_well() {
    let rotating = Rotating::with_tls("h2").await;
    let front = rotating.front.as_ref().expect("a service with TLS");
    let ask = async |requests: usize| {
        for _ in 0..requests {
            let billed = &[("x-service-billed", "3")];
            front.http2.push(Reply::Json(200, billed, r#"{"id":"a"}"#));
            let app = rotating.daemon.connect().await;
            assert_eq!(app.post(CHAT, &chat("hi")).await.status, 200);
        }
        let came = front.http2.came();
        came.last().expect("a request").headers["authorization"].clone()
    };
    assert_eq!(ask(10).await, format!("Bearer {FIRST}"));
    let pid = rotating.pid();
    let Some(before) = copies(pid, FIRST) else {
        eprintln!("memory is not looked at: only root may, and that is the defence");
        return;
    };
    assert_eq!(before, 1, "the key is held once");
    put(&rotating.key, SECOND);
    rotating.reload().await;
    eventually("the first key to be gone from memory", || async {
        (copies(pid, FIRST) == Some(0)).then_some(())
    })
    .await;
    assert_eq!(ask(10).await, format!("Bearer {SECOND}"));
    assert_eq!(copies(pid, FIRST), Some(0));
    rotating.daemon.terminate().await;
}

/// However many requests: the key is written from its own buffer, and copied nowhere.
async fn hold_once(rotating: Rotating) {
    let pid = rotating.pid();
    let Some(at_rest) = copies(pid, FIRST) else {
        eprintln!("memory is not looked at: only root may, and that is the defence");
        return;
    };
    assert_eq!(at_rest, 1, "the key is held once");
    for _ in 0..10 {
        rotating.ask_for_all().await;
        assert_eq!(copies(pid, FIRST), Some(1));
    }
    rotating.daemon.terminate().await;
}

#[tokio::test]
async fn requests_leave_no_copies_of_the_key_behind() {
    hold_once(Rotating::start().await).await;
}

#[tokio::test]
async fn requests_leave_no_copies_of_the_key_behind_with_tls() {
    hold_once(Rotating::with_tls("http/1.1").await).await;
}
