//! `bursar fleet join` and `leave` by root for the system service, in a mount namespace with an `/etc` of the test's own.
//! What systemd makes of the drop-in is in scripts/test-package.sh.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::process::Command;

use super::commands::{Done, ended};
use super::{CODE, DATABASE, fleet};
use crate::support::daemon::command;

/// Gives a command an `/etc`.
const WITH_ETC: &str = "mount --bind \"$0\" /etc && exec \"$@\"";

const DROP_IN: &str = "systemd/system/bursar.service.d/fleet.conf";

/// A machine with the system service's configuration.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        for directory in ["etc/bursar", "etc/systemd/system", "home"] {
            std::fs::create_dir_all(folder.path().join(directory)).expect("a directory");
        }
        let machine = Self { folder };
        let config =
            "# of the package\n[upstream]\nbase_url = \"https://service.example\"\n\n[caps]\n";
        std::fs::write(machine.etc("bursar/config.toml"), config).expect("a file");
        machine
    }

    fn etc(&self, name: &str) -> PathBuf {
        self.folder.path().join("etc").join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.etc(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// A command as root gives it there.
    async fn gives(&self, arguments: &[&str], typed: &str) -> Done {
        let own = command(arguments);
        let mut inside = Command::new("unshare");
        inside
            .args(namespace())
            .args(["sh", "-c", WITH_ETC])
            .arg(self.etc(""))
            .arg(own.as_std().get_program())
            .args(own.as_std().get_args())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.folder.path().join("home"));
        ended(inside, typed).await
    }
}

/// Root needs no namespace of users, in which it could not enter the server's directory.
fn namespace() -> &'static [&'static str] {
    match rustix::process::geteuid().is_root() {
        true => &["--mount"],
        false => &["--mount", "--map-root-user"],
    }
}

fn mode(path: &Path) -> u32 {
    let found = std::fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o7777
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_system_service_is_given_the_url_as_a_credential_until_it_leaves() {
    let postgres = fleet();
    let machine = Machine::new();
    let url = postgres.url("node", DATABASE);
    let typed = format!("{url}\n{CODE}1\n");

    let joined = machine
        .gives(&["fleet", "join", "--host-label", "build-7"], &typed)
        .await;

    assert_eq!(joined.code, Some(0), "{}", joined.err);
    assert!(
        joined
            .out
            .contains("systemctl daemon-reload && systemctl restart bursar"),
        "{}",
        joined.out
    );
    assert!(!joined.out.contains(CODE) && !joined.out.contains("postgresql://"));
    assert_eq!(machine.read("bursar/fleet-url"), typed);
    assert_eq!(mode(&machine.etc("bursar/fleet-url")), 0o600);
    assert_eq!(
        machine.read(DROP_IN),
        "[Service]\nLoadCredential=fleet-url:/etc/bursar/fleet-url\n"
    );
    let config = machine.read("bursar/config.toml");
    for line in [
        "# of the package",
        "[caps]",
        "url_file = \"/run/credentials/bursar.service/fleet-url\"",
        "host_label = \"build-7\"",
    ] {
        assert!(
            config.lines().any(|found| found == line),
            "{line}: {config}"
        );
    }

    let left = machine.gives(&["fleet", "leave"], "").await;

    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(
        left.out.contains("systemctl restart bursar"),
        "{}",
        left.out
    );
    assert!(!machine.etc(DROP_IN).exists());
    assert!(!machine.read("bursar/config.toml").contains("url_file"));
    let again = machine.gives(&["fleet", "leave"], "").await;
    assert_eq!(again.code, Some(1), "{}", again.out);
    assert!(again.err.contains("is in no fleet"), "{}", again.err);
}
