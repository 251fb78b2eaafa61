//! The proxies that bursar is compared with, set up as plain as they come and fairly: two threads, kept
//! connections on both sides, nothing buffered, one header set.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{KEY, Started, accepts, free_address};
use crate::child::Process;

pub async fn start_nginx(
    program: &Path,
    far_end: SocketAddr,
    directory: &Path,
) -> io::Result<Started> {
    let address = free_address()?;
    let conf = directory.join("nginx.conf");
    fs::write(&conf, nginx_conf(far_end, address))?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(directory)
        .args(["-e", "error.log", "-c"])
        .arg(&conf);
    start(command, address, &directory.join("error.log"), directory).await
}

pub async fn start_haproxy(
    program: &Path,
    far_end: SocketAddr,
    directory: &Path,
) -> io::Result<Started> {
    let address = free_address()?;
    let conf = directory.join("haproxy.cfg");
    fs::write(&conf, haproxy_conf(far_end, address))?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&conf);
    start(command, address, &directory.join("proxy.log"), directory).await
}

pub async fn start_pass_through(
    program: &Path,
    far_end: SocketAddr,
    directory: &Path,
) -> io::Result<Started> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command
        .arg(address.to_string())
        .arg(far_end.to_string())
        .arg(format!("Bearer {KEY}"));
    start(command, address, &directory.join("proxy.log"), directory).await
}

/// `log`: where it says why it does not start.
async fn start(
    mut command: Command,
    address: SocketAddr,
    log: &Path,
    directory: &Path,
) -> io::Result<Started> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut process = Process::start(&mut command, &directory.join("proxy.log"))?;
    accepts(&mut process, address, log).await?;
    Ok(Started {
        process,
        address,
        ledger: None,
    })
}

fn nginx_conf(far_end: SocketAddr, listen: SocketAddr) -> String {
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        "{user} worker_processes 2; daemon off; pid nginx.pid; worker_rlimit_nofile 20000;
events {{ worker_connections 8192; }}
http {{
    access_log off; client_max_body_size 0;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_requests 1000000000; keepalive_timeout 90s;
    upstream far_end {{ server {far_end}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen {listen} backlog=1024;
        location / {{
            proxy_pass http://far_end; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_set_header Authorization \"Bearer {KEY}\";
            proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s;
        }}
    }}
}}
"
    )
}

fn haproxy_conf(far_end: SocketAddr, listen: SocketAddr) -> String {
    format!(
        "global
    nbthread 2
    maxconn 9000
defaults
    mode http
    option http-no-delay
    option http-keep-alive
    http-reuse always
    timeout connect 10s
    timeout client 600s
    timeout server 600s
    timeout http-keep-alive 90s
frontend load
    bind {listen} backlog 1024
    default_backend far_end
backend far_end
    http-request set-header Authorization \"Bearer {KEY}\"
    server far_end {far_end} pool-max-conn -1
"
    )
}
