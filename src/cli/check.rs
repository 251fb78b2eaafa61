//! `bursar check`: reads configuration and key as `run` would, and prints what they come to. Whether port, service and
//! disk do their part is for `bursar doctor` to say.
//!
//! Promise: starts nothing and changes nothing; every mistake at once, exit code 78; what it prints
//! is a configuration file with every value in it, and no secret.

use super::arguments::ConfigArgs;
use super::error::CliError;
use super::output::{remark, say};
use crate::apps::{self, AppsError, Declared};
use crate::config::{Config, Env};
use crate::proxy;
use crate::server::{ServerError, itself};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn check(args: &Args) -> Result<(), CliError> {
    let config = Config::load(&args.config.overrides(), &Env::from_process())?;
    proxy::authorities(&config).map_err(ServerError::from)?;
    let listening = [config.listen.proxy.clone(), config.listen.admin.clone()].concat();
    itself::check(&config.upstream.base_url, &listening).map_err(ServerError::from)?;
    let unread = match apps::read(&config.ledger.state_dir, &Declared::from(&config)) {
        Ok(apps) if config.listen.is_remote() && !apps.has_token() => {
            return Err(ServerError::NoAppCouldCall.into());
        }
        Ok(_) => None,
        // Perhaps only unreadable for the user of this command: the state directory is the daemon's alone.
        Err(AppsError::Ledger(error)) => Some(error),
        Err(error) => return Err(ServerError::from(error).into()),
    };
    say(effective(&config))?;
    for warning in &config.warnings {
        remark(format_args!("bursar: warning: {warning}"));
    }
    if let Some(error) = unread {
        remark(format_args!(
            "bursar: warning: the apps added at run time were not checked: {error}"
        ));
    }
    Ok(())
}

/// The configuration in force, as TOML.
fn effective(config: &Config) -> String {
    let from = match &config.path {
        Some(path) => format!("from {}", path.display()),
        None => "no configuration file".to_owned(),
    };
    let in_force = config.in_force();
    format!("# {from}\n# the key is there and is not shown\n{in_force}")
}

#[cfg(test)]
mod tests;
