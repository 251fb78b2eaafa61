//! What a package puts beside the program: completions for a shell, and a man page for each command.
//!
//! Promise: both are made from the command line itself, so they name what there is.

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use super::error::CliError;
use super::output::say;

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell; such as: bursar completions bash > ~/.local/share/bash-completion/completions/bursar
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Directory for a page of each command; without it the page of bursar itself is printed
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn completions(args: &CompletionsArgs, mut line: Command) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "bursar", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}

pub fn man(args: &ManArgs, line: Command) -> Result<(), CliError> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(line).render(&mut page);
        rendered.map_err(|why| CliError::Failed(format!("the page cannot be made: {why}")))?;
        return say(String::from_utf8_lossy(&page).trim_end());
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| pages(line, folder));
    written.map_err(|why| CliError::Failed(format!("{}: {why}", folder.display())))
}

fn pages(line: Command, folder: &std::path::Path) -> io::Result<()> {
    clap_mangen::generate_to(line, folder)
}
