//! What can be typed behind `bursar demo`.

use std::net::SocketAddr;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Exit after the story instead of serving on
    #[arg(long)]
    pub once: bool,
    /// Play one bad day twice, without and with bursar, and print the two bills
    #[arg(long)]
    pub compare: bool,
    /// With --compare: print one JSON object
    #[arg(long, requires = "compare")]
    pub json: bool,
    /// Address for apps, IP:PORT [default: a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Seed of the sandbox's models; the same seed gives the same answers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
