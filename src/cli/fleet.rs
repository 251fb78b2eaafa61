//! `bursar fleet`: what an operator needs to set a fleet up.

use super::error::CliError;
use super::output::say;
use crate::fleet::schema;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, clap::Subcommand)]
enum FleetCommand {
    /// Print the SQL that sets a fleet's database up, or upgrades it: bursar fleet schema | psql -d DATABASE
    Schema,
}

pub fn fleet(args: &Args) -> Result<(), CliError> {
    match args.command {
        FleetCommand::Schema => say(schema::SQL),
    }
}
