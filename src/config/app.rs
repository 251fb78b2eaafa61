//! The apps that may spend, and how much: `[[app]]` and `[caps]`.
//!
//! Promise: an app's name is fit for a metric label, a header and a file; an amount that is not
//! given is `None` and never zero, for a cap of zero is a cap. No name, user or token stands for two apps.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderName;
use jiff::tz::TimeZone;

use super::errors::{At, Location};
use super::key::{ApiKey, KeyFile};
use super::notify::Share;
use super::reader::{Need, Reader};
use super::requests::{AgentReceipts, OnDisconnect, TranslatedStreams};
use super::token::{TOKEN_CHARS_MIN, TokenForm, TokenHash};
use super::written::{list, quoted};
use crate::calendar;
use crate::money::MicroUsd;
use crate::protocol::closed_set;
use crate::protocol::tags::{TagKey, is_value};

/// The app of callers that name none: any process of this machine, as long as no app is declared.
pub const DEFAULT_APP: &str = "default";

/// All apps together, in commands, caps and metrics. No app can have it.
pub const ALL_APPS: &str = "all";

/// The label of everything that has no name of its own. No app can have it.
pub const OTHER_APP: &str = "other";

/// The names that no app can have, and what each means. [`DEFAULT_APP`] is none of them: it is an app.
const RESERVED: [(&str, &str); 2] = [
    (
        ALL_APPS,
        "means all apps together in commands, caps and metrics",
    ),
    (OTHER_APP, "is what metrics call apps that they do not name"),
];

/// Longest name of an app, in characters.
const NAME_CHARS_MAX: usize = 32;

/// Most declared apps: each is a label of every metric that has apps.
const APPS_MAX: usize = 64;

/// One app: `[[app]]`, or one that was added at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub name: Arc<str>,
    /// The file with the app's token. `None`: it is known by its user, or by nothing.
    pub token_file: Option<PathBuf>,
    /// Of what stands in `token_file`.
    pub token: Option<TokenHash>,
    /// The users that are this app on a Unix socket.
    pub uids: Vec<u32>,
    pub limits: Limits,
    /// `None`: as `[caps]`.
    pub request_floor: Option<MicroUsd>,
    /// `None`: as `[streams]`.
    pub on_disconnect: Option<OnDisconnect>,
    /// `None`: as `[streams]`.
    pub agent_receipts: Option<AgentReceipts>,
    /// `None`: as `[streams]`.
    pub translated: Option<TranslatedStreams>,
    /// Whether answers have what they cost in `usage`. `None`: on translated routes only.
    pub cost_in_usage: Option<bool>,
    pub on_clarification: OnClarification,
    /// A header with the session's id, beside those that are known of programs.
    pub session_header: Option<HeaderName>,
    pub session: SessionLimits,
    /// A header with the user that a request is for.
    pub user_header: Option<HeaderName>,
    /// Keys that `X-Bursar-Tags` may have.
    pub tags: Vec<TagKey>,
    /// Of which keys which values are shown in metrics.
    pub tag_metrics: Vec<TagValue>,
}

/// The most that one session of an app may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionLimits {
    /// `None`: no cap.
    pub cap: Option<MicroUsd>,
    /// `None`: any number.
    pub requests: Option<u64>,
}

/// A tag with a value: `customer=acme`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagValue {
    pub key: TagKey,
    pub value: String,
}

/// The most that may be spent in each calendar window. `None`: no cap; zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub hour: Option<MicroUsd>,
    pub day: Option<MicroUsd>,
    pub month: Option<MicroUsd>,
}

/// `[caps]`
#[derive(Clone, PartialEq, Eq)]
pub struct CapsTable {
    /// Hours, days and months begin by its clock.
    pub time_zone: TimeZone,
    /// All apps together.
    pub all: Limits,
    /// The least that a request is expected to cost.
    pub request_floor: MicroUsd,
    /// At which shares of any cap bursar warns, the smallest first.
    pub warn_at: Vec<Share>,
}

closed_set! {
    /// What becomes of an answer 200 that is a question back.
    OnClarification {
        /// The app gets it as it is.
        Pass => "pass",
        /// The app gets an error instead.
        Error => "error",
    }
}

