use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

mod apps;
mod marks;
mod mistakes;
mod page;
mod shipped;

const SECRET: &str = "sk-test-0123456789abcdef";

/// A directory with a good key file and a place for a configuration.
struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, format!("{SECRET}\n")).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
        fs::create_dir(directory.path().join("tls")).unwrap();
        for ca_file in ["ca.pem", "tls/ca.pem"] {
            fs::write(directory.path().join(ca_file), authority.cert.pem()).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.path("config.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Flags for a file with `text`; nothing else given.
    fn flags(&self, text: &str) -> Overrides {
        Overrides {
            config: Some(self.write(text)),
            ..Overrides::default()
        }
    }

    /// Loads a file that is complete but for `text`, which stands behind its `[upstream]` table.
    fn load(&self, text: &str) -> Result<Config, Vec<String>> {
        self.load_whole(&format!("{UPSTREAM}{text}"))
    }

    fn load_whole(&self, text: &str) -> Result<Config, Vec<String>> {
        Config::load(&self.flags(text), &env(&[])).map_err(|errors| self.lines(&errors))
    }

    /// The errors, with the temporary directory left out.
    fn lines(&self, errors: &ConfigErrors) -> Vec<String> {
        let directory = format!("{}/", self.directory.path().display());
        errors
            .lines()
            .iter()
            .map(|line| line.replace(&directory, ""))
            .collect()
    }
}

/// Three lines, so that what is added begins on line 4.
const UPSTREAM: &str = "[upstream]\nbase_url = \"https://api.example\"\napi_key_file = \"key\"\n";

fn env(pairs: &[(&str, &str)]) -> Env {
    Env::from_pairs([("HOME", "/srv/u")].iter().chain(pairs).copied())
}

fn tcp(text: &str) -> ListenAddr {
    ListenAddr::Tcp(text.parse().unwrap())
}

#[test]
fn upstream_and_key_are_enough() {
    let config = Fixture::new().load("").unwrap();

    assert_eq!(config.names, ServiceNames::new("service").unwrap());
    assert_eq!(config.upstream.base_url.to_string(), "https://api.example");
    assert_eq!(config.upstream.connect_timeout, Duration::from_secs(10));
    assert_eq!(config.upstream.read_timeout, Duration::from_secs(600));
    assert_eq!(
        config.listen.proxy,
        [tcp("127.0.0.1:8327"), tcp("[::1]:8327")]
    );
    assert!(config.listen.proxy_is_default);
    let socket = ListenAddr::Unix("/srv/u/.local/state/bursar/admin.sock".into());
    assert_eq!(config.listen.admin, [tcp("127.0.0.1:8328"), socket]);
    assert_eq!(config.listen.shutdown_timeout, Duration::from_secs(120));
    assert_eq!(
        config.retry,
        Retry {
            attempts: 3,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            adopt: Adopt::Always,
            adopt_window: Duration::from_secs(900),
        }
    );
    assert_eq!(
        config.ledger.state_dir,
        Path::new("/srv/u/.local/state/bursar")
    );
    assert_eq!(config.ledger.durability, Durability::Power);
    assert_eq!(config.ledger.on_failure, OnFailure::Refuse);
    assert_eq!(config.streams.on_disconnect, OnDisconnect::Drain);
    assert_eq!(config.streams.drain_timeout, Duration::from_secs(120));
    assert_eq!(config.streams.agent_receipts, AgentReceipts::Unreported);
    assert_eq!(config.streams.translated, TranslatedStreams::Whole);
    assert_eq!(
        config.reconcile,
        Reconcile {
            poll_eval_runs: true,
            every: None,
            window_days: 30,
            spend_field: "billed_micro_usd_30d".to_owned(),
        }
    );
    assert!(config.models.aliases.is_empty());
    assert!(config.errors.add_error_object);
    assert_eq!(config.log.format, LogFormat::Text);
    assert_eq!(config.log.level, LogLevel::Info);
    assert!(config.warnings.is_empty());
}

#[test]
fn every_key_has_its_effect() {
    let config = Fixture::new()
        .load_whole(
            r#"
            service_name = "acme"
            [upstream]
            base_url = "https://api.example:8443/pre/"
            api_key_file = "key"
            ca_file = "ca.pem"
            connect_timeout_s = 1
            read_timeout_s = 7_200
            extra_routes = ["POST /v1/x"]
            [listen]
            proxy = ["127.0.0.1:1", "unix:/run/p.sock"]
            admin = ["[::1]:2"]
            allowed_hosts = ["Box"]
            allowed_origins = ["http://a:3"]
            shutdown_timeout_s = 0
            [retry]
            attempts = 1
            base_ms = 1
            cap_ms = 1
            adopt = "marked"
            adopt_window_s = 82800
            [ledger]
            state_dir = "/var/lib/bursar"
            durability = "process"
            on_failure = "serve"
            [streams]
            on_disconnect = "cancel"
            drain_timeout_s = 0x10
            agent_receipts = "exact"
            translated = "live"
            [reconcile]
            poll_eval_runs = false
            window_days = 7
            spend_field = "spend.billed"
            [models]
            aliases = { "gpt-4o" = "auto" }
            [errors]
            add_error_object = false
            [log]
            format = "json"
            level = "trace"
            "#,
        )
        .unwrap();

    assert_eq!(config.names.billed, "x-acme-billed");
    assert_eq!(config.upstream.base_url.path_prefix, "/pre");
    assert_eq!(config.upstream.authorities.unwrap().len(), 1);
    assert_eq!(config.upstream.connect_timeout, Duration::from_secs(1));
    assert_eq!(config.upstream.read_timeout, Duration::from_secs(7200));
    assert_eq!(
        config.upstream.extra_routes,
        [value::extra_route("POST /v1/x").unwrap()]
    );
    let unix = |path: &str| ListenAddr::Unix(path.into());
    assert_eq!(
        config.listen.proxy,
        [tcp("127.0.0.1:1"), unix("/run/p.sock")]
    );
    assert!(!config.listen.proxy_is_default);
    assert_eq!(
        config.listen.admin,
        [tcp("[::1]:2"), unix("/var/lib/bursar/admin.sock")]
    );
    assert_eq!(config.listen.allowed_hosts, ["box"]);
    assert_eq!(config.listen.allowed_origins, ["http://a:3"]);
    assert_eq!(config.listen.shutdown_timeout, Duration::ZERO);
    assert_eq!(
        (config.retry.attempts, config.retry.adopt),
        (1, Adopt::Marked)
    );
    assert_eq!(config.retry.cap, Duration::from_millis(1));
    assert_eq!(config.retry.adopt_window, Duration::from_secs(82_800));
    assert_eq!(config.ledger.durability, Durability::Process);
    assert_eq!(config.ledger.on_failure, OnFailure::Serve);
    assert_eq!(config.streams.on_disconnect, OnDisconnect::Cancel);
    assert_eq!(config.streams.drain_timeout, Duration::from_secs(16));
    assert_eq!(config.streams.agent_receipts, AgentReceipts::Exact);
    assert_eq!(config.streams.translated, TranslatedStreams::Live);
    assert_eq!(config.models.aliases.target("gpt-4o"), Some("auto"));
    assert!(!config.errors.add_error_object);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.log.level, LogLevel::Trace);
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let place = Fixture::new();
    let path = place.write(&format!(
        "{UPSTREAM}[listen]\nproxy = [\"127.0.0.1:1\"]\nadmin = [\"127.0.0.1:2\"]\n[ledger]\nstate_dir = \"/file\"\n"
    ));
    let path = path.to_str().unwrap();
    let urls = |flags: &Overrides, pairs: &[(&str, &str)]| {
        let config = Config::load(flags, &env(pairs)).unwrap();
        (config.upstream.base_url.host, config.ledger.state_dir)
    };
    let both = [
        ("BURSAR_CONFIG", path),
        ("BURSAR_UPSTREAM", "https://environment"),
        ("BURSAR_STATE_DIR", "/environment"),
    ];
    let flags = Overrides {
        upstream: Some("https://flag".to_owned()),
        state_dir: Some("/flag".into()),
        listen: vec!["127.0.0.1:11".to_owned(), "127.0.0.1:12".to_owned()],
        admin: Some("127.0.0.1:13".to_owned()),
        ..Overrides::default()
    };

    let nothing = Overrides::default();
    assert_eq!(
        urls(&nothing, &both[..1]),
        ("api.example".to_owned(), "/file".into())
    );
    assert_eq!(
        urls(&nothing, &both),
        ("environment".to_owned(), "/environment".into())
    );
    assert_eq!(urls(&flags, &both), ("flag".to_owned(), "/flag".into()));

    let config = Config::load(&flags, &env(&both)).unwrap();
    assert_eq!(
        config.listen.proxy,
        [tcp("127.0.0.1:11"), tcp("127.0.0.1:12")]
    );
    assert!(!config.listen.proxy_is_default);
    let socket = ListenAddr::Unix("/flag/admin.sock".into());
    assert_eq!(config.listen.admin, [tcp("127.0.0.1:13"), socket]);
    assert_eq!(config.path.as_deref(), Some(Path::new(path)));

    // A flag names another file than the environment.
    let other = Overrides {
        config: Some(place.path("other.toml")),
        ..Overrides::default()
    };
    fs::write(
        place.path("other.toml"),
        "[upstream]\nbase_url = \"https://other\"\napi_key_file = \"key\"\n",
    )
    .unwrap();
    assert_eq!(urls(&other, &both[..1]).0, "other");
}

