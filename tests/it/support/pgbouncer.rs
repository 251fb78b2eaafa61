//! A pgbouncer of the test's own before a PostgreSQL: the pooler in transaction mode that many fleets will have.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::postgres::{PLACE, Postgres, is_root, processor_s, server_program};
use super::within;

const PORT: u16 = 6432;

/// A running pooler. Without `default_pool_size` it has one connection to the server for each login: what a client leaves
/// on it, the next one meets. Dropping it ends it.
pub struct PgBouncer {
    child: Child,
    directory: TempDir,
}

impl PgBouncer {
    /// `lines`: more settings. `None`: there is no pgbouncer on this machine, which was printed.
    pub async fn before(postgres: &Postgres, lines: &str) -> Option<Self> {
        let program = program()?;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        std::fs::set_permissions(root, Permissions::from_mode(0o755)).expect("it can be entered");
        if is_root() {
            std::os::unix::fs::chown(root, Some(65534), Some(65534)).expect("it is nobody's");
        }
        let (settings, logins) = (root.join("pgbouncer.ini"), root.join("logins"));
        let names =
            ["admin", "node", "operator", "reader"].map(|name| format!("\"{name}\" \"\"\n"));
        std::fs::write(&logins, names.concat()).expect("its logins");
        let text = format!(
            "[databases]\n* = host={}\n[pgbouncer]\npool_mode = transaction\n\
             listen_addr =\nlisten_port = {PORT}\nunix_socket_dir = {}\nauth_type = trust\nauth_file = {}\n{}\n",
            postgres.data().display(),
            root.display(),
            logins.display(),
            match lines.contains("default_pool_size") {
                true => lines.to_owned(),
                false => format!("default_pool_size = 1\n{lines}"),
            },
        );
        std::fs::write(&settings, text).expect("its settings");
        let child = server_program(&program)
            .arg(&settings)
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let pooler = Self { child, directory };
        within(Duration::from_secs(20), "pgbouncer to answer", || async {
            let answered = pooler.try_sql(postgres, "admin", "postgres", "SELECT 1");
            answered.status.success().then_some(())
        })
        .await;
        Some(pooler)
    }

    /// The URL of a role in a database, by way of it.
    pub fn url(&self, role: &str, database: &str) -> String {
        let host = self.directory.path().display().to_string();
        let host = host.replace('/', "%2F");
        format!("postgresql://{role}@{host}:{PORT}/{database}")
    }

    /// What it has used of the processor.
    pub fn processor_s(&self) -> f64 {
        processor_s(self.child.id())
    }

    /// What statements answer by way of it.
    pub fn try_sql(
        &self,
        postgres: &Postgres,
        role: &str,
        database: &str,
        statements: &str,
    ) -> Output {
        let place = (self.directory.path(), PORT);
        postgres.try_sql_at(place, role, database, statements)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the PATH is where another distribution has pgbouncer, and in CI nothing may be left out"
)]
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let set_up = Path::new(PLACE).join("usr/sbin");
    let places = [set_up, PathBuf::from("/usr/sbin")];
    let found = places
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|place| place.join("pgbouncer"))
        .find(|program| program.exists());
    if found.is_none() {
        println!(
            "SKIPPED: no pgbouncer: scripts/setup-postgresql.sh, or install Debian's pgbouncer"
        );
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "in CI nothing may be left out");
    }
    found
}
