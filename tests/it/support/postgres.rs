//! A PostgreSQL of the test's own, in a temporary directory and behind a Unix socket alone.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bursar::fleet::schema;
use tempfile::TempDir;

/// Where Debian's packages, and this project's set-up, put the programs.
const PLACES: [&str; 2] = [
    "/usr/lib/postgresql",
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/.cache/tools/postgresql/usr/lib/postgresql"
    ),
];

/// The user that a server runs as where this process is root, which the server refuses.
const NOBODY: &str = "65534";

/// A running server. Dropping it ends it.
pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
}

impl Postgres {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Self {
            programs: programs(),
            directory,
        };
        // Its socket is inside: others enter, and only the server's own user writes.
        let root = server.directory.path();
        std::fs::set_permissions(root, Permissions::from_mode(0o755)).expect("it can be entered");
        let data = server.data();
        std::fs::create_dir(&data).expect("a directory");
        if is_root() {
            std::os::unix::fs::chown(&data, Some(65534), Some(65534)).expect("it is nobody's");
        }
        let data_text = data.to_str().expect("UTF-8");
        server.run(
            "initdb",
            &[
                "-D",
                data_text,
                "-U",
                "admin",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
            ],
        );
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\nmax_connections = 300\n\
             shared_buffers = 32MB\n",
            data.display()
        );
        let conf = data.join("postgresql.auto.conf");
        std::fs::write(&conf, settings).expect("its settings");
        server.begin();
        server
    }

    /// Starts it, or starts it again.
    pub fn begin(&self) {
        let data = self.data();
        let log = data.join("log");
        let (data, log) = (data.to_str().expect("UTF-8"), log.to_str().expect("UTF-8"));
        self.run(
            "pg_ctl",
            &["-D", data, "-l", log, "-w", "-t", "60", "start"],
        );
    }

    /// Ends it at once, as by a crash of the machine's power but for what was written.
    pub fn end(&self) {
        let data = self.data();
        self.run(
            "pg_ctl",
            &[
                "-D",
                data.to_str().expect("UTF-8"),
                "-m",
                "immediate",
                "stop",
            ],
        );
    }

    /// A fleet's database, with a login for each role.
    pub fn fleet(&self, database: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        self.sql(database, schema::SQL);
        self.sql(
            "postgres",
            "DO $$ BEGIN
                 IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'node') THEN
                     CREATE ROLE node LOGIN IN ROLE bursar_node;
                     CREATE ROLE operator LOGIN IN ROLE bursar_operator;
                     CREATE ROLE reader LOGIN IN ROLE bursar_reader;
                 END IF;
             END $$",
        );
    }

    /// Everything that is in a database, in a file.
    pub fn backup(&self, database: &str) -> PathBuf {
        let file = self.directory.path().join("backup");
        self.client("pg_dump", &["-F", "custom", "-d", database], &["-f"], &file);
        file
    }

    /// Puts what a backup has in place of a database, whoever is connected.
    pub fn restore(&self, database: &str, backup: &Path) {
        let drop = format!("DROP DATABASE {database} WITH (FORCE)");
        self.sql("postgres", &drop);
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        let arguments = ["--exit-on-error", "-d", database];
        self.client("pg_restore", &arguments, &[], backup);
    }

    fn client(&self, program: &str, arguments: &[&str], before: &[&str], file: &Path) {
        let ended = Command::new(self.programs.join(program))
            .args(["-U", "admin", "-h"])
            .arg(self.data())
            .args(arguments)
            .args(before)
            .arg(file)
            .output()
            .expect("it runs");
        assert!(
            ended.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }

    /// The URL of a role in a database.
    pub fn url(&self, role: &str, database: &str) -> String {
        let host = self.data().display().to_string().replace('/', "%2F");
        format!("postgresql://{role}@{host}/{database}")
    }

    /// What statements answer, without decoration.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let answered = self.try_sql("admin", database, statements);
        assert!(
            answered.status.success(),
            "{statements}: {}",
            String::from_utf8_lossy(&answered.stderr)
        );
        String::from_utf8_lossy(&answered.stdout).trim().to_owned()
    }

    pub fn try_sql(&self, role: &str, database: &str, statements: &str) -> Output {
        let file = self.directory.path().join("statements.sql");
        std::fs::write(&file, statements).expect("a file");
        Command::new(self.programs.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                role,
                "-d",
                database,
                "-h",
            ])
            .arg(self.data())
            .arg("-f")
            .arg(&file)
            .output()
            .expect("psql")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                let ids = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
                command.args(ids).arg(&program);
                command
            }
            false => Command::new(&program),
        };
        let ended = command
            .args(arguments)
            .env("LC_ALL", "C")
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("it runs");
        assert!(ended.success(), "{} {arguments:?}", program.display());
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.end();
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The newest version that is there.
fn programs() -> PathBuf {
    let versions = PLACES
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok());
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    let newest = found.pop();
    newest.unwrap_or_else(|| {
        panic!("PostgreSQL is missing: make test sets it up, or install Debian's postgresql")
    })
}
