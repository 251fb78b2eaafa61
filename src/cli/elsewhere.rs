//! `bursar demo` and `bursar sandbox` of a program that was built without the sandbox: the package `bursar-sandbox` and
//! the release tarball hold a program that has it, and that one does the work.
//!
//! Promise: this process becomes that program, so signals, input and exit code are its own.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::error::CliError;

/// From the folder of this program: where the tarball has it, and the package.
const PLACES: [&str; 2] = [
    "bursar-with-sandbox",
    "../libexec/bursar/bursar-with-sandbox",
];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its options: see --help where the package is installed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Returns only when there is no such program.
pub fn become_it(command: &str, args: Args) -> CliError {
    let own = env::current_exe().and_then(std::fs::canonicalize);
    let folder = own.ok().and_then(|own| Some(own.parent()?.to_owned()));
    let mut places = PLACES
        .iter()
        .filter_map(|place| Some(folder.as_ref()?.join(place)));
    let Some(program) = places.find(|program| program.exists()) else {
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