/// A name that no app can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "the name of an app is 1 to {NAME_CHARS_MAX} characters a-z, 0-9, dot, underscore or hyphen, the first a letter or digit"
    )]
    Form,
    #[error("{word:?} {meaning}; take another name")]
    Reserved {
        word: &'static str,
        meaning: &'static str,
    },
}

// === impl App ===

impl App {
    /// An app of that name, with defaults for the rest.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            token_file: None,
            token: None,
            uids: Vec::new(),
            limits: Limits::default(),
            request_floor: None,
            on_disconnect: None,
            agent_receipts: None,
            translated: None,
            cost_in_usage: None,
            on_clarification: OnClarification::Pass,
            session_header: None,
            session: SessionLimits::default(),
            user_header: None,
            tags: Vec::new(),
            tag_metrics: Vec::new(),
        }
    }

    /// The app of the next `[[app]]`, which begins at `place`; `None` without a name that differs from
    /// those `before` it.
    fn read(reader: &mut Reader<'_>, place: &Location, before: &[Self]) -> Option<Self> {
        let name = name(reader, place, before);
        let token_file = reader.path("token_file");
        let token = match (&token_file, reader.need()) {
            (Some(file), Need::Everything | Need::EverythingWith(_)) => token(reader, file, before),
            // A command that only reads may have no right to the tokens.
            _ => None,
        };
        let token_place = token_file.as_ref().map(|file| file.place.clone());
        let token_file = token_file.map(|file| file.value);
        let uids = uids(reader, before);
        let windows = [
            "cap_hour_micro_usd",
            "cap_day_micro_usd",
            "cap_month_micro_usd",
        ];
        let limits = Limits::read(reader, windows);
        let request_floor = reader.amount("request_floor_micro_usd");
        let on_disconnect = reader.word("on_disconnect", OnDisconnect::ALL);
        let agent_receipts = reader.word("agent_receipts", AgentReceipts::ALL);
        let translated = reader.word("translated", TranslatedStreams::ALL);
        let cost_in_usage = reader.flag("cost_in_usage");
        let on_clarification = reader.word("on_clarification", OnClarification::ALL);
        let on_clarification = on_clarification.unwrap_or(OnClarification::Pass);
        reader.set("on_clarification", quoted(on_clarification.as_str()));
        let session_header = header(reader, "session_header");
        let session = SessionLimits {
            cap: reader.amount("session_cap_micro_usd"),
            requests: reader.count_if_given("session_requests_max"),
        };
        let user_header = header(reader, "user_header");
        let (tags, tag_metrics) = tags(reader);
        let name = name?;
        if name == DEFAULT_APP && (token_file.is_some() || !uids.is_empty()) {
            reader.refuse(
                &token_place.unwrap_or_else(|| place.clone()),
                format!(
                    "{DEFAULT_APP:?} is the app of callers that show no token; it takes neither token_file nor uids"
                ),
            );
        }
        if name != DEFAULT_APP && token_file.is_none() && uids.is_empty() {
            let place = reader.shown(place);
            reader.warn(format!(
                "{place}: the app {name:?} has neither token_file nor uids: no request can show that it is \
                 this app, and `bursar exec --app {name}` alone spends as it"
            ));
        }
        Some(Self {
            token_file,
            token,
            uids,
            limits,
            request_floor,
            on_disconnect,
            agent_receipts,
            translated,
            cost_in_usage,
            on_clarification,
            session_header,
            session,
            user_header,
            tags,
            tag_metrics,
            ..Self::new(name)
        })
    }

    /// Whether an app may have this name.
    pub fn check_name(name: &str) -> Result<(), NameError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let mut bytes = name.bytes();
        let fits = name.len() <= NAME_CHARS_MAX
            && bytes.next().is_some_and(is_plain)
            && bytes.all(|byte| is_plain(byte) || b"._-".contains(&byte));
        if !fits {
            return Err(NameError::Form);
        }
        match RESERVED.into_iter().find(|(word, _)| *word == name) {
            Some((word, meaning)) => Err(NameError::Reserved { word, meaning }),
            None => Ok(()),
        }
    }
}

// === impl SessionLimits ===

