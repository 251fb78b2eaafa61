//! `bursar check`: reads configuration and key as `run` would, and prints what they come to.
//!
//! Promise: starts nothing and changes nothing; every mistake at once, exit code 78; what it prints
//! is a configuration file with every value in it, and no secret.

use std::time::Duration;

use super::arguments::ConfigArgs;
use super::error::CliError;
use super::output::{remark, say};
use crate::apps::{self, AppsError, Declared};
use crate::config::{Aliases, App, Caps, Config, Env, Limits};
use crate::proxy;
use crate::server::{ServerError, itself};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn check(args: &Args) -> Result<(), CliError> {
    let config = Config::load(&args.config.overrides(), &Env::from_process())?;
    proxy::check_trust(&config).map_err(ServerError::from)?;
    let listening = [config.listen.proxy.clone(), config.listen.admin.clone()].concat();
    itself::check(&config.upstream.base_url, &listening).map_err(ServerError::from)?;
    let unread = match apps::read(&config.ledger.state_dir, &Declared::from(&config)) {
        Ok(apps) if config.listen.is_remote() && !apps.has_token() => {
            return Err(ServerError::NobodyMayCall.into());
        }
        Ok(_) => None,
        // Perhaps only for whoever checks: the state directory is the daemon's alone.
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
    let mut text = Text::default();
    match &config.path {
        Some(path) => text.line(format!("# from {}", path.display())),
        None => text.line("# no configuration file".to_owned()),
    }
    text.line("# the key is there and is not shown".to_owned());
    text.string("service_name", &service_name(config));

    let upstream = &config.upstream;
    text.table("upstream");
    text.string("base_url", &upstream.base_url.to_string());
    if let Some(path) = &upstream.ca_file {
        text.string("ca_file", &path.to_string_lossy());
    }
    text.seconds("connect_timeout_s", upstream.connect_timeout);
    text.seconds("read_timeout_s", upstream.read_timeout);
    let routes = upstream.extra_routes.iter();
    text.strings(
        "extra_routes",
        routes.map(|route| format!("{} {}", route.method, route.path)),
    );

    let listen = &config.listen;
    text.table("listen");
    text.strings("proxy", listen.proxy.iter().map(ToString::to_string));
    text.strings("admin", listen.admin.iter().map(ToString::to_string));
    if let Some(anonymous) = listen.anonymous {
        text.plain("anonymous", anonymous);
    }
    text.plain("allow_remote", listen.allow_remote);
    text.strings("allowed_hosts", listen.allowed_hosts.iter().cloned());
    text.strings("allowed_origins", listen.allowed_origins.iter().cloned());
    text.seconds("shutdown_timeout_s", listen.shutdown_timeout);

    text.table("retry");
    text.plain("attempts", config.retry.attempts);
    text.plain("base_ms", config.retry.base.as_millis());
    text.plain("cap_ms", config.retry.cap.as_millis());
    text.string("adopt", config.retry.adopt.as_str());
    text.seconds("adopt_window_s", config.retry.adopt_window);

    let shaping = &config.shaping;
    text.table("shaping");
    text.plain("in_flight", shaping.in_flight.unwrap_or(0));
    text.plain("per_minute", shaping.per_minute.unwrap_or(0));
    text.plain("queue_max", shaping.queue_max);
    text.seconds("queue_wait_s", shaping.queue_wait);

    text.table("ledger");
    text.string("state_dir", &config.ledger.state_dir.to_string_lossy());
    text.string("durability", config.ledger.durability.as_str());
    text.string("on_failure", config.ledger.on_failure.as_str());
    let retention = config.ledger.retention.unwrap_or_default();
    text.plain("retention_days", retention.as_secs() / (24 * 60 * 60));

    text.table("streams");
    text.string("on_disconnect", config.streams.on_disconnect.as_str());
    text.seconds("drain_timeout_s", config.streams.drain_timeout);
    text.string("agent_receipts", config.streams.agent_receipts.as_str());

    text.caps(&config.caps);

    text.table("reconcile");
    text.plain("poll_eval_runs", config.reconcile.poll_eval_runs);
    text.plain("window_days", config.reconcile.window_days);
    text.string("spend_field", &config.reconcile.spend_field);

    text.table("models");
    text.aliases(&config.models.aliases);

    text.table("errors");
    text.plain("add_error_object", config.errors.add_error_object);

    text.table("log");
    text.string("format", config.log.format.as_str());
    text.string("level", config.log.level.as_str());

    for app in &config.apps {
        text.app(app);
    }
    text.0
}

/// Header names are made from it, and it is read back from one of them.
fn service_name(config: &Config) -> String {
    let header = config.names.billed.as_str();
    header
        .strip_prefix("x-")
        .and_then(|rest| rest.strip_suffix("-billed"))
        .unwrap_or(header)
        .to_owned()
}

/// TOML as it grows.
#[derive(Default)]
struct Text(String);

// === impl Text ===

impl Text {
    fn line(&mut self, line: String) {
        self.0.push_str(&line);
        self.0.push('\n');
    }

    fn table(&mut self, name: &str) {
        self.line(format!("\n[{name}]"));
    }

    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(format!("{key} = {value}"));
    }

    fn string(&mut self, key: &str, value: &str) {
        self.plain(key, quoted(value));
    }

    fn strings(&mut self, key: &str, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.map(|value| quoted(&value)).collect();
        self.plain(key, format_args!("[{}]", values.join(", ")));
    }

    fn seconds(&mut self, key: &str, value: Duration) {
        self.plain(key, value.as_secs());
    }

    fn caps(&mut self, caps: &Caps) {
        self.table("caps");
        if let Some(zone) = caps.time_zone.iana_name() {
            self.string("time_zone", zone);
        }
        self.limits("", caps.all);
        self.plain("request_floor_micro_usd", caps.request_floor.get());
    }

    fn app(&mut self, app: &App) {
        self.line("\n[[app]]".to_owned());
        self.string("name", &app.name);
        if let Some(path) = &app.token_file {
            self.string("token_file", &path.to_string_lossy());
        }
        let uids: Vec<String> = app.uids.iter().map(ToString::to_string).collect();
        self.plain("uids", format_args!("[{}]", uids.join(", ")));
        self.limits("cap_", app.limits);
        if let Some(floor) = app.request_floor {
            self.plain("request_floor_micro_usd", floor.get());
        }
        if let Some(on_disconnect) = app.on_disconnect {
            self.string("on_disconnect", on_disconnect.as_str());
        }
        if let Some(agent_receipts) = app.agent_receipts {
            self.string("agent_receipts", agent_receipts.as_str());
        }
        self.string("on_clarification", app.on_clarification.as_str());
    }

    fn limits(&mut self, prefix: &str, limits: Limits) {
        let windows = [
            ("hour", limits.hour),
            ("day", limits.day),
            ("month", limits.month),
        ];
        for (window, cap) in windows {
            if let Some(cap) = cap {
                self.plain(&format!("{prefix}{window}_micro_usd"), cap.get());
            }
        }
    }

    fn aliases(&mut self, aliases: &Aliases) {
        let pairs: Vec<String> = aliases
            .iter()
            .map(|(asked, sent)| format!("{} = {}", quoted(asked), quoted(sent)))
            .collect();
        match pairs.is_empty() {
            true => self.plain("aliases", "{}"),
            false => self.plain("aliases", format_args!("{{ {} }}", pairs.join(", "))),
        }
    }
}

/// A string as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests;
