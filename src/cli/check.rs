//! `bursar check`: reads configuration and key as `run` would, and prints what they come to. Whether port, service and
//! disk do their part is for `bursar doctor` to say.
//!
//! Promise: starts nothing and changes nothing; every mistake at once, exit code 78; what it prints
//! is a configuration file with every value in it, the place of the key, and no secret. Root finds the key that the
//! system service is given, where nothing names another.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::ConfigArgs;
use super::error::CliError;
use super::locate::{UNITS_KEY, with_units_key};
use super::output::{remark, say, say_document};
use crate::apps::{self, AppsError, Declared};
use crate::config::{Config, Env, KeyPlace};
use crate::proxy;
use crate::screen::shown;
use crate::server::{ServerError, itself};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// `bursar check --json`, of a configuration without a mistake.
#[derive(Serialize)]
struct CheckedConfiguration {
    /// `null`: no configuration file.
    file: Option<String>,
    /// `null`: it came in a variable.
    key_file: Option<String>,
    /// Every value, a member for each table.
    in_force: Map<String, Value>,
    warnings: Vec<String>,
}

pub fn check(args: &Args) -> Result<(), CliError> {
    let (env, units_key) = (Env::from_process(), Path::new(UNITS_KEY));
    let overrides = with_units_key(args.config.overrides(), &env, units_key);
    let key_place = Config::key_place(&overrides, &env);
    let config = Config::load(&overrides, &env).inspect_err(|_| {
        if key_place == Ok(KeyPlace::Nowhere) && units_key.exists() {
            remark(format_args!(
                "bursar: the key of the system service, {UNITS_KEY}, may be read by root: sudo bursar check"
            ));
        }
    })?;
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
    let unread =
        unread.map(|error| format!("the apps added at run time were not checked: {error}"));
    let warnings: Vec<String> = config.warnings.iter().cloned().chain(unread).collect();
    for warning in &warnings {
        remark(format_args!("bursar: warning: {warning}"));
    }
    match args.json {
        true => say_document(&CheckedConfiguration::new(&config, &key_place?, warnings)),
        false => say(effective(&config, &key_place?)),
    }
}

// === impl CheckedConfiguration ===

impl CheckedConfiguration {
    fn new(config: &Config, key_place: &KeyPlace, warnings: Vec<String>) -> Self {
        let path = |path: &Path| path.display().to_string();
        Self {
            file: config.path.as_deref().map(path),
            key_file: match key_place {
                KeyPlace::File(file) => Some(path(file)),
                KeyPlace::Variable | KeyPlace::Nowhere => None,
            },
            in_force: config.in_force_document(),
            warnings,
        }
    }
}

/// The configuration in force, as TOML.
fn effective(config: &Config, key_place: &KeyPlace) -> String {
    let from = match &config.path {
        Some(path) => format!("from {}", path.display()),
        None => "no configuration file".to_owned(),
    };
    let in_force = config.in_force();
    let key = match key_place {
        KeyPlace::File(path) if path == Path::new(UNITS_KEY) => {
            format!(
                "{UNITS_KEY}, as the system service has it (`bursar run` by hand: --api-key-file)"
            )
        }
        KeyPlace::File(path) => path.display().to_string(),
        KeyPlace::Variable => "BURSAR_API_KEY".to_owned(),
        KeyPlace::Nowhere => "nowhere".to_owned(),
    };
    let key = shown(&key);
    format!("# {from}\n# the key is from {key}, and is not shown\n{in_force}")
}

#[cfg(test)]
mod tests;