impl SessionLimits {
    /// Nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// === impl TagValue ===

impl fmt::Display for TagValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

// === impl Limits ===

impl Limits {
    /// `keys`: of the windows, the shortest first. A cap that a longer window's never lets reach is a mistake.
    fn read(reader: &mut Reader<'_>, keys: [&'static str; 3]) -> Self {
        let [hour, day, month] = keys.map(|key| reader.amount(key));
        let limits = Self { hour, day, month };
        let of = |window: &str| {
            let mut windows = limits.windows().into_iter().zip(keys);
            windows.find_map(|((name, cap), key)| (name == window).then_some((key, cap?)))
        };
        for (short, long) in limits.unreachable() {
            if let (Some((key, less)), Some((longer_key, more))) = (of(short), of(long))
                && let Some(place) = reader.place(key)
            {
                reader.refuse(
                    &place,
                    format!(
                        "the cap of the {short}, {less}, is above that of the {long}, {more}: it would never be reached; see {longer_key}"
                    ),
                );
            }
        }
        limits
    }

    /// No window has a cap.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each window with its name, the shortest first.
    pub fn windows(&self) -> [(&'static str, Option<MicroUsd>); 3] {
        [
            ("hour", self.hour),
            ("day", self.day),
            ("month", self.month),
        ]
    }

    /// Windows whose cap is above that of the next longer one that has any: it would never be
    /// reached.
    pub fn unreachable(&self) -> Vec<(&'static str, &'static str)> {
        let given: Vec<_> = self
            .windows()
            .into_iter()
            .filter_map(|(window, cap)| Some((window, cap?)))
            .collect();
        let pairs = given.iter().zip(given.iter().skip(1));
        pairs
            .filter(|((_, less), (_, more))| less > more)
            .map(|((short, _), (long, _))| (*short, *long))
            .collect()
    }
}

// === impl CapsTable ===

impl CapsTable {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("caps");
        let zone = reader.text("time_zone");
        let time_zone = match calendar::zone(zone.as_ref().map(|given| given.value.as_str())) {
            Ok(time_zone) => time_zone,
            Err(why) => {
                if let Some(given) = zone {
                    reader.refuse(&given.place, why.to_string());
                }
                TimeZone::UTC
            }
        };
        if let Some(name) = time_zone.iana_name() {
            reader.set("time_zone", quoted(name));
        }
        let all = Limits::read(
            reader,
            ["hour_micro_usd", "day_micro_usd", "month_micro_usd"],
        );
        let request_floor = reader.number("request_floor_micro_usd");
        let warn_at = Share::read_all(reader);
        Self {
            warn_at,
            time_zone,
            all,
            request_floor: MicroUsd::new(request_floor),
        }
    }
}

impl fmt::Debug for CapsTable {
    /// The zone by its name: its table of transitions is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caps")
            .field("time_zone", &self.time_zone.iana_name())
            .field("all", &self.all)
            .field("request_floor", &self.request_floor)
            .field("warn_at", &self.warn_at)
            .finish()
    }
}

/// Every declared app, in the order of the file, and where it stands: `config.toml:12`.
pub fn read_apps(reader: &mut Reader<'_>) -> (Vec<App>, Vec<String>) {
    let (mut apps, mut places) = (Vec::new(), Vec::new());
    for entry in 0..reader.count("app") {
        let place = reader.enter_entry("app", entry);
        let app = App::read(reader, &place, &apps);
        if entry == APPS_MAX {
            reader.refuse(&place, format!("[[app]]: at most {APPS_MAX} apps"));
        }
        if let Some(app) = app {
            apps.push(app);
            places.push(reader.shown(&place));
        }
    }
    (apps, places)
}

/// The hash of the token in a file, which is read under the rules of the key's.
fn token(reader: &mut Reader<'_>, file: &At<PathBuf>, before: &[App]) -> Option<TokenHash> {
    let At { value: path, place } = file;
    if reader.has_refused(place) {
        return None;
    }
    let read = ApiKey::from_file(path, KeyFile::at(path, reader.env()));
    let text = match &read {
        Ok(token) => token.secret(),
        Err(why) => {
            reader.refuse(place, format!("not a token: {why}"));
            return None;
        }
    };
    if text.len() < TOKEN_CHARS_MIN {
        reader.refuse(
            place,
            format!(
                "the token in {} is shorter than {TOKEN_CHARS_MIN} characters and could be guessed; `openssl rand -hex 32` makes one",
                path.display()
            ),
        );
        return None;
    }
    if TokenForm::of(text) == TokenForm::Mistyped {
        reader.refuse(
            place,
            format!(
                "the token in {} is mistyped: its checksum does not match",
                path.display()
            ),
        );
        return None;
    }
    let hash = TokenHash::of(text);
    if let Some(other) = before.iter().find(|app| app.token == Some(hash)) {
        let name = &other.name;
        reader.refuse(place, format!("the app {name:?} has the same token"));
        return None;
    }
    Some(hash)
}

