//! The configuration file as it was written: every known key, its type checked, its line kept.
//! Read by hand from the parsed TOML and not derived, so that one run names *all* mistakes, each
//! with its line and the nearest known key.
//!
//! Promise: a key that has no effect is never accepted; an error is one line and shows no value
//! that may be a secret.

pub(super) mod known;
mod table;

use toml::de::DeTable;

use self::table::{Lines, Table};
pub use super::errors::At;
use super::errors::{ConfigErrors, Place};

/// The file, key by key. `None`: not given.
#[derive(Debug, Default)]
pub struct ConfigFile {
    pub service_name: Option<At<String>>,
    pub upstream: UpstreamTable,
    pub listen: ListenTable,
    pub retry: RetryTable,
    pub shaping: ShapingTable,
    pub ledger: LedgerTable,
    pub streams: StreamsTable,
    pub caps: CapsTable,
    pub apps: Vec<AppTable>,
    pub reconcile: ReconcileTable,
    pub models: ModelsTable,
    pub errors: ErrorsTable,
    pub log: LogTable,
}

#[derive(Debug, Default)]
pub struct UpstreamTable {
    pub base_url: Option<At<String>>,
    pub api_key_file: Option<At<String>>,
    pub ca_file: Option<At<String>>,
    pub connect_timeout_s: Option<At<i64>>,
    pub read_timeout_s: Option<At<i64>>,
    pub extra_routes: Option<Vec<At<String>>>,
}

#[derive(Debug, Default)]
pub struct ListenTable {
    pub proxy: Option<At<Vec<At<String>>>>,
    pub admin: Option<At<Vec<At<String>>>>,
    pub anonymous: Option<At<bool>>,
    pub allow_remote: Option<At<bool>>,
    pub allowed_hosts: Option<Vec<At<String>>>,
    pub allowed_origins: Option<Vec<At<String>>>,
    pub shutdown_timeout_s: Option<At<i64>>,
}

#[derive(Debug, Default)]
pub struct RetryTable {
    pub attempts: Option<At<i64>>,
    pub base_ms: Option<At<i64>>,
    pub cap_ms: Option<At<i64>>,
    pub adopt: Option<At<String>>,
    pub adopt_window_s: Option<At<i64>>,
}

#[derive(Debug, Default)]
pub struct ShapingTable {
    pub in_flight: Option<At<i64>>,
    pub per_minute: Option<At<i64>>,
    pub queue_max: Option<At<i64>>,
    pub queue_wait_s: Option<At<i64>>,
}

#[derive(Debug, Default)]
pub struct LedgerTable {
    pub state_dir: Option<At<String>>,
    pub durability: Option<At<String>>,
    pub on_failure: Option<At<String>>,
    pub retention_days: Option<At<i64>>,
}

#[derive(Debug, Default)]
pub struct StreamsTable {
    pub on_disconnect: Option<At<String>>,
    pub drain_timeout_s: Option<At<i64>>,
    pub agent_receipts: Option<At<String>>,
}

/// The caps of the three windows, as both tables have them.
#[derive(Debug, Default)]
pub struct LimitsKeys {
    pub hour: Option<At<i64>>,
    pub day: Option<At<i64>>,
    pub month: Option<At<i64>>,
}

#[derive(Debug, Default)]
pub struct CapsTable {
    pub time_zone: Option<At<String>>,
    pub limits: LimitsKeys,
    pub request_floor_micro_usd: Option<At<i64>>,
}

#[derive(Debug)]
pub struct AppTable {
    /// The line of its `[[app]]`.
    pub place: Place,
    pub name: Option<At<String>>,
    pub token_file: Option<At<String>>,
    pub uids: Option<Vec<At<i64>>>,
    pub limits: LimitsKeys,
    pub request_floor_micro_usd: Option<At<i64>>,
    pub on_disconnect: Option<At<String>>,
    pub agent_receipts: Option<At<String>>,
    pub on_clarification: Option<At<String>>,
}

#[derive(Debug, Default)]
pub struct ReconcileTable {
    pub poll_eval_runs: Option<At<bool>>,
    pub window_days: Option<At<i64>>,
    pub spend_field: Option<At<String>>,
}

#[derive(Debug, Default)]
pub struct ModelsTable {
    /// Asked-for model and the value in its stead, in the order of the names.
    pub aliases: Vec<(String, At<String>)>,
}

#[derive(Debug, Default)]
pub struct ErrorsTable {
    pub add_error_object: Option<At<bool>>,
}

