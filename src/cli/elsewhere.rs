//! `bursar demo` and `bursar sandbox` of a program that was built without the sandbox: the package `bursar-sandbox`
//! puts a program that has it beside this one, and that one does the work.
//!
//! Promise: this process becomes that program, so signals, input and exit code are its own.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::error::CliError;

/// Below the folder that holds `bin`.
const BESIDE: &str = "libexec/bursar/bursar-with-sandbox";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its options: see --help where the package is installed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Returns only when there is no such program.
pub fn become_it(command: &str, args: Args) -> CliError {
    let own = env::current_exe().and_then(std::fs::canonicalize);
    let program = own
        .ok()
        .and_then(|own| Some(own.parent()?.parent()?.join(BESIDE)));
    let Some(program) = program.filter(|program| program.exists()) else {
        return CliError::Failed(format!(
            "`bursar {command}` needs the sandbox, which this program was built without: install the package \
             bursar-sandbox (`apt install ./bursar-sandbox_*.deb`), or build with `cargo install --path . --locked`"
        ));
    };
    let why = Command::new(&program)
        .arg(command)
        .args(args.arguments)
        .exec();
    CliError::Failed(format!("{} cannot be run: {why}", program.display()))
}
