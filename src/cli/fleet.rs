//! `bursar fleet`: the books of several machines in one PostgreSQL, for the person who sets them up and looks after
//! them.
//!
//! Promise: no URL and no code of the fleet is an argument or in an output, but for the code that an invitation prints
//! once; what a login may not do, the database refuses.

mod address;
mod caps;
mod config_lines;
mod join;
mod leased;
mod leave;
mod ledgers;
mod orders;
pub mod reconcile;
pub mod spend;

pub use self::address::{FleetArgs, WholeFleetArgs};
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
    /// Let one more ledger in: print a code that works once, within 24 hours
    Invite(ledgers::InviteArgs),
    /// Put this machine's ledger into a fleet: asks for the database's URL and the code
    Join(join::JoinArgs),
    /// Show each ledger of the fleet: machine, version, what is not there yet, losses
    Status(ledgers::StatusArgs),
    /// Refuse all later calls of a ledger; what it shipped stays counted
    Revoke(ledgers::RevokeArgs),
    /// Take this machine's ledger out of its fleet, after shipping the rest. The system service ships it with its next stop; any other daemon is stopped before
    Leave(leave::LeaveArgs),
    /// Stop an app, or all apps, on every machine
    Freeze(orders::OrderArgs),
    /// End a freeze of the fleet
    Thaw(orders::OrderArgs),
    /// Show the caps that machines share and what each has leased, or set one
    Caps(caps::CapsArgs),
    /// Lease money of shared caps again, though not every machine was heard since the database was restored
    Resume(caps::ResumeArgs),
}

pub fn fleet(args: &Args) -> Result<(), CliError> {
    match &args.command {
        FleetCommand::Schema => say(schema::SQL),
        FleetCommand::Invite(args) => ledgers::invite(args),
        FleetCommand::Join(args) => join::join(args),
        FleetCommand::Status(args) => ledgers::status(args),
        FleetCommand::Revoke(args) => ledgers::revoke(args),
        FleetCommand::Leave(args) => leave::leave(args),
        FleetCommand::Freeze(args) => orders::freeze(args),
        FleetCommand::Thaw(args) => orders::thaw(args),
        FleetCommand::Caps(args) => caps::caps(args),
        FleetCommand::Resume(args) => caps::resume(args),
    }
}
