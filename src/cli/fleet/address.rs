//! Which database a command of the fleet is about: that of a file with its URL, else the configured one.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::cli::arguments::zone;
use crate::cli::error::CliError;
use crate::cli::locate::LedgerArgs;
use crate::config::FleetTable;
use crate::fleet::{Address, Fleet, Operator, UrlFile};

/// A clock that is further off is worth a word.
pub const SKEW_MS_MAX: u64 = 5_000;

#[derive(Clone, Debug, clap::Args)]
pub struct FleetArgs {
    /// File with the URL of the fleet's database, for an operator or a reader [default: [fleet] url_file]
    #[arg(long, value_name = "FILE")]
    url_file: Option<PathBuf>,
    #[command(flatten)]
    ledger: LedgerArgs,
}

/// Flags of a command about this machine's ledger that can be asked of the whole fleet.
#[derive(Clone, Debug, clap::Args)]
pub struct WholeFleetArgs {
    /// Over all machines of the fleet, from its database
    #[arg(long)]
    fleet: bool,
    /// File with the URL of the fleet's database [default: [fleet] url_file]
    #[arg(long, value_name = "FILE", requires = "fleet")]
    url_file: Option<PathBuf>,
}

// === impl WholeFleetArgs ===

impl WholeFleetArgs {
    /// `None`: it is about this machine's ledger.
    pub fn asked(&self, ledger: &LedgerArgs) -> Option<FleetArgs> {
        self.fleet.then(|| FleetArgs {
            url_file: self.url_file.clone(),
            ledger: ledger.clone(),
        })
    }
}

// === impl FleetArgs ===

impl FleetArgs {
    /// The zone that was named, else that of the caps, as for what one ledger is asked.
    pub fn zone(&self, named: Option<&str>) -> Result<TimeZone, CliError> {
        let place = self.ledger.whereabouts();
        let of_caps = place.map(|place| place.caps.time_zone).ok();
        match of_caps.filter(|zone| named.is_none() && zone.iana_name().is_some()) {
            Some(zone) => Ok(zone),
            None => zone(named),
        }
    }

    /// The same by its name, which the database knows it by.
    pub fn zone_name(&self, named: Option<&str>) -> Result<String, CliError> {
        let zone = self.zone(named)?;
        zone.iana_name().map(str::to_owned).ok_or_else(|| {
            CliError::usage("this machine's time zone has no name; give one with --time-zone")
        })
    }

    pub async fn operator(&self) -> Result<Operator, CliError> {
        let place = self.ledger.whereabouts();
        let (path, table) = match (&self.url_file, place) {
            // A machine without a bursar has no configuration that would say more.
            (Some(path), place) => (
                path.clone(),
                place.map(|place| *place.fleet).unwrap_or_default(),
            ),
            (None, place) => {
                let table = *place?.fleet;
                let path = table.url_file.clone().ok_or_else(|| {
                    CliError::usage(
                        "which database: name a file with its URL by --url-file FILE, or set [fleet] url_file",
                    )
                })?;
                (path, table)
            }
        };
        let fleet = connected(&read(&path)?.url, &table).await?;
        let operator = Operator(fleet);
        operator.0.greet().await.map_err(failed)?;
        Ok(operator)
    }
}

/// The file of a URL.
pub fn read(path: &Path) -> Result<UrlFile, CliError> {
    UrlFile::read(path).map_err(|why| CliError::Failed(format!("{}: {why}", path.display())))
}

pub async fn connected(url: &str, table: &FleetTable) -> Result<Fleet, CliError> {
    let address = Address::parse(url, table.insecure, table.ca_file.clone());
    let address = address.map_err(|error| CliError::usage(format_args!("the URL: {error}")))?;
    Fleet::connect(&address).await.map_err(failed)
}

pub fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Failed(error.to_string())
}
