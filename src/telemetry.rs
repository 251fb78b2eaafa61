//! What the process reports about itself: log lines and metrics.
//!
//! Log lines go to standard error ([`log_lines`]), as text or as one JSON object a line; where that is systemd's
//! journal, with their priority and without a time ([`journal`]). Records of the `log` crate
//! (pingora, sled, rustls) are bridged into the same stream.
//!
//! Promise: only bursar's own lines follow `[log] level`. Lines of other crates are capped at `warn`
//! and reduced to the place they come from, whatever the level: at `debug` they print whole request heads
//! (measured), and some of their warnings may contain a header's value. A panic is logged with
//! its place and never with its message, which may hold bytes of a request.

pub mod exposition;
pub mod journal;
pub mod labels;
mod log_lines;
pub mod metrics;

use std::io;
use std::panic::{self, PanicHookInfo};

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_log::log::LevelFilter as BridgedLevel;
use tracing_log::{LogTracer, NormalizeEvent};
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry, fmt, reload};

use self::journal::{LogPlace, WithPriority};
use self::log_lines::LogLines;
use crate::config::{Log, LogFormat, LogLevel};

pub use self::log_lines::ACCESS;

/// Lines of this program: `bursar`, `bursar::…` and the sandbox.
const OWN_TARGETS: &str = "bursar";

/// The most verbose level of other crates.
const FOREIGN_LEVEL: LevelFilter = LevelFilter::WARN;

/// Logs that another crate wrote a line, and nothing that stands in it.
struct Foreign;

/// The running log, whose level can be changed. Dropped at a clean end, when all lines are written.
pub struct Logging {
    filter: reload::Handle<Targets, Registry>,
    lines: LogLines,
}

/// Logging could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("logging was started twice in one process")]
    Twice,
    #[error("the thread that writes the log cannot be started: {0}")]
    Thread(#[from] io::Error),
}

// === impl Logging ===

impl Logging {
    /// Starts logging for the whole process; once.
    pub fn start(log: Log, place: LogPlace) -> Result<Self, LoggingError> {
        let (filter, handle) = reload::Layer::new(targets(log.level));
        let written = LogLines::to(io::stderr())?;
        // With internal errors on, a closed standard error would panic the task that logs.
        let text = fmt::layer()
            .with_ansi(false)
            .log_internal_errors(false)
            .with_writer(written.clone());
        let lines: Box<dyn Layer<_> + Send + Sync> = match log.format {
            LogFormat::Json => {
                let json = text
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(false);
                match place {
                    LogPlace::Plain => json.boxed(),
                    LogPlace::Journal => json.without_time().map_event_format(WithPriority).boxed(),
                }
            }
            LogFormat::Text => match place {
                LogPlace::Plain => text.boxed(),
                LogPlace::Journal => text.without_time().map_event_format(WithPriority).boxed(),
            },
        };
        let subscriber = tracing_subscriber::registry()
            .with(filter)
            .with(lines.with_filter(filter_fn(is_own)))
            .with(Foreign);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| LoggingError::Twice)?;
        LogTracer::builder()
            .with_max_level(BridgedLevel::Warn)
            .init()
            .map_err(|_| LoggingError::Twice)?;
        Ok(Self {
            filter: handle,
            lines: written,
        })
    }

    /// Changes the level; the format stays until a restart.
    pub fn set_level(&self, level: LogLevel) {
        if self.filter.reload(targets(level)).is_err() {
            tracing::warn!("the log level could not be changed; it stays as it was");
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        self.lines.flush();
    }
}

/// What is let through at a level.
fn targets(level: LogLevel) -> Targets {
    let own = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new()
        .with_default(own.min(FOREIGN_LEVEL))
        .with_target(OWN_TARGETS, own)
}

/// `bursar`, and every crate or module whose name begins with it.
fn is_own(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OWN_TARGETS)
}

impl<S: Subscriber> Layer<S> for Foreign {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let bridged = event.normalized_metadata();
        let said = bridged.as_ref().unwrap_or_else(|| event.metadata());
        if is_own(said) {
            return;
        }
        let (by, line) = (said.target(), said.line());
        if *said.level() == Level::ERROR {
            tracing::error!(
                by,
                line,
                "a library reports an error; its words are not shown"
            );
        } else {
            tracing::warn!(by, line, "a library warns; its words are not shown");
        }
    }
}

/// From here on a panic is one log line with the place, and nothing else.
pub fn log_panics() {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string);
        let place = place.as_deref().unwrap_or("unknown");
        tracing::error!(place, "a task panicked; what it said is not shown");
    }));
}

#[cfg(test)]
mod tests;
