//! `bursar version`: what a report of a fault names. `bursar --version` prints the first line's beginning alone.
//!
//! Promise: nothing is asked and nothing is read; what the build did not know is left out, and `null` in JSON.

use super::arguments::{Form, FormArgs};
use super::csv;
use super::error::CliError;
use super::output::{say, say_document};
use crate::release::{RELEASE, Release};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub fn version(args: &Args) -> Result<(), CliError> {
    match args.form.form() {
        Form::Json => say_document(&RELEASE),
        Form::Csv => csv::say_members(&RELEASE),
        Form::Text(_) => say(text(&RELEASE)),
    }
}

fn text(release: &Release) -> String {
    let commit = release.commit.map(|commit| format!(", commit {commit}"));
    let rustc = release.rustc.map(|rustc| format!(", rustc {rustc}"));
    let sandbox = match release.sandbox {
        true => "with the sandbox",
        false => "without the sandbox (package bursar-sandbox)",
    };
    format!(
        "bursar {}{}{}, {sandbox}",
        release.version,
        commit.unwrap_or_default(),
        rustc.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
