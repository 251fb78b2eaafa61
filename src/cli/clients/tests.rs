//! The rows' own rules, what a shell is given, and docs/clients.md.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::generated::{cell, must_be};

const ROOT: &str = "http://127.0.0.1:8327";

#[test]
fn no_token_stands_in_an_argument_or_in_lines_for_a_file() {
    let secret = "an app's secret";
    for client in CLIENTS {
        let lines = client.lines.as_ref().map(|lines| &lines.text);
        for text in client.arguments.iter().chain(lines) {
            assert!(!text.contains(TOKEN), "{}: {text}", client.name);
        }
        for (name, value) in client.variables {
            let is_whole = *value == TOKEN || !value.contains(TOKEN);
            assert!(is_whole, "{} {name}: more than the token", client.name);
        }
        let filling = Filling {
            root: ROOT,
            token: secret,
        };
        let wants = client.variables.iter().any(|(_, value)| *value == TOKEN);
        let environment = client.environment(filling);
        assert_eq!(
            environment.iter().any(|(_, value)| value == secret),
            wants,
            "{}",
            client.name
        );
        assert!(wants || client.program.is_none(), "{}", client.name);
    }
}

#[test]
fn every_name_is_there_once_and_an_unknown_one_lists_them() {
    let names: BTreeSet<&str> = CLIENTS.iter().map(|client| client.name).collect();
    assert_eq!(names.len(), CLIENTS.len());
    let error = known_client("emacs").expect_err("no row").to_string();
    for name in names {
        assert!(known_client(name).is_ok());
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn each_place_is_filled_with_the_address_of_the_daemon() {
    let root = "http://127.0.0.1:4711";
    let row = |name| known_client(name).expect("a row");
    for client in CLIENTS {
        let text = client.shell(root, Some("none")) + &client.arguments(root).join(" ");
        for place in [CHAT, AGENT, AGENT_ROOT, TOKEN, "8327"] {
            assert!(!text.contains(place), "{}: {text}", client.name);
        }
    }
    let claude = row("claude").shell(root, Some("none"));
    let line = "export ANTHROPIC_BASE_URL=http://127.0.0.1:4711/agent\n";
    assert!(claude.contains(line), "{claude}");
    let codex = row("codex").arguments(root).join(" ");
    let line = "base_url=\"http://127.0.0.1:4711/agent/v1\"";
    assert!(codex.contains(line), "{codex}");
}

#[test]
fn a_shell_gets_the_token_as_it_is_named_or_no_variable_for_it() {
    let aider = known_client("aider").expect("a row");
    assert_eq!(
        aider.shell(ROOT, Some("\"$(cat '/run/token')\"")),
        "export OPENAI_API_BASE=http://127.0.0.1:8327/v1\n\
         export OPENAI_API_KEY=\"$(cat '/run/token')\"\n\
         aider() { command aider --model openai/auto \"$@\"; }"
    );
    assert!(!aider.shell(ROOT, None).contains("OPENAI_API_KEY"));
    // One that is set to nothing keeps out what the shell had.
    let claude = known_client("claude").expect("a row").shell(ROOT, None);
    assert!(claude.contains("export ANTHROPIC_API_KEY=''\n"), "{claude}");
}

#[test]
fn a_word_of_a_shell_is_one_word_whatever_it_holds() {
    for (text, wanted) in [
        ("auto", "auto"),
        ("http://127.0.0.1:8327/v1", "http://127.0.0.1:8327/v1"),
        ("", "''"),
        ("a b", "'a b'"),
        ("{\"x\":\"$y\"}", "'{\"x\":\"$y\"}'"),
        ("it's", "'it'\\''s'"),
    ] {
        assert_eq!(word(text), wanted);
    }
}

/// What stands above the table.
const HEAD: &str = r#"# Clients

Written from the code (`src/cli/clients.rs`) by `make docs`; a test holds the two equal.

```sh
bursar app add laptop >token                               # once: an app, and its token
bursar env codex --token-file token                        # lines to paste; or eval "$(bursar env …)"
bursar launch codex --app laptop -- exec "fix the test"    # the same in one command, with a receipt at its end
```

No file of another program is touched: `bursar env` prints, and `bursar launch` sets variables and puts arguments before
your own. The token is in a variable and never in an argument, which other users of the machine could read. `launch` is
`bursar exec` ([apps.md](apps.md)) and takes `--max-usd`; without `--app` it spends as `default`, as long as callers without a
token may. Where the column `launch` says “with its file”, the program takes the address only from a file of its own: put the
lines below there first.

**The base URL chooses the lane.** `…/v1` is for single requests, `…/agent/v1` for turns of a conversation with tools; of
Anthropic's dialect it is `…/agent`, without `/v1`. A request to `/responses` or `/messages` is translated
([dialects.md](dialects.md)): the service is asked for the whole turn, whose price is known before the first byte. A turn that is
streamed as a chat completion on the agent lane has a price with `[streams] agent_receipts = "exact"` ([streams.md](streams.md)).
For a program that shows text as it is written there is `[[app]] translated = "live"`, on `/responses`; then a connection that
is cut inside an answer is another purchase when the program asks again, and agent turns carry no price. No client below needs it.

**The model is `auto`.** Where a program insists on a name of its own, an alias in `[models]` maps it.

## Silence

Such a turn is silent until it is done. Measured with an answer that was held back:

| client | before the first byte | within a stream |
|---|---|---|
| Codex CLI 0.169.0 | waits: 640 s passed | repeats after 300 s, five times; a comment every 10 s does not help; `stream_idle_timeout_ms` is that limit |
| Claude Code 2.1.332 | repeats after 360 s; with both variables below that begin with `API_` 640 s passed | repeats after 300 s; a comment every 10 s helps: 330 s passed |
| Claude Code 2.1.197 | repeats after 300 s | repeats after 300 s, without `stream`; a comment does not help |

Turns of 30, 60 and 120 s passed in all. A repeat is no second purchase: it joins the turn that is still running, or takes
the answer that it missed, within `[retry] adopt_window_s`. One exception: a client that got a part of a turn whole before
the cut, a text or a call, may name it in what it asks next (Codex does, and Claude Code where a call follows its text). That
is the next turn, and another purchase; the rest of the turn that was cut was paid for and is lost. An answer that bursar
wrote to its end counts as delivered: a client that loses it after that, and asks again, buys again. The last events of a turn
that is a text alone are so few bytes that a cut among them is such a case.

## Which clients work

Each row with a package is run by `scripts/test-clients.sh` (part of `make test-all`): the real program without a screen,
in a network where it reaches bursar alone, with the lines below, and at its end the ledger equals the sandbox's books.
`[streams] agent_receipts = "exact"` is set: without it the streamed agent turns of opencode and Continue have no price.

| client | `CLIENT` | `launch` | asks | works | tested with |
|---|---|---|---|---|---|
"#;

/// Version of a package that scripts/test-clients.sh installs.
fn pinned(registry: &str, package: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    if registry == "npm" {
        let manifest: serde_json::Value = serde_json::from_str(&read("package.json")).ok()?;
        return manifest["dependencies"][package]
            .as_str()
            .map(str::to_owned);
    }
    let files = ["", "-aider", "-llamaindex"].map(|name| read(&format!("requirements{name}.txt")));
    let mut lines = files.iter().flat_map(|text| text.lines());
    lines.find_map(|line| {
        let version = line.strip_prefix(package)?.strip_prefix("==")?;
        Some(version.to_owned())
    })
}

/// The tests of the programs, all in one text, without what divides lines and words.
fn stories() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("test_") && name.ends_with(".py") {
            text += &std::fs::read_to_string(entry.path()).expect("a file");
        }
    }
    text.retain(|letter| !letter.is_whitespace());
    text
}

