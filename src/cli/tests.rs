use super::*;
use crate::config::ConfigErrors;
use crate::server::ServerError;

#[test]
fn the_command_line_is_consistent() {
    CommandLine::command().debug_assert();
}

#[test]
fn every_mistake_has_its_exit_code() {
    let cases = [
        (CliError::Config(ConfigErrors::default()), 78),
        (CliError::usage("no"), 2),
        (CliError::Failed("no".to_owned()), 1),
        (CliError::Server(ServerError::ListenerLost), 1),
        (CliError::Said, 1),
    ];

    for (error, code) in cases {
        assert_eq!(error.exit_code(), code, "{error:?}");
    }
}

#[test]
fn the_help_names_the_three_commands_to_start_with() {
    let help = CommandLine::command().render_help().to_string();
    let lines = [ABOUT, FIRST_STEPS, NEXT_STEPS].join("\n");
    for line in lines.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }

    for command in ["bursar demo", "bursar sandbox", "bursar run"] {
        assert!(help.contains(command), "{command}");
    }
}

/// A script reads what a change came to. Those that only run something, or write a file that they name, say nothing.
#[test]
fn every_command_that_changes_something_has_a_document() {
    let line = CommandLine::command();
    for words in [
        "app add",
        "app set",
        "app remove",
        "app rotate",
        "freeze",
        "thaw",
        "caps raise",
        "key set",
        "ledger compact",
        "ledger rebuild",
    ] {
        let mut command = &line;
        for word in words.split(' ') {
            command = command.find_subcommand(word).expect(words);
        }
        let has_json = command.get_arguments().any(|arg| arg.get_id() == "json");
        assert!(has_json, "{words}");
    }
}

/// What stands as a command in a text: `bursar app add NAME`, a line of a shell block, `(bursar run)`, a unit's
/// `/usr/bin/bursar run`. The words behind `bursar`, up to the end of the code.
fn named_commands(text: &str, is_shell: impl Fn(&str) -> bool) -> Vec<String> {
    let mut named = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        for (at, _) in line.match_indices("bursar ") {
            let (before, behind) = (&line[..at], &line[at + "bursar ".len()..]);
            let before = before.strip_suffix("sudo ").unwrap_or(before);
            // `env X=/etc/bursar bursar check`: what stands before the program is no word of a sentence.
            let is_first = before
                .split_whitespace()
                .all(|word| word.contains('=') || ["sudo", "env"].contains(&word));
            let is_path = before.split_whitespace().last().is_some_and(|word| {
                before.ends_with('/') && (!word.contains('=') || line.starts_with("Exec"))
            });
            let code = if before.ends_with('`') {
                behind.split('`').next()
            } else if before.ends_with('(') {
                behind.split(')').next()
            } else if (is_fenced || is_shell(line))
                && (is_path || (is_first && !before.ends_with('/')))
            {
                behind.split(['#', ';']).next()
            } else {
                None
            };
            named.extend(code.map(str::to_owned));
        }
    }
    named
}

/// Why it is no command of this program.
fn misnamed(words: &str) -> Option<String> {
    let mut command = &CommandLine::command();
    let mut is_path = true;
    for word in words.split_whitespace().take_while(|word| *word != "--") {
        let word = word.trim_matches(|letter| "[](),.:;\"\\".contains(letter));
        if let Some(flag) = word.strip_prefix("--") {
            is_path = false;
            let flag = flag.split('=').next().unwrap_or(flag);
            let mut known = command.get_arguments().filter_map(|known| known.get_long());
            if !known.any(|known| known == flag) && !["help", "version"].contains(&flag) {
                return Some(format!("no --{flag}"));
            }
        }
        let is_word = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let parts: Vec<&str> = word.split('|').collect();
        if !is_path || !command.has_subcommands() || !parts.iter().all(|part| is_word(part)) {
            is_path = false;
            continue;
        }
        for part in &parts {
            if command.find_subcommand(part).is_none() {
                return Some(format!("no command {part}"));
            }
        }
        match &*parts {
            [one] => command = command.find_subcommand(one)?,
            // The flags are those of one of them.
            _ => return None,
        }
    }
    None
}

#[test]
fn every_command_that_a_text_names_exists() {
    fn walk(path: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            entries.for_each(|entry| walk(&entry.unwrap().path(), files));
        } else {
            files.push(path.to_owned());
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "config.toml",
        "docs",
        "systemd",
        "src",
        "sandbox/src",
        "sandbox/models/src",
    ] {
        walk(&root.join(name), &mut files);
    }
    // What is planted here is no text of the program.
    files.retain(|path| !path.ends_with("src/cli/tests.rs"));
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for named in named_commands(&text, |line| line.starts_with("Exec")) {
            count += 1;
            wrong.extend(
                misnamed(&named).map(|why| format!("{}: `bursar {named}`: {why}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} commands were seen");
}

#[test]
fn a_command_that_does_not_exist_is_seen_wherever_it_is_named() {
    let texts = [
        "own. Whoever runs bursar can set another one (bursar key put).",
        "/// see `bursar keys set`",
        "ask with `sudo bursar app forget NAME`",
        "```sh\nbursar sepnd  # today\n```",
        "```sh\ntarget/release/bursar runn --upstream URL\n```",
        "ExecStart=/usr/bin/bursar serve --config /etc/bursar/config.toml",
        "`bursar app add|drop`",
        "`bursar receipts --folow`",
        "```sh\nsudo env CREDENTIALS_DIRECTORY=/etc/bursar bursar chekc\n```",
    ];
    for text in texts {
        let named = named_commands(text, |line| line.starts_with("Exec"));
        assert_eq!(named.len(), 1, "{text}");
        assert!(misnamed(&named[0]).is_some(), "{text}");
    }
    for sound in [
        "`bursar keeps` nothing of `bursar`",
        "bursar keeps the key",
        "`bursar app add|set NAME --json` and `bursar exec --app A -- CMD --flag`",
        "(`bursar key set`)",
    ] {
        let named = named_commands(sound, |_| false);
        let wrong: Vec<_> = named.iter().filter_map(|words| misnamed(words)).collect();
        let planted = usize::from(sound.contains("`bursar keeps`"));
        assert_eq!(wrong.len(), planted, "{sound}: {wrong:?}");
    }
}
