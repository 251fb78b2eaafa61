//! Whose ledger a command is about, where another one's daemon answers.

use tokio::net::TcpListener;

use super::super::daemon::answering;
use super::*;

/// A daemon of another release: it says which ledger it has, and nothing else as this one would.
async fn daemon_of(state_dir: &str) -> ListenAddr {
    let body =
        serde_json::json!({ "pid": "1", "ledger": { "state_dir": state_dir, "commits": null } });
    answering(&body.to_string()).await
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
