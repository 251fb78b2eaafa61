//! The units in `systemd/`: what they promise for a service that fails, and what a reload does. The
//! commands of `ExecReload=` are run here as systemd runs them; `scripts/check-unit.sh` has systemd check
//! the rest.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use tokio::process::Command;

use crate::support::KEY;
use crate::support::daemon::{Daemon, command};
use crate::support::{eventually, source};

const SERVICE: &str = "systemd/bursar.service";
const SOCKET: &str = "systemd/bursar.socket";

/// Each directive's values in their order, below its section.
fn directives(unit: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = "";
    for line in source::read(unit).lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = if name == "Unit]" { "Unit" } else { "own" };
        } else if let Some((name, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = format!("{section} {name}");
            found.entry(name).or_default().push(value.to_owned());
        }
    }
    found
}

/// The names of all units in `systemd/`.
fn units() -> Vec<String> {
    let folder = std::fs::read_dir(source::root().join("systemd")).expect("units");
    let names = folder.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("a UTF-8 name"));
    let units: Vec<String> = names.filter(|name| !name.ends_with(".sysusers")).collect();
    assert!(units.len() >= 2, "{units:?}");
    units
}

fn only<'a>(unit: &'a BTreeMap<String, Vec<String>>, name: &str) -> Option<&'a str> {
    match unit.get(name).map(Vec::as_slice) {
        Some([value]) => Some(value),
        Some(values) => panic!("{name} stands there with {values:?}"),
        None => None,
    }
}

/// A limit on starts leaves a failed service down and stops the sockets with it: apps are refused from
/// then on. `RestartSteps=` would be an alternative, but systemd 252 does not have it.
#[test]
fn a_service_that_fails_is_started_again_for_ever_and_its_sockets_stay() {
    let service = directives(SERVICE);
    assert_eq!(only(&service, "Unit StartLimitIntervalSec"), Some("0"));
    assert_eq!(only(&service, "Unit StartLimitBurst"), None);
    assert_eq!(only(&service, "own Restart"), Some("on-failure"));
    let pause = only(&service, "own RestartSec").expect("a pause");
    let pause: u32 = pause.parse().expect("seconds");
    assert!(pause >= 5, "{pause} s");
    // A failure that is not followed by a restart would be followed by the next connection's start, at
    // once and without end, where a socket unit is active.
    assert_eq!(only(&service, "own RestartPreventExitStatus"), None);
    let socket = directives(SOCKET);
    assert_eq!(only(&socket, "own TriggerLimitIntervalSec"), Some("0"));
    for binds in ["Unit BindsTo", "Unit Requires", "Unit PartOf"] {
        assert_eq!(only(&socket, binds), None);
    }
}

/// Without a key nothing is up: an installed package serves nobody before `bursar key set`, and `systemctl status`
/// names the file that is missing.
#[test]
fn no_unit_comes_up_before_there_is_a_key() {
    let key = directives(SERVICE);
    let key = only(&key, "own LoadCredential").expect("the key");
    let (_, key) = key.split_once(':').expect("a file");
    for unit in units() {
        let found = directives(&format!("systemd/{unit}"));
        assert_eq!(
            only(&found, "Unit ConditionPathExists"),
            Some(key),
            "{unit}"
        );
    }
}

/// What `make install` puts into a tree `make uninstall` takes out again, but for the configuration.
#[test]
fn an_uninstall_leaves_the_configuration_alone() {
    let folder = tempfile::tempdir().expect("a directory");
    let (built, tree) = (folder.path().join("built"), folder.path().join("tree"));
    std::fs::create_dir_all(built.join("release")).expect("a directory");
    let program = built.join("release/bursar");
    std::fs::write(&program, "#!/bin/sh\n").expect("a program");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
    let make = |goal: &str| {
        let made = std::process::Command::new("make")
            .args(["--silent", goal])
            .arg(format!("TARGET={}", built.display()))
            .arg(format!("DESTDIR={}", tree.display()))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_remove("MAKEFLAGS")
            .output()
            .expect("make");
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(!said.contains("error"), "{said}");
        let mut found = Vec::new();
        let mut left = vec![tree.clone()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    let inside = path.strip_prefix(&tree).expect("below the tree");
                    found.push(inside.display().to_string());
                }
            }
        }
        found.sort();
        found
    };
    let units = units().into_iter();
    let mut installed = vec![
        "etc/bursar/config.toml".to_owned(),
        "usr/bin/bursar".to_owned(),
        "usr/lib/sysusers.d/bursar.conf".to_owned(),
    ];
    installed.extend(units.map(|name| format!("usr/lib/systemd/system/{name}")));
    installed.sort();
    assert_eq!(make("install"), installed);
    assert_eq!(make("uninstall"), ["etc/bursar/config.toml"]);
}

/// The variable that names the config for start and reload.
fn configured(service: &BTreeMap<String, Vec<String>>) -> &str {
    let set = only(service, "own Environment").expect("the config's path");
    let (name, path) = set.split_once('=').expect("a variable");
    assert_eq!(path, "/etc/bursar/config.toml");
    name
}

