//! A PostgreSQL of the test's own, in a temporary directory and behind a Unix socket alone.

use std::fs::Permissions;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bursar::fleet::schema;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Where this project's set-up puts the programs (`scripts/setup-postgresql.sh`).
pub(super) const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/tools/postgresql");

/// Where Debian's packages put them.
const SYSTEM_PLACE: &str = "/usr/lib/postgresql";

/// The user that a server runs as where this process is root, which the server refuses.
const NOBODY: &str = "65534";

/// The server's own, of its socket.
const PORT: u16 = 5432;

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

    /// Starts it again, on an address too, where it speaks TLS alone and wants passwords.
    pub fn listen(&self, address: IpAddr, certificate: &str, key: &str) {
        self.end();
        let data = self.data();
        let doors = "local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n";
        let lines = format!(
            "listen_addresses = '{address}'\nssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n"
        );
        let conf = data.join("postgresql.auto.conf");
        let settings = std::fs::read_to_string(&conf).expect("its settings");
        std::fs::write(&conf, settings + &lines).expect("its settings");
        for (name, text) in [
            ("pg_hba.conf", doors),
            ("server.crt", certificate),
            ("server.key", key),
        ] {
            let path = data.join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
            if is_root() {
                std::os::unix::fs::chown(&path, Some(65534), Some(65534)).expect("it is nobody's");
            }
        }
        self.begin();
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

    /// As on a machine that hangs: connections are there, and nothing is answered.
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let server = self.pid();
        let children = processes().filter(|process| process.parent == server);
        for pid in [server.clone()]
            .into_iter()
            .chain(children.map(|child| child.pid))
        {
            let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a number");
            // A child may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// The server's own.
    fn pid(&self) -> String {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        pid.lines().next().expect("a number").to_owned()
    }

    /// What its processes have used of the processor, those that ended too.
    pub fn processor_s(&self) -> f64 {
        let pid = self.pid();
        let children = processes().filter(|process| process.parent == pid);
        let ended = process(&pid).map_or(0, |server| server.ended_children_ticks);
        let own = process(&pid).map_or(0, |server| server.ticks);
        let ticks: u64 = children.map(|child| child.ticks).sum::<u64>() + own + ended;
        seconds(ticks)
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
        self.restore_new(database, backup, &[]);
    }

    /// Puts what a backup has in place of what is in a database, which stays the same one of the same server.
    pub fn restore_inside(&self, database: &str, backup: &Path) {
        let arguments = ["--exit-on-error", "--clean", "--if-exists", "-d", database];
        self.client("pg_restore", &arguments, &[], backup);
    }

    /// Puts what a backup has in a new database.
    pub fn restore_new(&self, database: &str, backup: &Path, more: &[&str]) {
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        let arguments = ["--exit-on-error", "-d", database];
        self.client("pg_restore", &arguments, more, backup);
    }

    fn client(&self, program: &str, arguments: &[&str], before: &[&str], file: &Path) {
        let ended = program_at(&self.programs.join(program))
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
        self.try_sql_at((&self.data(), PORT), role, database, statements)
    }

    /// By a socket in another place.
    pub(super) fn try_sql_at(
        &self,
        (socket, port): (&Path, u16),
        role: &str,
        database: &str,
        statements: &str,
    ) -> Output {
        let file = self.directory.path().join("statements.sql");
        std::fs::write(&file, statements).expect("a file");
        program_at(&self.programs.join("psql"))
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
                "-p",
                &port.to_string(),
                "-h",
            ])
            .arg(socket)
            .arg("-f")
            .arg(&file)
            .output()
            .expect("psql")
    }

    /// Its socket is in there, too.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let ended = server_program(&program)
            .args(arguments)
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
            self.go_on();
            self.end();
        }
    }
}

/// A process of this machine, as `/proc` has it.
struct Process {
    pid: String,
    parent: String,
    /// Of the processor.
    ticks: u64,
    ended_children_ticks: u64,
}

fn processes() -> impl Iterator<Item = Process> {
    let folders = std::fs::read_dir("/proc").expect("it is there");
    folders.filter_map(|folder| process(folder.ok()?.file_name().to_str()?))
}

fn process(pid: &str) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.to_owned(),
        parent: (*fields.get(1)?).to_owned(),
        ticks: ticks(11)? + ticks(12)?,
        ended_children_ticks: ticks(13)? + ticks(14)?,
    })
}

/// Linux counts a hundred to programs, whatever it does itself.
fn seconds(ticks: u64) -> f64 {
    u32::try_from(ticks).map_or(f64::MAX, f64::from) / 100.0
}

/// What a process has used of the processor.
pub(super) fn processor_s(pid: u32) -> f64 {
    seconds(process(&pid.to_string()).map_or(0, |process| process.ticks))
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program with the libraries that were set up beside it.
fn program_at(path: &Path) -> Command {
    let mut command = Command::new(path);
    equip(&mut command, path);
    command
}

/// A program as the user that servers run as.
pub(super) fn server_program(path: &Path) -> Command {
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            let ids = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
            command.args(ids).arg(path);
            command
        }
        false => Command::new(path),
    };
    equip(&mut command, path);
    command
}

fn equip(command: &mut Command, path: &Path) {
    command.env("LC_ALL", "C");
    if path.starts_with(PLACE) {
        command.env("LD_LIBRARY_PATH", Path::new(PLACE).join("libraries"));
    }
}

/// Where the programs of the newest version that is there are; else where the `PATH` has them.
#[expect(
    clippy::disallowed_methods,
    reason = "the PATH is where another distribution has PostgreSQL"
)]
fn programs() -> PathBuf {
    let set_up = Path::new(PLACE).join("usr/lib/postgresql");
    let versions = [Path::new(SYSTEM_PLACE), &set_up]
        .into_iter()
        .filter_map(|place| std::fs::read_dir(place).ok());
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| has_server(bin))
        .collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let newest = found
        .pop()
        .or_else(|| std::env::split_paths(&path).find(|bin| has_server(bin)));
    newest.unwrap_or_else(|| {
        panic!("PostgreSQL is missing: scripts/setup-postgresql.sh, or install Debian's postgresql")
    })
}

fn has_server(bin: &Path) -> bool {
    ["initdb", "postgres", "psql"]
        .iter()
        .all(|program| bin.join(program).exists())
}
