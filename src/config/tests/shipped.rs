//! The shipped `config.toml` against what the program does.

use super::*;

const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config.toml"));

/// The one table that stands there as an example as a whole.
const APP_LINE: &str = "# [[app]]";

/// Every `# key = value` line: table, key, the line without its `# `, and whether it is an example.
fn key_lines() -> Vec<(String, String, String, bool)> {
    let mut table = String::new();
    let mut found = Vec::new();
    for line in SHIPPED.lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            table = name.to_owned();
        } else if line == APP_LINE {
            table = "app".to_owned();
        }
        let Some(setting) = line.strip_prefix("# ") else {
            continue;
        };
        let Some((key, _)) = setting.split_once(" = ") else {
            continue;
        };
        if !key
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            continue;
        }
        let is_example = setting.ends_with("# no default");
        found.push((
            table.clone(),
            key.to_owned(),
            setting.to_owned(),
            is_example,
        ));
    }
    found
}

/// The shipped file with some of its `# key = value` lines in force.
fn uncommented(which: impl Fn(&str, bool) -> bool) -> String {
    let mut text = String::new();
    // A key of an app takes an app, and that takes a name.
    let has_app = key_lines()
        .iter()
        .any(|(table, key, _, is_example)| table == "app" && which(key, *is_example));
    let mut lines = key_lines().into_iter().peekable();
    for line in SHIPPED.lines() {
        match lines.next_if(|(_, _, setting, _)| line.strip_prefix("# ") == Some(setting)) {
            Some((table, key, setting, is_example))
                if which(&key, is_example) || (has_app && table == "app" && key == "name") =>
            {
                text.push_str(&setting)
            }
            None if has_app && line == APP_LINE => text.push_str("[[app]]"),
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    assert_eq!(lines.next(), None);
    text
}

fn load(text: &str) -> Config {
    let place = Fixture::new();
    // The example names a file of the reader's machine; here it is one that exists.
    let ca_file = place.path("ca.pem").display().to_string();
    let token = place.path("token");
    fs::write(&token, SECRET.repeat(2)).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let text = text
        .replace("/etc/bursar/ca.pem", &ca_file)
        .replace("/etc/bursar/apps/nightly", &token.display().to_string());
    let flags = Overrides {
        upstream: Some("https://api.example".to_owned()),
        ..place.flags(&text)
    };
    let key = env(&[("BURSAR_API_KEY", SECRET)]);
    let mut config = Config::load(&flags, &key).unwrap();
    config.path = None;
    // Lines of a file that is gone.
    config.app_places.clear();
    config
}

#[test]
fn it_loads_and_changes_no_default() {
    assert_eq!(load(SHIPPED), load(""));
}

#[test]
fn the_defaults_it_states_are_the_defaults() {
    let mut stated = load(&uncommented(|_, is_example| !is_example));

    // The one difference between the default addresses and the same ones written down.
    assert!(!stated.listen.proxy_is_default);
    stated.listen.proxy_is_default = true;

    assert_eq!(stated, load(""));
}

#[test]
fn its_examples_are_accepted() {
    for (_, key, _, is_example) in key_lines() {
        if is_example {
            load(&uncommented(|other, _| other == key));
        }
    }
    let aliases = SHIPPED
        .lines()
        .find_map(|line| line.split_once("# such as "))
        .unwrap()
        .1;
    let config = load(&format!("[models]\naliases = {aliases}\n"));
    assert_eq!(config.models.aliases.target("gpt-4o"), Some("auto"));
    assert_eq!(config.models.aliases.target("other"), Some("auto"));
}

#[test]
fn it_explains_each_key_once() {
    let mut explained = false;
    for line in SHIPPED.lines() {
        let is_key = key_lines()
            .iter()
            .any(|(_, _, setting, _)| line.strip_prefix("# ") == Some(setting));
        if is_key {
            assert!(explained, "no explanation above: {line}");
        }
        explained = line.starts_with("# ") && !is_key && line != APP_LINE;
    }
    let lines = key_lines();
    let mut keys: Vec<_> = lines.iter().map(|(table, key, ..)| (table, key)).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), lines.len(), "a key stands twice");
}

/// Each known key with a value that no key takes.
#[test]
fn every_key_it_names_is_read() {
    for (table, key, _, _) in key_lines() {
        let table = match table.as_str() {
            "" => String::new(),
            "app" => "[[app]]\n".to_owned(),
            table => format!("[{table}]\n"),
        };
        let place = Fixture::new();
        let flags = place.flags(&format!("{table}{key} = 2026-01-01\n"));
        let errors = Config::key_place(&flags, &env(&[])).unwrap_err();
        let lines = place.lines(&errors);
        assert_eq!(lines.len(), 1, "{table}{key}: {lines:?}");
        assert!(lines[0].contains(" takes "), "{}", lines[0]);
        assert!(lines[0].ends_with(", not a date"), "{}", lines[0]);
    }
}
