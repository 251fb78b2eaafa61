//! Whose ledger a command is about, where another one's daemon answers.

use tokio::net::TcpListener;

use super::super::daemon::{answering as answering_on_port, answering_at};
use super::*;

/// A daemon of another release: it says which ledger it has, and nothing else as this one would.
async fn daemon_of(state_dir: &str) -> ListenAddr {
    answering_on_port(&status_of(state_dir)).await
}

fn status_of(state_dir: &str) -> String {
    let ledger = serde_json::json!({ "state_dir": state_dir, "commits": null });
    serde_json::json!({ "pid": "1", "ledger": ledger }).to_string()
}

/// A port of loopback without a listener.
async fn unheard() -> ListenAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    ListenAddr::Tcp(listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn the_default_address_is_asked_where_no_daemon_is_at_the_configured_ones() {
    const OURS: &str = "/nowhere/ours";
    const THEIRS: &str = "/nowhere/theirs";
    let (ours, theirs, unheard) = (
        daemon_of(OURS).await,
        daemon_of(THEIRS).await,
        unheard().await,
    );
    for (what, configured, state_dir_in_file, default, is_refused) in [
        ("a port of its own", Some(&unheard), false, &theirs, true),
        ("no port", None, false, &theirs, true),
        ("its daemon is there", Some(&ours), false, &theirs, false),
        (
            "the file names its ledger",
            Some(&unheard),
            true,
            &theirs,
            false,
        ),
        (
            "the default is configured",
            Some(&theirs),
            true,
            &theirs,
            true,
        ),
        ("both are another's", Some(&theirs), false, &ours, true),
        (
            "the default is its daemon",
            Some(&unheard),
            false,
            &ours,
            false,
        ),
        ("no daemon is there", Some(&unheard), false, &unheard, false),
    ] {
        let overrides = Overrides {
            state_dir: Some(PathBuf::from(OURS)),
            ..Overrides::default()
        };
        let mut place = Whereabouts::find(&overrides, &Env::default()).expect("defaults");
        place.state_dir_in_file = state_dir_in_file;
        place.admin = configured.cloned().into_iter().collect();
        let checked = must_be_its_daemons(&place, default).await;
        match checked {
            Ok(()) => assert!(!is_refused, "{what}"),
            Err(error) => {
                let words = error.to_string();
                assert!(is_refused, "{what}: {words}");
                assert!(words.contains(OURS) && words.contains(THEIRS), "{words}");
            }
        }
    }
}

#[tokio::test]
async fn the_own_socket_goes_before_the_systems_and_that_before_the_default_address() {
    for (own, socket, port, wanted) in [
        (true, true, true, Some("own")),
        (false, true, true, Some("socket")),
        (false, false, true, Some("port")),
        (false, false, false, None),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        if own {
            answering_at(&at("admin.sock"), &status_of("/own"));
        }
        if socket {
            answering_at(&at("system.sock"), &status_of("/system"));
        }
        let address = match port {
            true => daemon_of("/port").await,
            false => unheard().await,
        };
        let overrides = Overrides {
            state_dir: Some(folder.path().to_owned()),
            ..Overrides::default()
        };
        let mut place = Whereabouts::find(&overrides, &Env::default()).expect("defaults");
        place.admin = vec![ListenAddr::Unix(at("admin.sock"))];
        let system = System {
            sockets: vec![ListenAddr::Unix(at("system.sock"))],
            address: address.clone(),
            state_dir: "/nowhere/system".into(),
        };

        let asked = Asked::Any(place.clone());
        let mut said = Vec::new();
        let any = answering(&asked, &system, &mut |words| said.push(words)).await;
        let sockets = asked.sockets(&system);
        let trusted = first_that_answers(&asked, &sockets, &mut |_| {}).await;
        let trusted = trusted.expect("none hangs");
        let named = answering(&Asked::Ledger(place), &system, &mut |_| {}).await;

        let place_of = |client: Client| match client.address() {
            found if *found == address => "port",
            found if system.sockets.contains(found) => "socket",
            _ => "own",
        };
        assert_eq!(any.map(place_of), wanted);
        let names_port = said
            .iter()
            .any(|words| words.contains(&address.to_string()));
        assert_eq!(
            names_port, port,
            "as the first or as a second one: {said:?}"
        );
        // Behind a port any user may listen.
        let at_socket = wanted.filter(|wanted| *wanted != "port");
        assert_eq!(trusted.map(place_of), at_socket);
        // Where a ledger is named, no other one's daemon is asked.
        assert_eq!(named.map(place_of), wanted.filter(|_| own));
    }
}

/// A directory with a ledger in it, or without one.
fn state_dir(in_folder: &Path, name: &str, has_ledger: bool) -> PathBuf {
    let state_dir = in_folder.join(name);
    let below = if has_ledger { "journal" } else { "" };
    std::fs::create_dir_all(state_dir.join(below)).expect("a directory");
    state_dir
}

fn whereabouts(state_dir: PathBuf) -> Whereabouts {
    let overrides = Overrides {
        state_dir: Some(state_dir),
        ..Overrides::default()
    };
    Whereabouts::find(&overrides, &Env::default()).expect("defaults")
}

fn system_in(state_dir: PathBuf) -> System {
    System {
        sockets: Vec::new(),
        address: ListenAddr::DEFAULT_ADMIN,
        state_dir,
    }
}

#[test]
fn without_a_daemon_lists_and_orders_are_about_the_ledger_that_readers_read() {
    for (own, systems, is_named, wanted) in [
        (true, true, false, false),
        (true, false, false, false),
        (false, true, false, true),
        (false, false, false, false),
        (false, true, true, false),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let place = whereabouts(state_dir(folder.path(), "own", own));
        let system = system_in(state_dir(folder.path(), "system", systems));
        let asked = match is_named {
            true => Asked::Ledger(place),
            false => Asked::Any(place),
        };
        assert_eq!(asked.is_systems(&system), wanted, "{own} {systems}");
        let found = systems_place(&system, Right::Look).expect("a place");
        assert_eq!(found.state_dir, system.state_dir);
    }
}

/// The service's directory is a link to one that belongs to a user who exists only while it runs.
#[test]
fn no_order_is_written_into_a_ledger_that_the_services_own_user_changes() {
    let folder = tempfile::tempdir().expect("a directory");
    let link = folder.path().join("link");
    let there = state_dir(folder.path(), "private", true);
    std::os::unix::fs::symlink(there, &link).expect("a link");
    let refused = systems_place(&system_in(link.clone()), Right::Change);
    let words = refused.expect_err("a link").to_string();
    let link = link.display().to_string();
    for part in [&*link, "systemctl start bursar", "Nothing was changed"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[test]
fn the_name_of_this_machine_is_taken_as_its_address() {
    for (given, wanted) in [
        ("localhost:8328", "127.0.0.1:8328"),
        ("http://localhost:1/", "127.0.0.1:1"),
        ("[::1]:2", "[::1]:2"),
        ("unix:/a", "unix:/a"),
    ] {
        let client = named_client("--admin", given).expect(given);
        assert_eq!(client.address().to_string(), wanted);
    }
    for refused in ["localhost", "example.org:1", "10.0.0.1:1"] {
        let error = named_client("--admin", refused).expect_err(refused);
        assert!(error.to_string().contains("--admin"), "{error}");
    }
}

/// As `sudo bursar check` and `sudo bursar doctor` see it. What the person named is never replaced, not even by a file
/// that is there.
#[test]
fn where_nothing_names_a_key_it_is_that_of_the_system_service_if_it_may_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (there, missing) = (folder.path().join("api-key"), folder.path().join("missing"));
    std::fs::write(&there, "k").unwrap();
    let named = folder.path().join("named");
    let home = folder.path().to_str().unwrap();
    let bare = Env::from_pairs([("HOME", home)]);
    let variable = Env::from_pairs([("HOME", home), ("BURSAR_API_KEY", "k")]);
    let flag = Overrides {
        api_key_file: Some(named.clone()),
        ..Overrides::default()
    };
    for (overrides, env, units_key, wanted) in [
        (Overrides::default(), &bare, &there, Some(&there)),
        (Overrides::default(), &bare, &missing, None),
        (Overrides::default(), &variable, &there, None),
        (flag, &bare, &there, Some(&named)),
    ] {
        let found = with_units_key(overrides, env, units_key);
        assert_eq!(found.api_key_file.as_ref(), wanted);
    }
}
