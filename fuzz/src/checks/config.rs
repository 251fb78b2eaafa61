//! The configuration file, for any text.
//!
//! Promise: a file is taken or refused with lines that name a place; reading it twice says the same;
//! neither the configuration nor a complaint shows the key.

use bursar::config::{Config, Env, Overrides};

const KEY: &str = "sk-0123456789-not-in-any-output";

pub fn check(bytes: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("config.toml");
    std::fs::write(&file, bytes).expect("a file");
    let overrides = Overrides {
        config: Some(file),
        ..Overrides::default()
    };
    let state_dir = directory.path().join("state");
    let env = Env::from_pairs([
        ("BURSAR_API_KEY", KEY.into()),
        ("BURSAR_UPSTREAM", "http://127.0.0.1:9".into()),
        ("BURSAR_STATE_DIR", state_dir.into_os_string()),
    ]);
    let first = said(&overrides, &env);
    assert_eq!(first, said(&overrides, &env));
    assert!(!first.contains(KEY));
}

fn said(overrides: &Overrides, env: &Env) -> String {
    match Config::load(overrides, env) {
        Ok(config) => format!("{config:?}"),
        Err(errors) => {
            let lines = errors.lines();
            assert!(!lines.is_empty(), "a refusal says why");
            assert!(
                lines
                    .iter()
                    .all(|line| !line.trim().is_empty() && !line.contains('\n'))
            );
            lines.join("\n")
        }
    }
}