/// Start and reload take the file from one variable, so a drop-in that names another file names it
/// to both.
#[test]
fn a_reload_looks_at_the_file_that_the_service_was_started_with() {
    let service = directives(SERVICE);
    assert_eq!(configured(&service), "BURSAR_CONFIG");
    let start = only(&service, "own ExecStart").expect("a start");
    for line in [start]
        .into_iter()
        .chain(service["own ExecReload"].iter().map(String::as_str))
    {
        assert!(
            !line.contains("--config") && !line.contains("BURSAR_"),
            "{line}"
        );
    }
}

/// `systemctl reload`: the commands one after the other, until one of them fails.
async fn reload(daemon: &Daemon, config: &Path, credentials: &Path, state: &Path) -> Output {
    let pid = daemon.child.id().expect("it runs").to_string();
    let service = directives(SERVICE);
    // systemd 252 passes the credentials' directory to a reload command by name, but hides its
    // contents.
    let bound = only(&service, "own BindReadOnlyPaths").expect("another name");
    let name = bound.strip_prefix("-%d:").expect("of the credentials");
    let path = |path: &Path| path.to_str().expect("a UTF-8 path").to_owned();
    let mut last = None;
    for line in &service["own ExecReload"] {
        let line = line.replace(name, &path(credentials));
        let line = line.replace("/usr/bin/bursar", env!("CARGO_BIN_EXE_bursar"));
        let mut runs = match line.split_once(" -c ") {
            Some((shell, script)) => {
                let mut runs = Command::new(shell);
                runs.args(["-c", script.trim_matches('"')]);
                runs
            }
            None => {
                let mut words = line.split_whitespace();
                let mut runs = Command::new(words.next().expect("a program"));
                runs.args(words);
                runs
            }
        };
        runs.env_clear().env("MAINPID", &pid);
        runs.env("CREDENTIALS_DIRECTORY", "/nowhere");
        runs.env("STATE_DIRECTORY", state);
        runs.env(configured(&service), config);
        let output = runs.output().await.expect("it ends");
        let failed = !output.status.success();
        last = Some(output);
        if failed {
            break;
        }
    }
    last.expect("the file is looked at before the signal")
}

#[tokio::test]
async fn a_reload_with_a_bad_file_fails_with_the_reason_and_is_no_signal() {
    let folder = tempfile::tempdir().expect("a directory");
    let [config, state, credentials] =
        ["config.toml", "state", "credentials"].map(|name| folder.path().join(name));
    std::fs::create_dir(&credentials).expect("a directory");
    let key = credentials.join("api-key");
    std::fs::write(&key, KEY).expect("a key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o400)).expect("a mode");
    let good = "[upstream]\nbase_url = \"http://127.0.0.1:9\"\n[listen]\nproxy = [\"127.0.0.1:0\"]\nadmin = [\"127.0.0.1:0\"]\n";
    std::fs::write(&config, good).expect("a config");
    let environment = [
        ("CREDENTIALS_DIRECTORY", credentials.as_path()),
        ("STATE_DIRECTORY", state.as_path()),
    ];
    let service = directives(SERVICE);
    let start = only(&service, "own ExecStart").expect("a start");
    let words: Vec<&str> = start.split_whitespace().skip(1).collect();
    let mut run = command(&words);
    run.env_remove("BURSAR_API_KEY");
    run.env(configured(&service), &config);
    run.envs(environment.iter().copied()).stderr(Stdio::null());
    let daemon = Daemon::launched(run).await.expect("it went on");

    let output = reload(&daemon, &config, &credentials, &state).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let counts = |result: &'static str| {
        let daemon = &daemon;
        async move {
            let page = daemon.admin_page("/metrics").await.text();
            let name = format!("bursar_config_reloads_total{{result=\"{result}\"}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&name));
            line.map_or(0, |count| count.parse::<u32>().expect("a count"))
        }
    };
    eventually("the reload", || async {
        (counts("ok").await == 1).then_some(())
    })
    .await;

    for (bad, reason) in [
        (format!("{good}prox = 1\n"), "prox"),
        (format!("{good}[upstream]\n"), "duplicate key"),
        (good.replace("127.0.0.1:9", "example.org"), "unencrypted"),
        (
            format!("{good}[[app]]\nname = \"a\"\ntoken_file = \"/nowhere/t\"\n"),
            "/nowhere/t",
        ),
    ] {
        std::fs::write(&config, &bad).expect("a config");
        let output = reload(&daemon, &config, &credentials, &state).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(78), "{bad}: {said}");
        assert!(said.contains(reason), "{bad}: {said}");
    }
    // The key is the service's own; the caller's is not checked.
    std::fs::write(&config, good).expect("a config");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    let output = reload(&daemon, &config, &empty, &state).await;
    assert_eq!(output.status.code(), Some(78));
    assert_eq!((counts("ok").await, counts("refused").await), (1, 0));
    daemon.terminate().await;
}
