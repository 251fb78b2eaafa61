//! The secret by which the database knows a ledger: in one file, which its user alone may read, and nowhere else.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::commands::{Person, joins, machine};
use super::serving::is_shipped;
use super::{CODE, DATABASE, everything, fleet, pricing_always};
use crate::secrets::search::{Needle, Place, found};
use crate::support::chat;
use crate::support::daemon::{Daemon, command, run_arguments};

/// The secret, in hex digits, from a file that its user alone may read.
fn kept(state: &Path) -> String {
    let path = state.join("fleet.json");
    let metadata = std::fs::metadata(&path).expect("it is there");
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    let line = std::fs::read_to_string(&path).expect("it is read");
    let line: Value = serde_json::from_str(&line).expect("a line");
    line["secret"].as_str().expect("a secret").to_owned()
}

fn unhex(digits: &str) -> Vec<u8> {
    let bytes = (0..digits.len()).step_by(2);
    bytes
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits"))
        .collect()
}

/// A daemon that logs all that there is to be logged.
async fn started(upstream: &str, folder: &Path) -> Daemon {
    let (state, config) = (folder.join("state"), folder.join("config.toml"));
    let mut arguments = run_arguments(upstream, state.to_str().expect("UTF-8"));
    arguments.extend_from_slice(&["--config", config.to_str().expect("UTF-8")]);
    let mut started = command(&arguments);
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"));
    started.stderr(log.expect("a file"));
    Daemon::launched(started).await.expect("the daemon went on")
}

/// What commands about this machine print.
async fn printed(upstream: &str, folder: &Path) -> Vec<Place> {
    let (state, config) = (folder.join("state"), folder.join("config.toml"));
    let state = ["--state-dir", state.to_str().expect("UTF-8")];
    let config = ["--config", config.to_str().expect("UTF-8")];
    let upstream = ["--upstream", upstream];
    let mut places = Vec::new();
    for arguments in [
        [&["check"][..], &upstream, &config].concat(),
        [&["check", "--json"][..], &upstream, &config].concat(),
        [&["status"][..], &config, &state].concat(),
        [&["doctor", "--json"][..], &config, &state].concat(),
        [&["receipts", "--json"][..], &state].concat(),
        [&["ledger", "export", "--format", "jsonl"][..], &state].concat(),
        [&["ledger", "verify", "--json"][..], &state].concat(),
    ] {
        let done = command(&arguments).output().await.expect("it runs");
        let is_well = arguments[0] != "check" || done.status.success();
        assert!(is_well, "{arguments:?}: {done:?}");
        let said = [done.stdout, done.stderr].concat();
        assert!(!said.is_empty(), "{arguments:?} says nothing");
        places.push(Place::new(arguments.join(" "), said));
    }
    places
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledgers_secret_is_in_its_file_alone_over_join_visits_and_a_restart() {
    let postgres = fleet();
    let reader = Person::new(&postgres, "reader");
    let origin = pricing_always(1).await;
    let (folder, config) = machine();
    let typed = format!("{}\n{CODE}1\n", postgres.url("node", DATABASE));
    let joined = joins(&config, &["--host-label", "laptop"], &typed).await;
    assert_eq!(joined.code, Some(0), "{}", joined.err);
    let text = std::fs::read_to_string(&config).expect("it is there");
    std::fs::write(&config, format!("{text}\n[log]\nlevel = \"trace\"\n")).expect("a file");
    let state = folder.path().join("state");
    let mut places = vec![Place::new("join", joined.out + &joined.err)];
    let mut secrets = Vec::new();
    for requests in 1..3 {
        let daemon = started(&origin.url(), folder.path()).await;
        let body = chat(&format!("request {requests}"));
        let answer = daemon.connect().await.post("/v1/chat/completions", &body);
        assert_eq!(answer.await.status, 200);
        // The first visit lets the ledger in.
        is_shipped(&postgres, requests).await;
        secrets.push(kept(&state));
        for page in ["/", "/metrics", "/api/status", "/api/caps"] {
            let answer = daemon.admin_page(page).await;
            assert_eq!(answer.status, 200, "{page}");
            places.push(Place::new(page, answer.body));
        }
        places.extend(printed(&origin.url(), folder.path()).await);
        daemon.terminate().await;
        secrets.push(kept(&state));
    }
    for words in [
        &["fleet", "status", "--json"][..],
        &["fleet", "status"],
        &["fleet", "caps", "--json"],
        &["spend", "--fleet", "--json"],
    ] {
        let done = reader.gives(words).await;
        assert_eq!(done.code, Some(0), "{words:?}: {}", done.err);
        places.push(Place::new(words.join(" "), done.out + &done.err));
    }
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    assert!(log.contains("bursar::"), "trace logs something");
    places.push(Place::new("the database", everything(&postgres)));
    places.push(Place::file(&postgres.data().join("log")));
    let (own, files): (Vec<Place>, Vec<Place>) = Place::below(folder.path())
        .into_iter()
        .partition(|place| place.name.ends_with("/fleet.json"));
    places.extend(files);

    secrets.dedup();
    let [secret] = &secrets[..] else {
        panic!("a restart keeps it");
    };
    let secret = unhex(secret);
    assert_eq!(secret.len(), 32);
    let needles = [Needle::of_bytes("the secret", &secret)];
    assert_eq!(found(&own, &needles).len(), 1, "the search would find it");
    assert!(places.len() > 30, "{} places", places.len());
    let found = found(&places, &needles);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
