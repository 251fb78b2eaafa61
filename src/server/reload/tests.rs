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
