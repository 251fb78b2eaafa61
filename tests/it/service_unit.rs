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

/// The folders of the system's units and of a user's own, and where each has its configuration and key.
const HOMES: [(&str, &str); 2] = [("systemd", "/etc/bursar"), ("systemd/user", "%E/bursar")];

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

/// The paths of all units in a folder.
fn units(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(source::root().join(folder)).expect("units");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("a UTF-8 name"));
    let is_unit = |name: &String| name.ends_with(".service") || name.ends_with(".socket");
    let units: Vec<String> = names
        .filter(is_unit)
        .map(|name| format!("{folder}/{name}"))
        .collect();
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
    for (folder, _) in HOMES {
        let service = directives(&format!("{folder}/bursar.service"));
        assert_eq!(only(&service, "Unit StartLimitIntervalSec"), Some("0"));
        assert_eq!(only(&service, "Unit StartLimitBurst"), None);
        assert_eq!(only(&service, "own Restart"), Some("on-failure"));
        let pause = only(&service, "own RestartSec").expect("a pause");
        let pause: u32 = pause.parse().expect("seconds");
        assert!(pause >= 5, "{pause} s");
        // A failure that is not followed by a restart would be followed by the next connection's start, at
        // once and without end, where a socket unit is active.
        assert_eq!(only(&service, "own RestartPreventExitStatus"), None);
        for name in ["bursar.socket", "bursar-admin.socket"] {
            // A user's own service needs no second one: its state directory is the user's.
            if !source::root().join(folder).join(name).exists() {
                continue;
            }
            let socket = directives(&format!("{folder}/{name}"));
            assert_eq!(
                only(&socket, "own TriggerLimitIntervalSec"),
                Some("0"),
                "{name}"
            );
            for binds in ["Unit BindsTo", "Unit Requires", "Unit PartOf"] {
                assert_eq!(only(&socket, binds), None, "{name}");
            }
        }
    }
}

/// Without a key nothing is up: an installed package serves nobody before `bursar key set`, and `systemctl status`
/// names the file that is missing.
#[test]
fn no_unit_comes_up_before_there_is_a_key() {
    for (folder, home) in HOMES {
        let key = format!("{home}/api-key");
        for unit in units(folder) {
            let found = directives(&unit);
            let waits_for = only(&found, "Unit ConditionPathExists");
            assert_eq!(waits_for, Some(&*key), "{unit}");
        }
    }
    let credential = directives(SERVICE);
    let credential = only(&credential, "own LoadCredential").expect("the key");
    assert_eq!(credential, "api-key:/etc/bursar/api-key");
}

/// Who may read the figures, and who may spend without a token: the users of two groups, and no others.
#[test]
fn each_unix_socket_is_for_the_users_of_one_group_that_is_made_at_the_install() {
    let groups = source::read("systemd/bursar.sysusers");
    for (unit, socket, group) in [
        ("systemd/bursar.socket", "/run/bursar.sock", "bursar-apps"),
        (
            "systemd/bursar-admin.socket",
            "/run/bursar-admin.sock",
            "bursar-read",
        ),
    ] {
        let found = directives(unit);
        let listens = found.get("own ListenStream").expect("addresses");
        assert!(listens.iter().any(|address| address == socket), "{unit}");
        assert_eq!(only(&found, "own SocketMode"), Some("0660"), "{unit}");
        assert_eq!(only(&found, "own SocketGroup"), Some(group), "{unit}");
        let made = format!("g {group} ");
        assert!(
            groups.lines().any(|line| line.starts_with(&made)),
            "{group}"
        );
    }
}

/// A user's systemd can neither mount nor drop what root has, so the rest of the system's hardening is all there is.
#[test]
fn a_users_own_unit_forbids_what_the_systems_forbids_without_a_namespace() {
    let (system, own) = (
        directives(SERVICE),
        directives("systemd/user/bursar.service"),
    );
    for name in [
        "NoNewPrivileges",
        "RestrictAddressFamilies",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "SystemCallArchitectures",
        "SystemCallFilter",
        "SystemCallErrorNumber",
        "UnsetEnvironment",
        "UMask",
        "LimitCORE",
        "MemoryMax",
        "MemorySwapMax",
        "TasksMax",
        "WatchdogSec",
        "TimeoutStartSec",
        "TimeoutStopSec",
    ] {
        let name = format!("own {name}");
        assert!(system.contains_key(&name), "{name}");
        assert_eq!(system.get(&name), own.get(&name), "{name}");
    }
    // Before systemd 254 a user's is below $XDG_CONFIG_HOME, where `bursar run` has no ledger.
    assert_eq!(only(&own, "own StateDirectory"), None);
}

/// `systemctl status` names it, and `systemctl help` opens it.
#[test]
fn every_unit_names_its_manual_page() {
    for unit in [units("systemd"), units("systemd/user")].concat() {
        let found = directives(&unit);
        let documentation = only(&found, "Unit Documentation");
        assert_eq!(documentation, Some("man:bursar(1)"), "{unit}");
    }
}

/// The variable that names the config for start and reload, and the path.
fn configured(service: &BTreeMap<String, Vec<String>>) -> (&str, &str) {
    let set = only(service, "own Environment").expect("the config's path");
    set.split_once('=').expect("a variable")
}

/// Start and reload take the file from one variable, so a drop-in that names another file names it
/// to both.
#[test]
fn a_reload_looks_at_the_file_that_the_service_was_started_with() {
    for (folder, home) in HOMES {
        let service = directives(&format!("{folder}/bursar.service"));
        let file = format!("{home}/config.toml");
        assert_eq!(configured(&service), ("BURSAR_CONFIG", &*file));
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
        runs.env(configured(&service).0, config);
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
    run.env(configured(&service).0, &config);
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
