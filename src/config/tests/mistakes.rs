//! What is said of a wrong configuration: text of the file, exact lines of the answer.

use super::*;

#[test]
fn each_mistake_is_one_clear_line() {
    // What stands behind the upstream table, from line 4; every line of the answer.
    let table: [(&str, &[&str]); 39] = [
        // Unknown keys.
        (
            "read_timeout = 5\n",
            &["config.toml:4: [upstream] read_timeout is unknown; did you mean read_timeout_s?"],
        ),
        (
            "[retry]\n\nattemps = 5\n",
            &["config.toml:6: [retry] attemps is unknown; did you mean attempts?"],
        ),
        (
            "[retry]\nzzz = 5\n",
            &[
                "config.toml:5: [retry] zzz is unknown; known here: attempts, base_ms, cap_ms, adopt, adopt_window_s",
            ],
        ),
        (
            "attempts = 5\n",
            &["config.toml:4: [upstream] attempts is unknown here; attempts belongs to [retry]"],
        ),
        (
            "service_name = \"x\"\n",
            &[
                "config.toml:4: [upstream] service_name is unknown here; service_name belongs above all tables",
            ],
        ),
        (
            "[retrys]\n",
            &["config.toml:4: [retrys] is unknown; did you mean [retry]?"],
        ),
        (
            "[zzz]\n",
            &[
                "config.toml:4: [zzz] is unknown; known here: service_name, [upstream], [listen], [retry], [shaping], [ledger], [streams], [caps], [notify], [[app]], [reconcile], [models], [errors], [log], [fleet]",
            ],
        ),
        (
            "[[apps]]\nname = \"x\"\n",
            &["config.toml:4: [[apps]] is unknown; did you mean [[app]]?"],
        ),
        (
            "[log]\n\"le\\nvel\" = \"info\"\n",
            &["config.toml:5: [log] le\\nvel is unknown; did you mean level?"],
        ),
        (
            "api_key = \"sk-test-0123456789abcdef\"\n",
            &[
                "config.toml:4: [upstream] api_key is unknown: the key itself is never written in this file; put it into a file of its own and name that in [upstream] api_key_file",
            ],
        ),
        (
            "[shaping]\nin_flight = 1001\nper_minute = -1\nqueue_wait_s = 0\n",
            &[
                "config.toml:5: [shaping] in_flight: takes 0 to 1000, not 1001",
                "config.toml:6: [shaping] per_minute: takes 0 to 1000000, not -1",
                "config.toml:7: [shaping] queue_wait_s: takes 1 to 3600, not 0",
            ],
        ),
        // Keys of a later release.
        (
            "[ledger]\nretention_days = 1\n[streams]\nstrip_comments = true\n",
            &[
                "config.toml:5: [ledger] retention_days: takes 0 (for ever) or 2 and more, not 1: a price may come a day later",
                "config.toml:7: [streams] strip_comments is not in this release; a later one brings it",
            ],
        ),
        // Wrong types.
        (
            "read_timeout_s = \"600\"\n",
            &["config.toml:4: [upstream] read_timeout_s: takes a whole number, not a string"],
        ),
        (
            "read_timeout_s = 600.0\n",
            &[
                "config.toml:4: [upstream] read_timeout_s: takes a whole number, not a number with a fraction",
            ],
        ),
        (
            "ca_file = true\n",
            &["config.toml:4: [upstream] ca_file: takes a string, not true or false"],
        ),
        (
            "[errors]\nadd_error_object = 1\n",
            &["config.toml:5: [errors] add_error_object: takes true or false, not a whole number"],
        ),
        (
            "[listen]\nproxy = \"127.0.0.1:1\"\n",
            &[
                "config.toml:5: [listen] proxy: takes a list of strings, such as [\"…\"], not a string",
            ],
        ),
        (
            "[listen]\nproxy = [\n\"127.0.0.1:1\",\n8327]\n",
            &[
                "config.toml:7: [listen] proxy: takes a list of strings, such as [\"…\"]; this element is a whole number",
            ],
        ),
        (
            "[models]\naliases = [\"a\"]\n",
            &[
                "config.toml:5: [models] aliases: takes a table of strings, such as { \"…\" = \"…\" }, not a list",
            ],
        ),
        (
            "[models.aliases]\na = \"auto\"\nb = 7\n",
            &[
                "config.toml:6: [models] aliases: takes a table of strings, such as { \"…\" = \"…\" }; the value of \"b\" is a whole number",
            ],
        ),
        (
            "[[log]]\nlevel = \"info\"\n",
            &["config.toml:4: [log] is a table; here it is a list"],
        ),
        // Values out of range.
        (
            "read_timeout_s = 0\nconnect_timeout_s = 301\n",
            &[
                "config.toml:4: [upstream] read_timeout_s: takes 1 to 7200, not 0",
                "config.toml:5: [upstream] connect_timeout_s: takes 1 to 300, not 301",
            ],
        ),
        (
            "[retry]\nattempts = -1\nadopt_window_s = 82801\n",
            &[
                "config.toml:5: [retry] attempts: takes 1 to 10, not -1",
                "config.toml:6: [retry] adopt_window_s: takes 1 to 82800, not 82801",
            ],
        ),
        (
            "[retry]\nbase_ms = 99999999999999999999\n",
            &["config.toml:5: [retry] base_ms: takes 1 to 60000, not 9223372036854775807"],
        ),
        (
            "[retry]\nbase_ms = 900\ncap_ms = 800\n",
            &["config.toml:6: [retry] cap_ms: cap_ms (800) must not be below base_ms (900)"],
        ),
        (
            "[retry]\nbase_ms = 9000\n",
            &["config.toml:5: [retry] base_ms: cap_ms (8000) must not be below base_ms (9000)"],
        ),
        // Words.
        (
            "[retry]\nadopt = \"Always\"\n",
            &[
                "config.toml:5: [retry] adopt: takes \"always\" or \"marked\" or \"never\", not \"Always\"",
            ],
        ),
        (
            "[log]\nlevel = \"loud\"\nformat = \"xml\"\n",
            &[
                "config.toml:5: [log] level: takes \"error\" or \"warn\" or \"info\" or \"debug\" or \"trace\", not \"loud\"",
                "config.toml:6: [log] format: takes \"json\" or \"text\", not \"xml\"",
            ],
        ),
        // Addresses.
        (
            "[listen]\nproxy = []\n",
            &["config.toml:5: [listen] proxy: is empty; apps need at least one address"],
        ),
        (
            "[listen]\nproxy = [\"0.0.0.0:8327\"]\n",
            &[
                "config.toml:5: [listen] proxy: \"0.0.0.0:8327\" is not a loopback address; [listen] allow_remote = true lets other machines call, for apps with tokens",
            ],
        ),
        (
            "[listen]\nproxy = [\"127.0.0.1:1\", \"127.0.0.1:1\"]\nadmin = [\"127.0.0.1:1\"]\n",
            &[
                "config.toml:5: [listen] proxy: \"127.0.0.1:1\" is already listened on",
                "config.toml:6: [listen] admin: \"127.0.0.1:1\" is already listened on",
            ],
        ),
        (
            "[listen]\nallowed_hosts = [\"a:1\"]\nallowed_origins = [\"*\"]\n",
            &[
                "config.toml:5: [listen] allowed_hosts: \"a:1\" has a port; every port is allowed, leave it out",
                "config.toml:6: [listen] allowed_origins: \"*\" would let any web page spend; list each origin",
            ],
        ),
        // Paths, routes, aliases.
        (
            "ca_file = \"~/ca.pem\"\nextra_routes = [\"/v1/x\"]\n",
            &[
                "config.toml:4: [upstream] ca_file: \"~/ca.pem\": ~ and $ are not expanded here; write the whole path",
                "config.toml:5: [upstream] extra_routes: \"/v1/x\" is not \"METHOD /path\", such as \"POST /v1/x\"",
            ],
        ),
        (
            "[ledger]\nstate_dir = \"\"\n",
            &["config.toml:5: [ledger] state_dir: is empty; leave the key out instead"],
        ),
        (
            "[reconcile]\nwindow_days = 0\nspend_field = \"a..b\"\npoll_eval_runs = 1\n",
            &[
                "config.toml:5: [reconcile] window_days: takes 1 to 366, not 0",
                "config.toml:6: [reconcile] spend_field: takes a member's name, such as \"billed_micro_usd_30d\"; dots lead into objects",
                "config.toml:7: [reconcile] poll_eval_runs: takes true or false, not a whole number",
            ],
        ),
        (
            "[models]\naliases = { a = \"*\" }\n",
            &[
                "config.toml:5: [models] aliases: \"a\" = \"*\": \"*\" is for the model that is asked for, not for the one that is sent",
            ],
        ),
        // No TOML.
        (
            "[retry]\nattempts = \n",
            &[
                "config.toml:5: not valid TOML: string values must be quoted, expected literal string",
            ],
        ),
        (
            "[log]\nlevel = \"info\"\nlevel = \"warn\"\n",
            &["config.toml:6: not valid TOML: duplicate key"],
        ),
        (
            "[upstream]\n",
            &["config.toml:4: not valid TOML: duplicate key"],
        ),
    ];
    let place = Fixture::new();
    for (text, expected) in table {
        let lines = place.load(text).expect_err(text);
        assert_eq!(lines, expected, "{text}");
    }
}