#[test]
fn the_key_comes_from_the_first_place_that_gives_one() {
    let place = Fixture::new();
    for name in ["flag", "variable", "api-key"] {
        fs::write(place.path(name), format!("from-{name}")).unwrap();
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    // systemd's credential is readable for more than its owner; its directory is not.
    fs::set_permissions(place.path("api-key"), fs::Permissions::from_mode(0o444)).unwrap();
    let directory = place.directory.path().to_str().unwrap();
    let variable = place.path("variable");
    let all = [
        ("CREDENTIALS_DIRECTORY", directory),
        ("BURSAR_API_KEY", "from-text"),
        ("BURSAR_API_KEY_FILE", variable.to_str().unwrap()),
    ];
    let base = "[upstream]\nbase_url = \"https://a\"\n";
    let with_file = "[upstream]\nbase_url = \"https://a\"\napi_key_file = \"key\"\n";
    let key = |text: &str, flag: bool, pairs: &[(&str, &str)]| {
        let flags = Overrides {
            api_key_file: flag.then(|| place.path("flag")),
            ..place.flags(text)
        };
        let config = Config::load(&flags, &env(pairs)).unwrap();
        let header = config.upstream.api_key.header_value();
        header
            .to_str()
            .unwrap()
            .strip_prefix("Bearer ")
            .unwrap()
            .to_owned()
    };

    assert_eq!(key(with_file, true, &all), "from-flag");
    assert_eq!(key(with_file, false, &all), "from-variable");
    assert_eq!(key(with_file, false, &all[..2]), "from-text");
    assert_eq!(key(with_file, false, &all[..1]), SECRET);
    assert_eq!(key(base, false, &all[..1]), "from-api-key");
}

#[test]
fn a_key_that_was_meant_is_never_replaced_by_another() {
    let place = Fixture::new();
    let broken = env(&[
        ("BURSAR_API_KEY_FILE", "/nowhere/key"),
        ("BURSAR_API_KEY", "good"),
    ]);

    let errors = Config::load(&place.flags(UPSTREAM), &broken).unwrap_err();

    assert_eq!(
        errors.to_string(),
        "BURSAR_API_KEY_FILE: the file /nowhere/key does not exist; `bursar key set` asks for the key and writes it"
    );
}

#[test]
fn a_configuration_that_is_not_named_is_found_at_the_users_known_place() {
    let place = Fixture::new();
    let known = place.path("home/.config/bursar");
    let xdg = place.path("xdg/bursar");
    for (folder, name) in [(&known, "home"), (&xdg, "xdg")] {
        fs::create_dir_all(folder).unwrap();
        let text = format!("[ledger]\nstate_dir = \"/{name}\"\n");
        fs::write(folder.join("config.toml"), text).unwrap();
    }
    let named = place.write("[ledger]\nstate_dir = \"/named\"\n");
    let (home, xdg) = (place.path("home"), place.path("xdg"));
    let [home, xdg, named] = [&home, &xdg, &named].map(|path| path.to_str().unwrap());
    let found = |pairs: &[(&str, &str)]| {
        let env = Env::from_pairs(pairs.iter().copied());
        let found = Whereabouts::find(&Overrides::default(), &env).unwrap();
        found.state_dir.to_str().unwrap().to_owned()
    };
    let all = [
        ("HOME", home),
        ("XDG_CONFIG_HOME", xdg),
        ("BURSAR_CONFIG", named),
    ];
    assert_eq!(found(&all[..1]), "/home");
    assert_eq!(found(&all[..2]), "/xdg");
    assert_eq!(found(&all), "/named");
    // A folder of another user's settings that holds none is passed by.
    assert_eq!(
        found(&[("XDG_CONFIG_HOME", "/nowhere"), ("BURSAR_STATE_DIR", "/s")]),
        "/s"
    );

    fs::write(known.join("config.toml"), "[ledgr]\n").unwrap();
    let env = Env::from_pairs([("HOME", home)]);
    let error = Whereabouts::find(&Overrides::default(), &env).unwrap_err();
    assert!(error.to_string().contains("config.toml:1"), "{error}");
}

#[test]
fn the_state_directory_comes_from_the_first_place_that_gives_one() {
    let place = Fixture::new();
    let find = |pairs: &[(&str, &str)]| {
        let env = Env::from_pairs(pairs.iter().copied());
        Whereabouts::find(&place.flags(""), &env).map(|found| found.state_dir)
    };
    let all = [
        ("HOME", "/srv/u"),
        ("XDG_STATE_HOME", "/xdg"),
        ("STATE_DIRECTORY", "/var/lib/bursar:/var/lib/other"),
        ("BURSAR_STATE_DIR", "/given"),
    ];

    assert_eq!(
        find(&all[..1]).unwrap(),
        Path::new("/srv/u/.local/state/bursar")
    );
    assert_eq!(find(&all[..2]).unwrap(), Path::new("/xdg/bursar"));
    assert_eq!(find(&all[..3]).unwrap(), Path::new("/var/lib/bursar"));
    assert_eq!(find(&all).unwrap(), Path::new("/given"));
    // Relative ones are no XDG directories; empty variables are not set.
    let odd = [
        ("HOME", "/srv/u"),
        ("XDG_STATE_HOME", "xdg"),
        ("BURSAR_STATE_DIR", ""),
    ];
    assert_eq!(find(&odd).unwrap(), Path::new("/srv/u/.local/state/bursar"));
    assert_eq!(
        find(&[]).unwrap_err().to_string(),
        "no state directory: set state_dir in [ledger] of the configuration file, BURSAR_STATE_DIR, or --state-dir DIR"
    );
}

#[test]
fn a_ca_file_without_a_readable_certificate_is_refused() {
    let place = Fixture::new();
    fs::write(place.path("empty.pem"), "").unwrap();
    fs::write(place.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nx\n").unwrap();
    let garbage = "-----BEGIN CERTIFICATE-----\nAAECAwQFBgcICQ==\n-----END CERTIFICATE-----\n";
    fs::write(place.path("garbage.pem"), garbage).unwrap();
    // Nothing but certificates, and a key beside them no more than garbage.
    let good = fs::read_to_string(place.path("ca.pem")).unwrap();
    let key = "-----BEGIN PRIVATE KEY-----\nAAECAwQFBgcICQ==\n-----END PRIVATE KEY-----\n";
    fs::write(place.path("second.pem"), format!("{good}{garbage}")).unwrap();
    fs::write(place.path("with-key.pem"), format!("{good}{key}")).unwrap();
    for name in [
        "nowhere.pem",
        "empty.pem",
        "broken.pem",
        "garbage.pem",
        "second.pem",
        "with-key.pem",
    ] {
        let errors = place.load(&format!("ca_file = \"{name}\"\n")).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("[upstream] ca_file"), "{errors:?}");
        assert!(errors[0].contains(name), "{errors:?}");
    }
}

#[test]
fn paths_of_the_file_start_from_the_files_directory() {
    let place = Fixture::new();

    let config = place
        .load("ca_file = \"tls/ca.pem\"\n[ledger]\nstate_dir = \"state\"\n")
        .unwrap();

    assert!(config.upstream.authorities.is_some());
    assert_eq!(config.ledger.state_dir, place.path("state"));
}

#[test]
fn whereabouts_need_neither_upstream_nor_key() {
    let place = Fixture::new();
    let text =
        "[upstream]\nbase_url = \"https://\"\n[listen]\nadmin = []\n[ledger]\nstate_dir = \"/s\"\n";

    let found = Whereabouts::find(&place.flags(text), &env(&[])).unwrap();

    assert_eq!(found.state_dir, Path::new("/s"));
    assert_eq!(found.admin, [ListenAddr::Unix("/s/admin.sock".into())]);
}

#[test]
fn a_state_directory_too_deep_for_a_socket_is_a_warning() {
    let place = Fixture::new();
    let deep = format!("/{}", "d".repeat(120));

    let config = place
        .load(&format!("[ledger]\nstate_dir = \"{deep}\"\n"))
        .unwrap();
    assert_eq!(config.listen.admin, [tcp("127.0.0.1:8328")]);
    assert_eq!(config.warnings.len(), 1);

    let lines = place
        .load(&format!(
            "[listen]\nadmin = []\n[ledger]\nstate_dir = \"{deep}\"\n"
        ))
        .unwrap_err();
    assert_eq!(
        lines,
        [
            "config.toml:5: [listen] admin: is empty, and the path of the socket below the state directory is too long for one"
        ]
    );
}

#[test]
fn a_key_from_the_environment_is_a_warning_that_names_the_variable_and_not_the_key() {
    let place = Fixture::new();
    let flags = place.flags(UPSTREAM);
    let file = place.path("key");
    std::fs::write(&file, SECRET).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();

    let open = Config::load(&flags, &env(&[("BURSAR_API_KEY", SECRET)])).unwrap();
    let closed = Config::load(&flags, &env(&[("BURSAR_API_KEY_FILE", file)])).unwrap();

    let [warning] = open.warnings.as_slice() else {
        panic!("{:?}", open.warnings);
    };
    assert!(warning.contains("BURSAR_API_KEY,") && !warning.contains(SECRET));
    assert!(closed.warnings.is_empty(), "{:?}", closed.warnings);
}

#[test]
fn no_output_of_the_configuration_shows_the_key() {
    let place = Fixture::new();
    let env = env(&[("BURSAR_API_KEY", SECRET)]);
    let config = Config::load(&place.flags(UPSTREAM), &env).unwrap();
    let errors = Config::load(&place.flags("[upstream]\nbase_url = \"x\"\n"), &env).unwrap_err();
    // The key in the wrong place.
    let misplaced = place.load_whole(&format!(
        "{SECRET} = 1\n[upstream]\nbase_url = \"https://{SECRET}@a\"\napi_key = \"{SECRET}\"\napi_key_file = \"{SECRET}\"\n"
    ));

    for shown in [
        format!("{config:?}"),
        format!("{config:#?}"),
        format!("{env:?}"),
        format!("{errors:?} {errors}"),
        format!("{:?}", &misplaced.unwrap_err()[1..]),
    ] {
        assert!(!shown.contains("0123456789"), "{shown}");
    }
    assert!(format!("{config:?}").contains("ApiKey(***)"));
    assert!(format!("{env:?}").contains("BURSAR_API_KEY"));
}
