//! `[notify]` and `[caps] warn_at`: at which shares of a cap bursar warns, and how.
//!
//! Promise: a share is a whole number of ten-thousandths, so that no float is held against money; an address is https,
//! or this machine itself, and its path, which often is a secret, stands in no text of this type.

use std::fmt;

use super::reader::Reader;
use super::value::{is_loopback_name, parse_host, split_port};
use super::written::{list, quoted};

/// A part of a cap, in ten-thousandths: 1 to 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

/// `[notify]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notify {
    /// `None`: a line in the log is all.
    pub way: Option<NotifyWay>,
}

/// How a warning is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyWay {
    Url(NotifyUrl),
    /// A program and its arguments; never empty.
    Command(Vec<String>),
}

/// Where a JSON object is posted to.
#[derive(Clone, PartialEq, Eq)]
pub struct NotifyUrl {
    /// Without it the host is a loopback one.
    pub tls: bool,
    /// Lower-case DNS name or IP address, without brackets.
    pub host: String,
    pub port: u16,
    /// Path and query; it begins with a slash.
    target: String,
}

/// Most shares at which bursar warns.
const SHARES_MAX: usize = 8;

/// Most words of a command, and the longest of them, in bytes.
const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 4096;

/// Longest path with its query, in bytes.
const TARGET_BYTES_MAX: usize = 2048;

// === impl Share ===

impl Share {
    const WHOLE: u16 = 10_000;
    /// All of it.
    pub const FULL: Self = Self(Self::WHOLE);

    /// Of a decimal such as `0.8`: above 0, at most 1, four digits behind the point at most.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let part = part.trim_end_matches('0');
        if !is_number(part) || part.len() > 4 {
            return None;
        }
        let whole = match whole {
            "0" => 0,
            "1" => Self::WHOLE,
            _ => return None,
        };
        let part: u16 = format!("{part:0<4}").parse().ok()?;
        let share = whole.checked_add(part)?;
        (1..=Self::WHOLE).contains(&share).then_some(Self(share))
    }

    pub const fn ten_thousandths(self) -> u16 {
        self.0
    }

    /// Whether so much of a limit is this share or more. Of a limit of nothing there are no shares.
    pub fn is_reached(self, counted: u128, limit: u64) -> bool {
        let whole = counted.saturating_mul(u128::from(Self::WHOLE));
        limit > 0 && whole >= u128::from(limit) * u128::from(self.0)
    }

    /// `80`, `99.5`
    pub fn percent(self) -> String {
        let (whole, part) = (self.0 / 100, self.0 % 100);
        let text = format!("{whole}.{part:02}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Every share of `[caps] warn_at`, the smallest first.
    pub(super) fn read_all(reader: &mut Reader<'_>) -> Vec<Self> {
        const KEY: &str = "warn_at";
        let mut shares = Vec::new();
        for given in reader.decimals(KEY) {
            match Self::parse(&given.value) {
                Some(share) if !shares.contains(&share) => shares.push(share),
                Some(share) => {
                    reader.refuse(&given.place, format!("{share} stands twice"));
                }
                None => {
                    let value = &given.value;
                    let wanted = "takes shares of a cap above 0, at most 1, such as 0.8";
                    reader.refuse(&given.place, format!("{wanted}, not {value}"));
                }
            }
        }
        if shares.len() > SHARES_MAX
            && let Some(place) = reader.place(KEY)
        {
            reader.refuse(&place, format!("takes at most {SHARES_MAX} shares"));
        }
        shares.sort_unstable();
        reader.set(KEY, list(shares.iter().map(ToString::to_string)));
        shares
    }
}

/// `0.8`
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / Self::WHOLE, self.0 % Self::WHOLE);
        let text = format!("{whole}.{part:04}");
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

// === impl Notify ===

impl Notify {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        reader.enter("notify");
        let url = reader.text("url");
        let command = reader.strings("command");
        // A value of another type is reported already.
        let is_refused = reader.has_refused_key("command");
        let command_place = reader.place("command").filter(|_| !is_refused);
        if let (Some(url), Some(_)) = (&url, &command_place) {
            reader.refuse(&url.place, "takes no command beside it: one way is enough");
        }
        let of_url = url.and_then(|given| match NotifyUrl::parse(&given.value) {
            Ok(url) => {
                reader.set("url", quoted(&url.to_string()));
                Some(NotifyWay::Url(url))
            }
            Err(why) => {
                reader.refuse(&given.place, why);
                None
            }
        });
        let words: Vec<String> = command.value.into_iter().map(|word| word.value).collect();
        let of_command = command_place.and_then(|place| match check_command(&words) {
            Ok(()) => {
                reader.set("command", list(words.iter().map(|word| quoted(word))));
                Some(NotifyWay::Command(words))
            }
            Err(why) => {
                reader.refuse(&place, why);
                None
            }
        });
        Self {
            way: of_url.or(of_command),
        }
    }
}

fn check_command(words: &[String]) -> Result<(), String> {
    let Some(program) = words.first() else {
        return Err("is empty; leave the key out instead".to_owned());
    };
    if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
        return Err(format!(
            "begins with {program:?}; write the program's path from the root, or a name without a slash"
        ));
    }
    let is_fit = |word: &String| word.len() <= WORD_BYTES_MAX && !word.contains('\0');
    if words.len() > WORDS_MAX || !words.iter().all(is_fit) {
        return Err(format!(
            "takes at most {WORDS_MAX} words of at most {WORD_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

// === impl NotifyWay ===

/// Without what may be secret.
impl fmt::Display for NotifyWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => url.fmt(f),
            Self::Command(words) => f.write_str(words.first().map_or("", String::as_str)),
        }
    }
}

// === impl NotifyUrl ===

impl NotifyUrl {
    /// No message repeats the text: its path is often all that keeps others out.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("is not a URL; write https://HOST/PATH")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("is neither https nor http".to_owned()),
        };
        let (authority, target) = match rest.find(['/', '?']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err("holds a user name or password, which is not sent".to_owned());
        }
        let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || target.contains('#') || target.len() > TARGET_BYTES_MAX {
            return Err(format!(
                "has a path with blanks, a fragment, or more than {TARGET_BYTES_MAX} bytes"
            ));
        }
        let (host, port) = split_port(authority)?;
        let host = parse_host(host)?;
        if !tls && !is_loopback_name(&host) {
            return Err(
                "would pass other machines unencrypted; plain http is for loopback hosts only, write https"
                    .to_owned(),
            );
        }
        Ok(Self {
            tls,
            host,
            port: port.unwrap_or(if tls { 443 } else { 80 }),
            target: match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/{target}"),
            },
        })
    }

    /// Path and query, for the request itself.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        let default_port = if self.tls { 443 } else { 80 };
        match self.port == default_port {
            true => host,
            false => format!("{host}:{}", self.port),
        }
    }
}

/// `https://hooks.example.com/…`
impl fmt::Display for NotifyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let rest = if self.target == "/" { "" } else { "/…" };
        write!(f, "{scheme}://{}{rest}", self.authority())
    }
}

impl fmt::Debug for NotifyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
