//! `[retry]`, `[shaping]`, `[streams]`, `[models]`, `[errors]` and `[log]`: how requests are treated, and
//! what is logged.

use std::collections::BTreeMap;
use std::time::Duration;

use super::reader::Reader;
use super::value::{Aliases, model_name, speech_format};
use super::written::quoted;
use crate::protocol::closed_set;

/// `[retry]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Most attempts of one request, the first among them. 1: never repeated.
    pub attempts: u32,
    pub base: Duration,
    pub cap: Duration,
    pub adopt: Adopt,
    pub adopt_window: Duration,
}

closed_set! {
    /// Which requests take over the key of an equal undelivered one.
    Adopt {
        Always => "always",
        /// Only those an SDK marks as a retry (`x-stainless-retry-count`).
        Marked => "marked",
        Never => "never",
    }
}

/// `[shaping]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// Most requests at the service at once. `None`: no limit of bursar's.
    pub in_flight: Option<usize>,
    /// Most requests in any minute. `None`: no limit of bursar's.
    pub per_minute: Option<usize>,
    /// Most requests that wait.
    pub queue_max: usize,
    /// The longest wait.
    pub queue_wait: Duration,
}

/// `[streams]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub on_disconnect: OnDisconnect,
    pub drain_timeout: Duration,
    pub agent_receipts: AgentReceipts,
    pub translated: TranslatedStreams,
    /// Silence of the service after which an app is sent a comment. `None`: never.
    pub keepalive: Option<Duration>,
}

closed_set! {
    /// What happens to a stream whose app has left.
    OnDisconnect {
        /// It is read on for its receipt.
        Drain => "drain",
        /// It is given up; its entry is in doubt.
        Cancel => "cancel",
    }
}

closed_set! {
    /// What is known of the price of an agent turn that the app asked for as a stream.
    AgentReceipts {
        /// The stream passes as it is, and carries no amount.
        Unreported => "unreported",
        /// The turn is asked for whole, so that it carries its amount, and given as a stream made here.
        Exact => "exact",
    }
}

closed_set! {
    /// How an app is given a stream in another dialect than the service's.
    TranslatedStreams {
        /// The turn is asked for whole, and its price is known before the first event.
        Whole => "whole",
        /// As the service's stream comes, where the dialect can be given so.
        Live => "live",
    }
}

/// `[models]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models {
    pub aliases: Aliases,
    pub list: ModelList,
    /// Routes in other dialects are translated to chat completions, and OpenAI's form of speech to the service's.
    pub translate: bool,
    /// The service's voices by the names that apps give in OpenAI's form.
    pub voices: BTreeMap<String, String>,
    /// What the service's speech comes in, in OpenAI's words.
    pub speech_formats: Vec<String>,
}

closed_set! {
    /// What the list of models has.
    ModelList {
        /// The service's models.
        Service => "service",
        /// The same, and the aliases.
        Aliases => "aliases",
    }
}

/// `[errors]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors {
    pub add_error_object: bool,
}

/// `[log]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
    /// What the service says of a request that it refuses is kept in log and ledger.
    pub service_detail: bool,
}

closed_set! {
    /// How a log line is written.
    LogFormat {
        Json => "json",
        Text => "text",
    }
}

closed_set! {
    /// The least severe lines that are logged.
    LogLevel {
        Error => "error",
        Warn => "warn",
        Info => "info",
        Debug => "debug",
        Trace => "trace",
    }
}

// === impl Retry ===

impl Retry {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("retry");
        let attempts = reader.number("attempts");
        let base_ms = reader.number("base_ms");
        let cap_ms = reader.number("cap_ms");
        let place = reader.place("cap_ms").or_else(|| reader.place("base_ms"));
        if let Some(place) = place.filter(|_| cap_ms < base_ms) {
            let message = format!("cap_ms ({cap_ms}) must not be below base_ms ({base_ms})");
            reader.refuse(&place, message);
        }
        let adopt = reader.word("adopt", Adopt::ALL).unwrap_or(Adopt::Always);
        let adopt_window = reader.seconds("adopt_window_s");
        Self {
            attempts: u32::try_from(attempts).unwrap_or(1),
            base: Duration::from_millis(base_ms),
            cap: Duration::from_millis(cap_ms),
            adopt,
            adopt_window,
        }
    }
}

// === impl Shaping ===

impl Shaping {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("shaping");
        let in_flight = reader.number("in_flight");
        let per_minute = reader.number("per_minute");
        let queue_max = reader.number("queue_max");
        let queue_wait = reader.seconds("queue_wait_s");
        // 0 is no limit.
        let ceiling = |number: u64| usize::try_from(number).ok().filter(|limit| *limit > 0);
        Self {
            in_flight: ceiling(in_flight),
            per_minute: ceiling(per_minute),
            queue_max: usize::try_from(queue_max).unwrap_or(usize::MAX),
            queue_wait,
        }
    }
}

// === impl Streams ===

impl Streams {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("streams");
        Self {
            on_disconnect: reader
                .word("on_disconnect", OnDisconnect::ALL)
                .unwrap_or(OnDisconnect::Drain),
            drain_timeout: reader.seconds("drain_timeout_s"),
            agent_receipts: reader
                .word("agent_receipts", AgentReceipts::ALL)
                .unwrap_or(AgentReceipts::Unreported),
            translated: reader
                .word("translated", TranslatedStreams::ALL)
                .unwrap_or(TranslatedStreams::Whole),
            // 0 is never.
            keepalive: Some(reader.seconds("keepalive_s")).filter(|after| !after.is_zero()),
        }
    }
}

// === impl Models ===

impl Models {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("models");
        let given = reader.string_map("aliases");
        let mut aliases = Aliases::default();
        for (asked, sent) in given {
            if let Err(why) = aliases.add(asked, sent.value) {
                reader.refuse(&sent.place, why);
            }
        }
        reader.set("aliases", pairs(aliases.iter()));
        Self {
            aliases,
            list: reader
                .word("list", ModelList::ALL)
                .unwrap_or(ModelList::Service),
            translate: reader.flag("translate").unwrap_or(true),
            voices: voices(reader),
            speech_formats: reader.each("speech_formats", speech_format),
        }
    }
}

fn voices(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let mut voices = BTreeMap::new();
    for (asked, sent) in reader.string_map("voices") {
        match model_name(&asked, &sent.value) {
            Ok(()) => drop(voices.insert(asked, sent.value)),
            Err(why) => reader.refuse(&sent.place, why),
        }
    }
    let given = voices.iter().map(|(asked, sent)| (&**asked, &**sent));
    reader.set("voices", pairs(given));
    voices
}

/// A table of strings, as TOML.
fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(asked, sent)| format!("{} = {}", quoted(asked), quoted(sent)))
        .collect();
    match pairs.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", pairs.join(", ")),
    }
}

// === impl Errors ===

impl Errors {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("errors");
        Self {
            add_error_object: reader.flag("add_error_object").unwrap_or(true),
        }
    }
}

// === impl Log ===

impl Log {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("log");
        Self {
            format: reader
                .word("format", LogFormat::ALL)
                .unwrap_or(LogFormat::Text),
            level: reader
                .word("level", LogLevel::ALL)
                .unwrap_or(LogLevel::Info),
            service_detail: reader.flag("service_detail").unwrap_or(true),
        }
    }
}
