//! The shipped `config.toml` as a page, `docs/configuration.md`.

use std::fmt::Write as _;

use crate::generated::{cell, must_be};

const HEAD: &str = "\
# Configuration

Written from [config.toml](../config.toml) by `make docs`; a test holds the two equal. `bursar check` reads a file, names
every mistake in it, and prints the values in force.

bursar takes the first file of these: `--config FILE`, `$BURSAR_CONFIG`, `$XDG_CONFIG_HOME/bursar/config.toml` (without the
variable `~/.config/bursar/config.toml`), `/etc/bursar/config.toml`. Flags win over environment variables, those over the
file. A reload (SIGHUP, `systemctl reload bursar`) reads the file again; a key that is marked **restart** waits for the
next start, and `bursar status` names it until then.
";

/// A comment and the setting below it.
struct Setting {
    table: String,
    key: String,
    sample: String,
    text: String,
}

fn settings() -> Vec<Setting> {
    let (mut table, mut comment, mut found) = (String::new(), Vec::new(), Vec::new());
    for line in include_str!("../../../config.toml").lines() {
        let bare = line.strip_prefix("# ").unwrap_or_default();
        let is_key = |key: &&str| key.bytes().all(|of| of == b'_' || of.is_ascii_lowercase());
        match bare.split_once(" = ").filter(|(key, _)| is_key(key)) {
            Some((key, sample)) => found.push(Setting {
                table: table.clone(),
                key: key.to_owned(),
                sample: sample.to_owned(),
                text: std::mem::take(&mut comment).join(" "),
            }),
            None if line.starts_with('[') || bare == "[[app]]" => {
                table = bare.trim_start_matches('#').to_owned();
                if table.is_empty() {
                    line.clone_into(&mut table);
                }
                comment.clear();
            }
            None if bare.is_empty() => comment.clear(),
            None => comment.push(bare.to_owned()),
        }
    }
    found
}

#[test]
fn the_page_of_the_configuration_lists_each_key_with_its_default_and_text() {
    let mut page = HEAD.to_owned();
    let mut table = None;
    for setting in settings() {
        if table.as_ref() != Some(&setting.table) {
            let title = match setting.table.as_str() {
                "" => "Above all tables".to_owned(),
                name => format!("`{name}`"),
            };
            let _ = writeln!(
                page,
                "\n## {title}\n\n| key | default | meaning |\n|---|---|---|"
            );
            table = Some(setting.table);
        }
        let example = setting.sample.strip_suffix(" # no default");
        let default = match example {
            Some(example) => format!("none; such as `{}`", cell(example)),
            None => format!(
                "`{}`",
                cell(setting.sample.split(" # ").next().unwrap_or_default())
            ),
        };
        let text = setting.text.replace("Restart only.", "**restart**");
        let _ = writeln!(page, "| `{}` | {default} | {} |", setting.key, cell(&text));
    }
    must_be("configuration.md", &page);
}