#[test]
fn mistakes_of_the_upstream_are_one_clear_line_each() {
    let table: [(&str, &[&str]); 5] = [
        (
            "",
            &[
                "no upstream: set base_url in [upstream] of the configuration file, BURSAR_UPSTREAM, or --upstream URL; without an account, `bursar sandbox` is the service on this machine (http://127.0.0.1:8329, key sandbox-key)",
                "no API key: put it into a file and set api_key_file in [upstream] of the configuration file, BURSAR_API_KEY_FILE, or --api-key-file FILE; `bursar key set` asks for it and writes that file",
            ],
        ),
        (
            "[upstream]\nbase_url = \"https://\"\napi_key_file = \"key\"\n",
            &["config.toml:2: [upstream] base_url: \"https://\" has no host"],
        ),
        (
            "[upstream]\nbase_url = \"http://api.example\"\napi_key_file = \"missing\"\n",
            &[
                "config.toml:2: [upstream] base_url: \"http://api.example\" would send the key unencrypted; plain http is for loopback hosts only, write https",
                "config.toml:3: [upstream] api_key_file: the file missing does not exist; `bursar key set` asks for the key and writes it",
            ],
        ),
        (
            "service_name = \"My Service\"\n[upstream]\nbase_url = \"https://a\"\napi_key_file = \"key\"\n",
            &[
                "config.toml:1: service_name: \"My Service\": a service name is 1 to 32 lower-case letters, digits and hyphens, the first of them a letter",
            ],
        ),
        (
            "upstream = 5\n",
            &[
                "config.toml:1: [upstream] is a table; here it is a whole number",
                "no upstream: set base_url in [upstream] of the configuration file, BURSAR_UPSTREAM, or --upstream URL; without an account, `bursar sandbox` is the service on this machine (http://127.0.0.1:8329, key sandbox-key)",
                "no API key: put it into a file and set api_key_file in [upstream] of the configuration file, BURSAR_API_KEY_FILE, or --api-key-file FILE; `bursar key set` asks for it and writes that file",
            ],
        ),
    ];
    let place = Fixture::new();
    for (text, expected) in table {
        assert_eq!(place.load_whole(text).expect_err(text), expected, "{text}");
    }
}

