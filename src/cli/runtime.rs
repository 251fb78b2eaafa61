//! The runtimes of commands: one thread for a command that asks and prints, all cores for one that serves.

use super::error::CliError;

/// Runs the future of a command that only asks and prints.
pub fn block_on<T>(command: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("the runtime could not be started: {error}")))?
        .block_on(command)
}

/// Runs the future of a command that serves.
#[cfg(feature = "sandbox")]
pub fn block_on_all_cores<T>(
    command: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("the runtime could not be started: {error}")))?
        .block_on(command)
}
