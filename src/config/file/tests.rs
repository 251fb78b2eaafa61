use super::known::ACCEPTED;
use super::*;

/// A line that gives `key` a value of a type that no key takes.
fn wrong_type(table: &str, key: &str) -> String {
    match table {
        "" => format!("{key} = 2026-01-01\n"),
        "app" => format!("[[app]]\n{key} = 2026-01-01\n"),
        table => format!("[{table}]\n{key} = 2026-01-01\n"),
    }
}

#[test]
fn every_accepted_key_is_read() {
    for (table, keys) in ACCEPTED {
        for key in *keys {
            let mut errors = ConfigErrors::default();
            ConfigFile::read(&wrong_type(table, key), &mut errors);
            let lines = errors.lines();
            assert_eq!(lines.len(), 1, "[{table}] {key}: a key without effect");
            assert!(lines[0].contains(" takes "), "{}", lines[0]);
            assert!(lines[0].ends_with(", not a date"), "{}", lines[0]);
        }
    }
}