#[test]
fn an_upstream_or_a_key_that_was_meant_is_not_said_to_be_missing_as_well() {
    let place = Fixture::new();
    let key = "api_key_file = \"key\"\n";
    let url = "base_url = \"https://api.example\"\n";
    let cases = [
        (format!("[upstream]\nbase_url = 5\n{key}"), "takes a string"),
        (format!("[upstream]\nbase_ur = \"x\"\n{key}"), "base_url?"),
        (format!("base_url = \"x\"\n[upstream]\n{key}"), "belongs to"),
        (
            format!("[upstream]\napi_key_file = 5\n{url}"),
            "takes a string",
        ),
        (
            format!("[upstream]\napi_key_fil = \"key\"\n{url}"),
            "api_key_file?",
        ),
        (
            format!("[upstream]\napi_key = \"x\"\n{url}"),
            "the key itself",
        ),
    ];
    for (text, part) in cases {
        let lines = place.load_whole(&text).unwrap_err();
        assert_eq!(lines.len(), 1, "{text}: {lines:?}");
        assert!(lines[0].contains(part), "{text}: {lines:?}");
    }

    // A word that resembles nothing stands for nothing.
    let lines = place
        .load_whole(&format!("[upstream]\nwxyz = 1\n{key}"))
        .unwrap_err();
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_the_only_mistake() {
    let place = Fixture::new();
    let load = |path: &Path| {
        let flags = Overrides {
            config: Some(path.to_owned()),
            ..Overrides::default()
        };
        place.lines(&Config::load(&flags, &env(&[])).unwrap_err())
    };
    fs::write(place.path("latin1.toml"), b"service_name = \"\xe9\"").unwrap();
    fs::write(place.path("large.toml"), vec![b'\n'; 1024 * 1024 + 1]).unwrap();

    assert_eq!(
        load(&place.path("none.toml")),
        ["none.toml: cannot be read: No such file or directory (os error 2)"]
    );
    assert_eq!(
        load(&place.path("latin1.toml")),
        ["latin1.toml: is not valid UTF-8"]
    );
    assert_eq!(
        load(&place.path("large.toml")),
        ["large.toml: is larger than 1048576 bytes"]
    );
}

#[test]
fn a_wrong_flag_or_variable_is_named() {
    let place = Fixture::new();
    let flags = Overrides {
        upstream: Some("https://".to_owned()),
        api_key_file: Some("/nowhere/key".into()),
        listen: vec!["0.0.0.0:1".to_owned()],
        admin: Some("admin".to_owned()),
        ..place.flags(UPSTREAM)
    };
    assert_eq!(
        Config::load(&flags, &env(&[])).unwrap_err().lines(),
        [
            "--upstream: \"https://\" has no host",
            "--api-key-file: the file /nowhere/key does not exist; `bursar key set` asks for the key and writes it",
            "--listen: \"0.0.0.0:1\" is not a loopback address; [listen] allow_remote = true lets other machines call, for apps with tokens",
            "--admin: \"admin\" is neither \"IP:PORT\" (127.0.0.1:8327, [::1]:8327) nor \"unix:/path\"",
        ]
    );

    let wrong = env(&[
        ("BURSAR_UPSTREAM", "ftp://x"),
        ("BURSAR_API_KEY", "two words"),
    ]);
    assert_eq!(
        Config::load(&place.flags(UPSTREAM), &wrong)
            .unwrap_err()
            .lines(),
        [
            "BURSAR_UPSTREAM: \"ftp://x\" is neither https nor http",
            "BURSAR_API_KEY: the key holds a space, a line break or another character that is not visible ASCII; only the key itself belongs there, without \"Bearer\"",
        ]
    );
}
