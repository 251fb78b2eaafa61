//! `bursar launch` and `bursar env CLIENT`: what a known program is started with, and what a shell is given.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A stand-in for the program: it says what it was started with, spends once, and ends with its own code.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\n' "$@"
env | grep -E '^(ANTHROPIC|OPENAI|CLAUDE|BURSAR)_' | sort
exec python3 -c '
import json, os, urllib.request
base = os.environ.get("ANTHROPIC_BASE_URL", "").removesuffix("/agent") or os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "x"}]}).encode()
token = os.environ.get("ANTHROPIC_AUTH_TOKEN") or os.environ["OPENAI_API_KEY"]
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
urllib.request.urlopen(urllib.request.Request(base + "/v1/chat/completions", body, headers)).read()
raise SystemExit(3)
'
"#;

impl Place {
    /// A command of bursar's that finds the stand-in under this name.
    fn with_program(&self, name: &str, arguments: &[&str]) -> Command {
        let folder = self.folder.path().join("programs");
        std::fs::create_dir_all(&folder).expect("a directory");
        let file = folder.join(name);
        std::fs::write(&file, PROGRAM).expect("a script");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let mut command = self.bursar(arguments);
        let path = std::env::join_paths([
            folder.as_path(),
            Path::new("/usr/local/bin"),
            Path::new("/usr/bin"),
            Path::new("/bin"),
        ]);
        command.env("PATH", path.expect("a path"));
        command
    }
}

#[tokio::test]
async fn a_launched_program_gets_its_own_variables_and_arguments_and_leaves_a_receipt() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    let proxy = format!("http://{}", place.daemon.proxy);
    let cases = [
        (
            "claude",
            vec![
                format!("ANTHROPIC_BASE_URL={proxy}/agent"),
                "ANTHROPIC_API_KEY=".to_owned(),
                "ANTHROPIC_MODEL=auto".to_owned(),
            ],
        ),
        (
            "codex",
            vec![
                "model_provider=\"bursar\"".to_owned(),
                format!("OPENAI_BASE_URL={proxy}/v1"),
            ],
        ),
    ];
    for (client, wanted) in cases {
        let arguments = [
            "launch", client, "--app", "nightly", "--json", "--", "-p", "a b",
        ];
        let output = place.with_program(client, &arguments).output().await;
        let output = output.expect("launch ends");

        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        let lines: Vec<&str> = printed.lines().collect();
        for line in wanted.iter().map(String::as_str).chain(["-p", "a b"]) {
            assert!(lines.contains(&line), "{client}: {line} in {printed}");
        }
        // The token is in variables alone, and in no argument.
        let token = lines
            .iter()
            .find_map(|line| line.strip_prefix("OPENAI_API_KEY="));
        let token = token.expect("a token");
        let holders = lines.iter().filter(|line| line.contains(token));
        for line in holders {
            assert!(
                line.ends_with(&format!("_KEY={token}"))
                    || line.ends_with(&format!("_TOKEN={token}")),
                "{line}"
            );
        }
        let receipt = receipt(&said(&output));
        assert_eq!(receipt["requests"], 1);
        assert_eq!(receipt["app"], "nightly");
    }
    place.daemon.terminate().await;
}

#[tokio::test]
async fn an_unknown_client_lists_the_known_and_a_library_is_not_launched() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    for (arguments, wanted) in [
        (
            &["launch", "emacs", "--app", "nightly"][..],
            "codex, claude",
        ),
        (&["env", "emacs"][..], "codex, claude"),
        (
            &["launch", "langchain", "--app", "nightly"][..],
            "bursar env langchain",
        ),
    ] {
        let output = place.bursar(arguments).output().await.expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(wanted), "{}", said(&output));
    }
    assert_eq!(sandbox.debited().await, 0);
    place.daemon.terminate().await;
}

#[tokio::test]
async fn what_env_prints_for_a_client_is_a_shell_s_and_names_the_running_daemon_and_no_token() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    let file = place.folder.path().join("it's a token");
    std::fs::write(&file, "the-token\n").expect("a file");
    let file = file.to_str().expect("UTF-8");

    let output = place
        .bursar(&["env", "claude", "--token-file", file])
        .output()
        .await;
    let printed = String::from_utf8(output.expect("it ends").stdout).expect("UTF-8");
    assert!(!printed.contains("the-token"), "{printed}");
    let script = format!("{printed}\necho \"$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN\"");
    let shell = Command::new("sh")
        .args(["-eu", "-c", &script])
        .output()
        .await
        .expect("a shell");
    let wanted = format!("http://{}/agent the-token\n", place.daemon.proxy);
    assert_eq!(String::from_utf8_lossy(&shell.stdout), wanted, "{printed}");

    // Without a token file the callers of this daemon need one, and the command says how it is made.
    let output = place
        .bursar(&["env", "claude"])
        .output()
        .await
        .expect("it ends");
    assert!(
        said(&output).contains("bursar env --token-file FILE claude"),
        "{}",
        said(&output)
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("ANTHROPIC_AUTH_TOKEN"));
    place.daemon.terminate().await;
}
