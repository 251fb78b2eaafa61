//! `bursar doctor`: looks at everything that bursar stands on, and names for what is wrong the thing that mends it.
//!
//! Facts are gathered first (`facts`, from `ports`, `service` and `unit`), beside a running daemon or without one; each check
//! is a row of a table (`checks`) that judges them.
//!
//! Promise: it buys nothing, writes nothing and starts nothing; what does not apply is skipped and fails
//! nothing; exit code 0 only when no check fails. The only request to the service is a free GET.

mod checks;
mod facts;
mod ports;
mod service;
mod unit;

use std::path::PathBuf;

use serde::Serialize;

use self::checks::{CHECKS, CheckVerdict, DoctorCheck};
use self::facts::{DoctorSources, Facts};
use super::cells::counted;
use super::csv;
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_document};
use super::runtime::block_on;
use crate::config::Overrides;
use crate::screen::shown;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values with a header row
    #[arg(long)]
    csv: bool,
    /// Where no daemon runs: URL of the service [env: BURSAR_UPSTREAM]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Where no daemon runs: file with the organization's key [env: BURSAR_API_KEY_FILE, or the key in BURSAR_API_KEY]
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Where no daemon runs: address for apps; may be repeated
    #[arg(long, value_name = "ADDR")]
    listen: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
}

/// `bursar doctor --json`.
#[derive(Serialize)]
struct DoctorDocument {
    /// No check fails.
    passed: bool,
    checks: Vec<CheckDocument>,
}

#[derive(Serialize)]
struct CheckDocument {
    check: &'static str,
    /// What is wanted.
    what: &'static str,
    /// `pass`, `fail`, `skip`
    verdict: &'static str,
    found: String,
    /// Of what fails.
    remedy: Option<String>,
}

/// Those of `--csv`.
const COLUMNS: [&str; 5] = ["check", "what", "verdict", "found", "remedy"];

pub fn doctor(args: &Args) -> Result<(), CliError> {
    let asked = DoctorSources {
        overrides: Overrides {
            upstream: args.upstream.clone(),
            api_key_file: args.api_key_file.clone(),
            listen: args.listen.clone(),
            ..args.source.ledger.overrides()
        },
        source: &args.source,
    };
    let facts = block_on(Facts::gather(&asked))?;
    let report = DoctorDocument::of(&facts);
    match args {
        Args { json: true, .. } => say_document(&report)?,
        Args { csv: true, .. } => csv::say_documents(&COLUMNS, &report.checks)?,
        _ => say(report.text())?,
    }
    match report.passed {
        true => Ok(()),
        false => Err(CliError::Said),
    }
}

// === impl DoctorDocument ===

impl DoctorDocument {
    fn of(facts: &Facts) -> Self {
        let checks: Vec<CheckDocument> = CHECKS
            .iter()
            .map(|check| CheckDocument::of(check, facts))
            .collect();
        Self {
            passed: checks.iter().all(|row| row.verdict != CheckVerdict::FAIL),
            checks,
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = self.checks.iter().map(CheckDocument::line).collect();
        let count = |word| {
            let rows = self.checks.iter();
            rows.filter(|row| row.verdict == word).count()
        };
        let checks = counted(self.checks.len(), "check", "checks");
        lines.push(format!(
            "{checks}: {} passed, {} failed, {} skipped",
            count(CheckVerdict::PASS),
            count(CheckVerdict::FAIL),
            count(CheckVerdict::SKIP)
        ));
        lines.join("\n")
    }
}

// === impl CheckDocument ===

impl CheckDocument {
    fn of(check: &DoctorCheck, facts: &Facts) -> Self {
        let verdict = check.look(facts);
        let word = verdict.word();
        let (found, remedy) = match verdict {
            CheckVerdict::Pass(found) | CheckVerdict::Skip(found) => (found, None),
            CheckVerdict::Fail(found) => (found, Some(check.remedy.to_owned())),
            CheckVerdict::Treatable { found, remedy } => (found, Some(remedy)),
        };
        Self {
            check: check.name,
            what: check.what,
            verdict: word,
            found,
            remedy,
        }
    }

    /// One line, whatever was found.
    fn line(&self) -> String {
        let word = match self.verdict {
            CheckVerdict::FAIL => "FAIL",
            word => word,
        };
        let remedy = self.remedy.as_ref();
        let remedy = remedy.map_or_else(String::new, |remedy| format!(". Remedy: {remedy}"));
        shown(&format!("{word}  {:<17}{}{remedy}", self.check, self.found)).into_owned()
    }
}

#[cfg(test)]
mod tests;