fn name(reader: &mut Reader<'_>, table: &Location, before: &[App]) -> Option<String> {
    let given = reader.text("name");
    let Some(At { value, place }) = given else {
        if !reader.has_refused_key("name") {
            reader.refuse(table, "[[app]] has no name");
        }
        return None;
    };
    reader.set("name", quoted(&value));
    if let Err(why) = App::check_name(&value) {
        reader.refuse(&place, format!("{value:?}: {why}"));
        return None;
    }
    if before.iter().any(|app| *app.name == *value) {
        reader.refuse(&place, format!("there is an app {value:?} already"));
        return None;
    }
    Some(value)
}

/// Headers that mean something to the service or to bursar: none of them is for an app's own accounts.
const TAKEN_HEADERS: [&str; 9] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "transfer-encoding",
    "x-bursar-tags",
];

/// Most keys of tags of an app.
const TAG_KEYS_MAX: usize = 8;

/// Most values of a tag that are shown in metrics.
const TAG_VALUES_MAX: usize = 16;

fn header(reader: &mut Reader<'_>, key: &str) -> Option<HeaderName> {
    let At { value, place } = reader.text(key)?;
    match HeaderName::try_from(&value) {
        Ok(name) if TAKEN_HEADERS.contains(&name.as_str()) => {
            reader.refuse(&place, format!("the header {name} means something else"));
            None
        }
        Ok(name) => {
            reader.set(key, quoted(name.as_str()));
            Some(name)
        }
        Err(_) => {
            reader.refuse(&place, format!("{value:?} is no name of a header"));
            None
        }
    }
}

/// The keys that are declared, and the values that metrics show. A key with such a value is declared by it.
fn tags(reader: &mut Reader<'_>) -> (Vec<TagKey>, Vec<TagValue>) {
    let parse = |text: &str| {
        let key = text.parse::<TagKey>();
        key.map_err(|why| format!("{text:?}: {why}"))
    };
    let mut keys = reader.each("tags", parse);
    let place = reader.place("tags").unwrap_or_default();
    for (at, key) in keys.iter().enumerate() {
        if keys.iter().take(at).any(|earlier| earlier == key) {
            reader.refuse(&place, format!("the key {key} stands twice"));
        }
    }
    let parse = |text: &str| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
        let key = parse(key)?;
        if !is_value(value) || value.contains(',') {
            return Err(format!("{text:?} has no value that a tag can have"));
        }
        let value = value.to_owned();
        Ok(TagValue { key, value })
    };
    let values = reader.each("tag_metrics", parse);
    for listed in &values {
        if !keys.contains(&listed.key) {
            keys.push(listed.key);
        }
    }
    let place = reader.place("tag_metrics").unwrap_or(place);
    if keys.len() > TAG_KEYS_MAX {
        reader.refuse(&place, format!("at most {TAG_KEYS_MAX} keys of an app"));
    }
    for key in &keys {
        let listed = values.iter().filter(|listed| listed.key == *key);
        if listed.count() > TAG_VALUES_MAX {
            reader.refuse(&place, format!("at most {TAG_VALUES_MAX} values of {key}"));
        }
    }
    (keys, values)
}

fn uids(reader: &mut Reader<'_>, before: &[App]) -> Vec<u32> {
    let given = reader.integers("uids");
    let mut uids = Vec::new();
    for At { value, place } in given {
        let Some(uid) = u32::try_from(value).ok().filter(|uid| *uid != u32::MAX) else {
            reader.refuse(&place, format!("{value} is no user id"));
            continue;
        };
        if let Some(other) = before.iter().find(|app| app.uids.contains(&uid)) {
            let name = &other.name;
            reader.refuse(
                &place,
                format!("the user {uid} is the app {name:?} already"),
            );
        } else if uids.contains(&uid) {
            reader.refuse(&place, format!("the user {uid} stands twice"));
        } else {
            uids.push(uid);
        }
    }
    reader.set("uids", list(uids.iter().map(ToString::to_string)));
    uids
}

#[cfg(test)]
mod tests;
