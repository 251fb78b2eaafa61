use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::config::{Config, Env, Overrides};

fn config(folder: &Path, text: &str) -> Config {
    let key = folder.join("key");
    fs::write(&key, "secret-of-the-test").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let file = folder.join("config.toml");
    fs::write(&file, text).unwrap();
    let overrides = Overrides {
        config: Some(file),
        upstream: Some("http://127.0.0.1:8329".to_owned()),
        api_key_file: Some(key),
        ..Overrides::default()
    };
    let home = folder.to_str().unwrap();
    Config::load(&overrides, &Env::from_pairs([("HOME", home)])).unwrap()
}

#[test]
fn what_a_running_process_cannot_change_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let running = config(folder.path(), "");
    let new = config(
        folder.path(),
        "[listen]\nproxy = [\"127.0.0.1:9001\"]\n[ledger]\nstate_dir = \"elsewhere\"\n",
    );

    let keys = running.keys_needing_restart(&new);

    // The admin socket lies below the state directory, so it moves with it.
    assert_eq!(
        keys,
        ["[listen] proxy", "[listen] admin", "[ledger] state_dir"]
    );
}

#[test]
fn what_it_can_change_needs_no_restart() {
    let folder = tempfile::tempdir().unwrap();
    let running = config(folder.path(), "");
    let new = config(
        folder.path(),
        "[retry]\nattempts = 5\n[log]\nlevel = \"debug\"\n[models.aliases]\n\"gpt-4o\" = \"auto\"\n",
    );

    assert!(running.keys_needing_restart(&new).is_empty());
}

/// Each key that is marked in config.toml stays as the process runs with it, and every other takes effect.
#[test]
fn a_reload_takes_what_it_can_and_keeps_what_takes_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let running = config(folder.path(), "");
    let new = config(
        folder.path(),
        "[listen]\nproxy = [\"127.0.0.1:9001\"]\nadmin = [\"127.0.0.1:9002\"]\nconnections_max = 7\nshutdown_timeout_s = 7\n\
         [ledger]\nstate_dir = \"elsewhere\"\ndurability = \"process\"\non_failure = \"serve\"\nretention_days = 7\n\
         [log]\nformat = \"json\"\nlevel = \"debug\"\n[retry]\nattempts = 5\n\
         [fleet]\nurl_file = \"url\"\nhost_label = \"h\"\nca_file = \"ca\"\ninsecure = true\nship_interval_s = 7\n\
         resend_days = 7\nship_people = true\nstop_flush_s = 7\nshared_caps = [\"team\"]\nephemeral = true\n",
    );
    let keys = running.keys_needing_restart(&new);
    let marked = include_str!("../../../config.toml")
        .lines()
        .filter(|line| line.ends_with("Restart only."));
    assert_eq!(keys.len(), marked.count(), "{keys:?}");

    let kept = new.clone().keeping(&running);

    assert!(running.keys_needing_restart(&kept).is_empty());
    assert_eq!(kept.ledger, running.ledger);
    assert_eq!(kept.log.format, running.log.format);
    let listen = crate::config::Listen {
        shutdown_timeout: new.listen.shutdown_timeout,
        ..running.listen.clone()
    };
    assert_eq!(kept.listen, listen);
    assert_eq!((kept.retry, kept.log.level), (new.retry, new.log.level));
    assert!(
        kept.in_force().contains("attempts = 5"),
        "{}",
        kept.in_force()
    );
    // The next reload of the same file names the same keys again.
    assert_eq!(kept.keys_needing_restart(&new), keys);
}