#[test]
fn a_row_that_says_that_it_is_run_is_run_by_a_test_and_launched_by_one_where_it_can_be() {
    let stories = stories();
    for client in CLIENTS {
        if matches!(client.judged, Judged::Not(_)) {
            continue;
        }
        let name = client.name;
        let calls = ["with_lines", "python"].map(|call| format!("place.{call}(\"{name}\","));
        let is_run = calls.iter().any(|call| stories.contains(call));
        assert!(is_run, "no test in tests/clients runs {name}");
        let launch = format!("bursarlaunch{name}--app");
        let is_launched = client.program.is_none() || stories.contains(&launch);
        assert!(is_launched, "no test in tests/clients launches {name}");
    }
}

/// Whether variables or arguments have the address: else it stands in a file, which `bursar launch` does not touch.
fn is_led_here(client: &Client) -> bool {
    let settings = client.settings(ROOT).into_iter();
    let values = settings.filter_map(|(_, value)| value);
    let mut words = values.chain(client.arguments(ROOT));
    words.any(|word| word.contains(ROOT))
}

#[test]
fn a_program_that_is_started_from_here_has_the_address_or_a_file_for_it() {
    for client in CLIENTS.iter().filter(|client| client.program.is_some()) {
        let its = client.lines.as_ref().map(|lines| lines.filled(ROOT));
        let is_in_a_file = its.is_some_and(|text| text.contains(ROOT));
        assert!(is_led_here(client) || is_in_a_file, "{}", client.name);
    }
}

#[test]
fn the_page_of_clients_is_what_the_table_says() {
    let mut page = HEAD.to_owned();
    for client in CLIENTS {
        let judged = match client.judged {
            Judged::Run(registry, package) => {
                let version = pinned(registry, package);
                let version = version.unwrap_or_else(|| panic!("tests/clients has no {package}"));
                format!("{registry}: {package} {version}")
            }
            Judged::Not(why) => why.to_owned(),
        };
        let launch = match client.program {
            None => "",
            Some(_) if is_led_here(client) => "yes",
            Some(_) => "with its file",
        };
        let _ = writeln!(
            page,
            "| {} | `{}` | {launch} | {} | {} | {judged} |",
            client.title,
            client.name,
            client.route,
            cell(client.works)
        );
    }
    page.push_str(
        "\n## The lines\n\nWhat `bursar env CLIENT --token-file FILE` prints where the daemon listens on its default \
         address.\nWhat is behind a `#` goes into the file or the code that is named above it.\n",
    );
    for client in CLIENTS {
        let lines = client.shell(ROOT, Some("\"$(cat 'FILE')\""));
        if !lines.is_empty() {
            let _ = write!(page, "\n### {}\n\n```sh\n{lines}\n```\n", client.title);
        }
    }
    must_be("clients.md", &page);
}
