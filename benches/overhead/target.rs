//! What stands between the load and the echo: nothing, nginx as a plain proxy, or bursar with
//! ledger and metrics on.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::child::Process;
use crate::echo::{BILLED, LISTENING};
use crate::wire::Connection;

/// One way to the echo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Direct,
    Nginx {
        program: PathBuf,
    },
    Bursar {
        name: String,
        program: PathBuf,
        durability: &'static str,
    },
}

/// A target that accepts requests.
pub struct Running {
    pub address: SocketAddr,
    pub process: Option<Process>,
    /// bursar's admin listener.
    admin: Option<SocketAddr>,
}

/// The key that the proxy puts in place of the app's.
const KEY: &str = "sk-of-the-organization";

const START_MAX: Duration = Duration::from_secs(10);

/// Starts this program again as the far end; answers where it listens.
pub fn start_echo(directory: &Path) -> io::Result<(Process, SocketAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = Process::start(&mut command, &directory.join("echo.log"))?;
    let lines = first_lines(&mut process, 1)?;
    Ok((process, address_after(&lines, LISTENING)?))
}

impl Target {
    /// Starts it in front of `echo`, with everything it writes below `directory`.
    pub async fn start(&self, echo: SocketAddr, directory: &Path) -> io::Result<Running> {
        match self {
            Self::Direct => Ok(Running {
                address: echo,
                process: None,
                admin: None,
            }),
            Self::Nginx { program } => start_nginx(program, echo, directory).await,
            Self::Bursar {
                program,
                durability,
                ..
            } => start_bursar(program, durability, echo, directory),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct"),
            Self::Nginx { .. } => f.write_str("nginx"),
            Self::Bursar {
                name, durability, ..
            } => write!(f, "{name}, {durability}"),
        }
    }
}

async fn start_nginx(program: &Path, echo: SocketAddr, directory: &Path) -> io::Result<Running> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = free.local_addr()?;
    drop(free);
    let conf = directory.join("nginx.conf");
    fs::write(&conf, nginx_conf(echo, address))?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(directory)
        .arg("-e")
        .arg("error.log")
        .arg("-c")
        .arg(&conf);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut process = Process::start(&mut command, &directory.join("nginx.log"))?;
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        if process.is_over() || began.elapsed() > START_MAX {
            let why = fs::read_to_string(directory.join("error.log")).unwrap_or_default();
            return Err(io::Error::other(format!("nginx did not start: {why}")));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(Running {
        address,
        process: Some(process),
        admin: None,
    })
}

/// nginx as a plain proxy that may compare: kept connections, nothing buffered, one header set.
fn nginx_conf(echo: SocketAddr, listen: SocketAddr) -> String {
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        "{user} worker_processes 2; daemon off; pid nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_requests 1000000000; keepalive_timeout 90s;
    upstream echo {{ server {echo}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen {listen} backlog=1024;
        location / {{
            proxy_pass http://echo; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_set_header Authorization \"Bearer {KEY}\";
            proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s;
        }}
    }}
}}
"
    )
}

fn start_bursar(
    program: &Path,
    durability: &str,
    echo: SocketAddr,
    directory: &Path,
) -> io::Result<Running> {
    let config = directory.join("config.toml");
    fs::write(
        &config,
        // Its own time is what is measured, not the service's ceilings.
        format!(
            "[ledger]\ndurability = \"{durability}\"\n[shaping]\nin_flight = 1000\nper_minute = 1000000\n"
        ),
    )?;
    let mut command = Command::new(program);
    command
        .args(["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .arg("--upstream")
        .arg(format!("http://{echo}"))
        .arg("--state-dir")
        .arg(directory.join("state"))
        .arg("--config")
        .arg(&config)
        .env("BURSAR_API_KEY", KEY)
        .env_remove("BURSAR_API_KEY_FILE")
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let log = directory.join("bursar.log");
    let mut process = Process::start(&mut command, &log)?;
    let lines = first_lines(&mut process, 2)?;
    let told = || io::Error::other(fs::read_to_string(&log).unwrap_or_default());
    Ok(Running {
        address: address_after(&lines, "proxy listening on http://").map_err(|_| told())?,
        admin: Some(address_after(&lines, "admin listening on http://").map_err(|_| told())?),
        process: Some(process),
    })
}

/// The first lines of a process's output.
fn first_lines(process: &mut Process, count: usize) -> io::Result<Vec<String>> {
    let out = process.child().stdout.take();
    let out = out.ok_or_else(|| io::Error::other("no standard output"))?;
    BufReader::new(out).lines().take(count).collect()
}

fn address_after(lines: &[String], mark: &str) -> io::Result<SocketAddr> {
    let found = lines
        .iter()
        .find_map(|line| line.strip_prefix(mark)?.parse().ok());
    found.ok_or_else(|| io::Error::other(format!("no line with {mark:?} in {lines:?}")))
}

impl Running {
    /// How many answers the ledger has billed, when there is a ledger.
    pub async fn billed_answers(&self) -> io::Result<Option<u64>> {
        let Some(admin) = self.admin else {
            return Ok(None);
        };
        let mut connection = Connection::open(admin).await?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n");
        let metrics = connection.call(request.as_bytes()).await?.text;
        let billed_usd: f64 = metrics
            .lines()
            .filter(|line| line.starts_with("bursar_billed_usd_total"))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum();
        Ok(Some((billed_usd * 1e6).round() as u64 / BILLED))
    }

    pub async fn stop(self) -> io::Result<()> {
        match self.process {
            Some(process) => process.stop().await,
            None => Ok(()),
        }
    }
}
