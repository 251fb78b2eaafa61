//! `bursar run`: the daemon. Prints where it listens once everything is served, then only logs.
//!
//! Promise: the addresses stand on standard output one a line, `proxy listening on http://…` and
//! `admin listening on http://…`; scripts and tests wait for them. Behind them stands what apps are given.

use super::arguments::ConfigArgs;
use super::error::CliError;
use super::output::say;
use crate::admin::runs::base_url;
use crate::config::{Config, Env, ListenAddr};
use crate::server::listen::Given;
use crate::server::{self, Listening};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: &Args) -> Result<(), CliError> {
    let overrides = args.config.overrides();
    let env = Env::from_process();
    let given = Given::take(&env)?;
    let config = Config::load(&overrides, &env)?;
    Ok(server::run(config, overrides, env, given, announce)?)
}

/// A daemon whose standard output is closed serves all the same.
pub fn announce(listening: &Listening) {
    for address in &listening.proxy {
        let _ = say(format_args!("proxy listening on {}", url(address)));
    }
    for address in &listening.admin {
        let _ = say(format_args!("admin listening on {}", url(address)));
    }
    if let Some(base_url) = base_url(&listening.proxy) {
        let _ = say(format_args!(
            "base URL of apps: {base_url}/v1 (of agents: {base_url}/agent/v1)"
        ));
    }
}

/// `http://127.0.0.1:8327`, `unix:/path`.
pub fn url(address: &ListenAddr) -> String {
    match address {
        ListenAddr::Tcp(address) => format!("http://{address}"),
        ListenAddr::Unix(_) => address.to_string(),
    }
}
