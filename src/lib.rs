pub mod money;
pub mod clock;
pub mod protocol;
pub mod config;
pub mod ledger;
pub mod telemetry;
pub mod proxy;
