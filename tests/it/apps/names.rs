//! Words with a meaning in commands, metrics and sums may not be names of apps, and an app of an earlier
//! bursar with such a name is reported by its line.

use std::path::Path;

use serde_json::Value;

use super::commands::{Place, said};
use super::{CHAT, bearer};
use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Origin, Step, chat};

/// A file of apps as an earlier bursar wrote it: one app, with its name in line 5.
fn stored(name: &str) -> String {
    let token = "0".repeat(64);
    let row = format!(
        "{{\"name\":\"{name}\",\"token_blake3\":\"{token}\",\"uids\":[],\"added_ms\":1,\"token_ms\":1}}"
    );
    let crc = crc32c::crc32c(format!("[{row}]").as_bytes());
    let row: Value = serde_json::from_str(&row).expect("JSON");
    let token = row["token_blake3"].as_str().expect("a hash");
    format!(
        "{{\n  \"format\": 1,\n  \"apps\": [\n    {{\n      \"name\": \"{name}\",\n      \
         \"token_blake3\": \"{token}\",\n      \"uids\": [],\n      \"added_ms\": 1,\n      \
         \"token_ms\": 1\n    }}\n  ],\n  \"crc\": \"{crc:08x}\"\n}}"
    )
}

/// The journal as if the app had had this name of as many letters.
fn rename_in_journal(state: &Path, from: &str, to: &str) {
    let files = std::fs::read_dir(state.join("journal")).expect("a journal");
    let paths = files.map(|file| file.expect("a file").path());
    for path in paths.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")) {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let renamed = text.lines().map(|line| {
            let body = line.replace(&format!("\"app\":\"{from}\""), &format!("\"app\":\"{to}\""));
            let end = body.rfind(",\"crc\":\"").expect("a checksum");
            let crc = crc32c::crc32c(&body.as_bytes()[..end]);
            format!("{},\"crc\":\"{crc:08x}\"}}\n", &body[..end])
        });
        let renamed: String = renamed.collect();
        assert!(renamed.contains(&format!("\"app\":\"{to}\"")), "{renamed}");
        std::fs::write(&path, renamed).expect("the segment is written");
    }
    std::fs::remove_dir_all(state.join("index")).expect("the index is made anew");
}

#[tokio::test]
async fn a_word_with_a_meaning_is_no_name_of_a_new_app() {
    for word in ["all", "other"] {
        let place = Place::new();
        let output = place.app(&["add", word]).await;
        assert_eq!(output.status.code(), Some(1), "{word}: {}", said(&output));
        let words = said(&output);
        assert!(
            words.contains(word) && words.contains("take another name"),
            "{words}"
        );
    }
    // These are not such words: no command, label or sum gives them another meaning.
    for name in ["default.x", "none", "anonymous", "unknown", "alle"] {
        Place::new().done(&["add", name]).await;
    }
}

#[tokio::test]
async fn an_app_with_a_reserved_name_is_named_with_its_line_at_start_and_by_check() {
    let place = Place::new();
    let (config, state) = (place.path("config.toml"), place.state());
    std::fs::write(&config, "[log]\n\n[[app]]\nuids = [7]\nname = \"all\"\n").expect("a file");
    for verb in ["run", "check"] {
        let mut arguments = run_arguments("http://127.0.0.1:9", &state);
        arguments[0] = verb;
        arguments.extend(["--config", &config]);
        let output = command(&arguments).output().await.expect("it ends");
        assert_eq!(output.status.code(), Some(78), "{verb}: {}", said(&output));
        assert!(
            said(&output).contains("config.toml:5: [[app]] name: \"all\": "),
            "{}",
            said(&output)
        );
    }

    // One that `bursar app add` of an earlier release took, and its receipts.
    let place = Place::new();
    let state = place.state();
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let token = place.done(&["add", "old"]).await;
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &[]).await;
    let mut wire = daemon.connect().await;
    let shown = bearer(token.trim_end());
    let headers = [("Authorization", shown.as_str())];
    wire.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    assert_eq!(wire.answer().await.status, 200);
    daemon.terminate().await;
    rename_in_journal(Path::new(&state), "old", "all");
    std::fs::write(Path::new(&state).join("apps.json"), stored("all")).expect("a file");
    for verb in ["run", "check"] {
        let mut arguments = run_arguments("http://127.0.0.1:9", &state);
        arguments[0] = verb;
        let output = command(&arguments).output().await.expect("it ends");
        assert_eq!(output.status.code(), Some(78), "{verb}: {}", said(&output));
        let words = said(&output);
        assert!(
            words.contains("apps.json:5") && words.contains("`bursar app remove all`"),
            "{words}"
        );
    }
    // Before and after the way out that it names.
    for is_removed in [false, true] {
        if is_removed {
            place.done(&["remove", "all"]).await;
            Daemon::start(&origin.url(), Path::new(&state), &[])
                .await
                .terminate()
                .await;
        }
        let asked = ["receipts", "--app", "all", "--json", "--state-dir", &state];
        let output = command(&asked).output().await.expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        let receipt: Value = serde_json::from_slice(&output.stdout).expect("one receipt");
        assert_eq!(receipt["billed_micro_usd"], 7);
    }
}

#[tokio::test]
async fn all_means_all_apps_in_orders() {
    let place = Place::new();
    let state = place.state();
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let token = place.done(&["add", "team"]).await;
    let daemon = Daemon::start(&origin.url(), Path::new(&state), &[]).await;
    for (verb, status) in [("freeze", 403), ("thaw", 200)] {
        let output = command(&[verb, "all", "--state-dir", &state])
            .output()
            .await;
        let output = output.expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        let mut wire = daemon.connect().await;
        let shown = bearer(token.trim_end());
        let headers = [("Authorization", shown.as_str())];
        wire.send(request("POST", CHAT, &headers, &chat("hi")))
            .await;
        assert_eq!(wire.answer().await.status, status, "{verb}");
    }
    daemon.terminate().await;
}