#[derive(Debug, Default)]
pub struct LogTable {
    pub format: Option<At<String>>,
    pub level: Option<At<String>>,
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Reads the text of a file. What is wrong with it goes to `errors`; what is right is read all
    /// the same, so that checks of values can add theirs. `None` when it is no TOML: whatever was
    /// found in it would be guessed.
    pub fn read(text: &str, errors: &mut ConfigErrors) -> Option<Self> {
        let lines = Lines::of(text);
        let (root, syntax_errors) = DeTable::parse_recoverable(text);
        if !syntax_errors.is_empty() {
            for error in syntax_errors {
                let line = error.span().map_or(1, |span| lines.line_of(&span));
                let message = error.message().replace('\n', "; ");
                errors.push(&Place::of_line(line), format!("not valid TOML: {message}"));
            }
            return None;
        }
        let mut root = Table::new("", root.get_ref(), &lines, errors);
        let service_name = root.string("service_name");
        let mut file = Self {
            service_name,
            ..Self::default()
        };
        root.table("upstream", |table| file.upstream = upstream(table));
        root.table("listen", |table| file.listen = listen(table));
        root.table("retry", |table| file.retry = retry(table));
        root.table("shaping", |table| file.shaping = shaping(table));
        root.table("ledger", |table| file.ledger = ledger(table));
        root.table("streams", |table| file.streams = streams(table));
        root.table("caps", |table| file.caps = caps(table));
        root.tables("app", |table, place| file.apps.push(app(table, place)));
        root.table("reconcile", |table| file.reconcile = reconcile(table));
        root.table("models", |table| {
            file.models.aliases = table.string_map("aliases");
        });
        root.table("errors", |table| {
            file.errors.add_error_object = table.boolean("add_error_object");
        });
        root.table("log", |table| file.log = log(table));
        root.refuse_the_rest();
        Some(file)
    }
}

fn upstream(table: &mut Table<'_>) -> UpstreamTable {
    UpstreamTable {
        base_url: table.string("base_url"),
        api_key_file: table.string("api_key_file"),
        ca_file: table.string("ca_file"),
        connect_timeout_s: table.integer("connect_timeout_s"),
        read_timeout_s: table.integer("read_timeout_s"),
        extra_routes: table.strings("extra_routes").map(|list| list.value),
    }
}

fn listen(table: &mut Table<'_>) -> ListenTable {
    ListenTable {
        proxy: table.strings("proxy"),
        admin: table.strings("admin"),
        anonymous: table.boolean("anonymous"),
        allow_remote: table.boolean("allow_remote"),
        allowed_hosts: table.strings("allowed_hosts").map(|list| list.value),
        allowed_origins: table.strings("allowed_origins").map(|list| list.value),
        shutdown_timeout_s: table.integer("shutdown_timeout_s"),
    }
}

fn retry(table: &mut Table<'_>) -> RetryTable {
    RetryTable {
        attempts: table.integer("attempts"),
        base_ms: table.integer("base_ms"),
        cap_ms: table.integer("cap_ms"),
        adopt: table.string("adopt"),
        adopt_window_s: table.integer("adopt_window_s"),
    }
}

fn shaping(table: &mut Table<'_>) -> ShapingTable {
    ShapingTable {
        in_flight: table.integer("in_flight"),
        per_minute: table.integer("per_minute"),
        queue_max: table.integer("queue_max"),
        queue_wait_s: table.integer("queue_wait_s"),
    }
}

fn ledger(table: &mut Table<'_>) -> LedgerTable {
    LedgerTable {
        state_dir: table.string("state_dir"),
        durability: table.string("durability"),
        on_failure: table.string("on_failure"),
        retention_days: table.integer("retention_days"),
    }
}

fn streams(table: &mut Table<'_>) -> StreamsTable {
    StreamsTable {
        on_disconnect: table.string("on_disconnect"),
        drain_timeout_s: table.integer("drain_timeout_s"),
        agent_receipts: table.string("agent_receipts"),
    }
}

fn caps(table: &mut Table<'_>) -> CapsTable {
    CapsTable {
        time_zone: table.string("time_zone"),
        limits: LimitsKeys {
            hour: table.integer("hour_micro_usd"),
            day: table.integer("day_micro_usd"),
            month: table.integer("month_micro_usd"),
        },
        request_floor_micro_usd: table.integer("request_floor_micro_usd"),
    }
}

fn app(table: &mut Table<'_>, place: Place) -> AppTable {
    AppTable {
        place,
        name: table.string("name"),
        token_file: table.string("token_file"),
        uids: table.integers("uids"),
        limits: LimitsKeys {
            hour: table.integer("cap_hour_micro_usd"),
            day: table.integer("cap_day_micro_usd"),
            month: table.integer("cap_month_micro_usd"),
        },
        request_floor_micro_usd: table.integer("request_floor_micro_usd"),
        on_disconnect: table.string("on_disconnect"),
        agent_receipts: table.string("agent_receipts"),
        on_clarification: table.string("on_clarification"),
    }
}

fn reconcile(table: &mut Table<'_>) -> ReconcileTable {
    ReconcileTable {
        poll_eval_runs: table.boolean("poll_eval_runs"),
        window_days: table.integer("window_days"),
        spend_field: table.string("spend_field"),
    }
}

fn log(table: &mut Table<'_>) -> LogTable {
    LogTable {
        format: table.string("format"),
        level: table.string("level"),
    }
}

#[cfg(test)]
mod tests;
