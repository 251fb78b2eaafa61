//! Points in time as people type and read them: a date, a time, `today`, `this month`, or how long ago. Inside the
//! program time is Unix milliseconds; the calendar begins and ends here.
//!
//! Promise: a date means midnight of the named time zone, so that "today" is the day the reader
//! lives in; a month, a week or a year means its beginning; a text that could mean two things is refused.

use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

/// A time that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    #[error(
        "{text:?} is no time: write today, yesterday, this or last hour, week, month or year, 2026-01-31, 2026-01, \
         2026-W05, 2026, 2026-01-31T08:00:00Z, or how long ago: 30m, 24h, 7d, 2w"
    )]
    Unknown { text: String },
    #[error("{name:?} is no time zone of this machine: write a name such as Europe/Berlin, or UTC")]
    Zone { name: String },
    #[error("{text:?} lies outside the calendar")]
    Range { text: String },
    #[error("the end ({until}) lies before the beginning ({since})")]
    Backwards { since: String, until: String },
}

/// Calendar days that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDays {
    /// Their dates, `2026-01-31`, oldest first.
    pub names: Vec<String>,
    /// The beginning of the first.
    pub since_ms: u64,
}

/// From the first instant on, up to and not including the second. Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub since_ms: u64,
    pub until_ms: u64,
}

/// The zone of that name, or this machine's.
pub fn zone(name: Option<&str>) -> Result<TimeZone, WhenError> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name).map_err(|_| WhenError::Zone {
            name: name.to_owned(),
        }),
    }
}

/// `since` to `until`; by default from today's midnight to now, including everything still to come.
pub fn range(
    since: Option<&str>,
    until: Option<&str>,
    now_ms: u64,
    zone: &TimeZone,
) -> Result<Range, WhenError> {
    let since_ms = instant(since.unwrap_or("today"), now_ms, zone)?;
    let until_ms = match until {
        None => u64::MAX,
        Some(text) => instant(text, now_ms, zone)?,
    };
    if until_ms < since_ms {
        return Err(WhenError::Backwards {
            since: since.unwrap_or("today").to_owned(),
            until: until.unwrap_or_default().to_owned(),
        });
    }
    Ok(Range { since_ms, until_ms })
}

/// One point in time, in Unix milliseconds. Before 1970 reads as 1970: the ledger is younger.
pub fn instant(text: &str, now_ms: u64, zone: &TimeZone) -> Result<u64, WhenError> {
    let out_of_range = || WhenError::Range {
        text: text.to_owned(),
    };
    let now = zoned(now_ms, zone).ok_or_else(out_of_range)?;
    let at = match text {
        "now" => Some(now.timestamp()),
        "today" => Some(midnight(now.date(), zone).ok_or_else(out_of_range)?),
        "yesterday" => {
            let date = now.date().yesterday().map_err(|_| out_of_range())?;
            Some(midnight(date, zone).ok_or_else(out_of_range)?)
        }
        _ => period(text, &now)
            .or_else(|| ago(text, &now))
            .or_else(|| date_or_time(text, zone)),
    };
    let at = at.ok_or_else(|| WhenError::Unknown {
        text: text.to_owned(),
    })?;
    Ok(u64::try_from(at.as_millisecond()).unwrap_or(0))
}

/// A time as the tables print it: `2026-01-31 08:00:00`, in the zone.
pub fn shown(at_ms: u64, zone: &TimeZone) -> String {
    zoned(at_ms, zone).map_or_else(
        || format!("{at_ms} ms"),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// The same without the year, for narrow tables: `01-31 08:00:00`.
pub fn shown_short(at_ms: u64, zone: &TimeZone) -> String {
    let shown = shown(at_ms, zone);
    match shown.split_once('-') {
        Some((_, rest)) => rest.to_owned(),
        None => shown,
    }
}

/// The beginning of the day that an instant lies in.
pub fn midnight_ms(at_ms: u64, zone: &TimeZone) -> Option<u64> {
    let midnight = midnight(zoned(at_ms, zone)?.date(), zone)?;
    u64::try_from(midnight.as_millisecond()).ok()
}

/// So many days, the last of which an instant lies in.
pub fn last_days(at_ms: u64, count: u16, zone: &TimeZone) -> Option<LastDays> {
    let last = zoned(at_ms, zone)?.date();
    let back = i32::from(count.saturating_sub(1));
    let dates: Option<Vec<Date>> = (0..=back)
        .rev()
        .map(|ago| last.checked_sub(ago.days()).ok())
        .collect();
    let dates = dates?;
    let since = midnight(*dates.first()?, zone)?;
    Some(LastDays {
        names: dates.iter().map(Date::to_string).collect(),
        since_ms: u64::try_from(since.as_millisecond()).unwrap_or(0),
    })
}

/// The first week of the year of weeks that an instant lies in, `2026-W01`. It may begin in December, and the
/// first days of January may lie in the year before.
pub fn first_week(at_ms: u64, zone: &TimeZone) -> Option<String> {
    let week = zoned(at_ms, zone)?.date().iso_week_date();
    Some(format!("{:04}-W01", week.year()))
}

/// A zone as people read it, `Europe/Berlin (UTC+01:00)`: its difference may be another at another time.
pub fn zone_shown(at_ms: u64, zone: &TimeZone) -> String {
    let name = zone.iana_name().unwrap_or("local time");
    zoned(at_ms, zone).map_or_else(
        || name.to_owned(),
        |at| format!("{name} (UTC{})", at.strftime("%:z")),
    )
}

/// As RFC 3339 in UTC, for JSON: `2026-01-31T08:00:00.123Z`.
pub fn rfc3339(at_ms: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(format!("{at:.3}"))
}

/// The beginnings of the month that an instant lies in, and of the next one.
pub fn month_ms(at_ms: u64, zone: &TimeZone) -> Option<(u64, u64)> {
    let first = zoned(at_ms, zone)?.date().first_of_month();
    let next = first.checked_add(1.month()).ok()?;
    let ms = |date| u64::try_from(midnight(date, zone)?.as_millisecond()).ok();
    Some((ms(first)?, ms(next)?))
}

fn zoned(at_ms: u64, zone: &TimeZone) -> Option<Zoned> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.to_zoned(zone.clone()))
}

fn midnight(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    // Where summer time skips midnight, the day begins at the first instant that exists.
    let start = date.to_zoned(zone.clone()).ok()?.start_of_day().ok()?;
    Some(start.timestamp())
}

/// The beginning of `this month`, `last-week`, `2026-01`, `2026-W05`, `2026`.
fn period(text: &str, now: &Zoned) -> Option<Timestamp> {
    let today = now.date();
    let (is_last, unit) = match text.split_once([' ', '-']) {
        Some(("this", unit)) => (false, unit),
        Some(("last", unit)) => (true, unit),
        _ => return midnight(first_day(text)?, now.time_zone()),
    };
    let back = i64::from(is_last);
    let date = match unit {
        "hour" => {
            let hour = now.with().minute(0).second(0).subsec_nanosecond(0).build();
            let hour = hour.ok()?.checked_sub(back.hours()).ok()?;
            return Some(hour.timestamp());
        }
        "day" => today.checked_sub(back.days()),
        "week" => {
            let since_monday = i32::from(today.weekday().to_monday_zero_offset());
            let monday = today.checked_sub(since_monday.days());
            monday.ok()?.checked_sub(back.weeks())
        }
        "month" => today.first_of_month().checked_sub(back.months()),
        "year" => today.first_of_year().checked_sub(back.years()),
        _ => return None,
    };
    midnight(date.ok()?, now.time_zone())
}

/// Of `2026-01`, `2026-W05`, `2026`.
fn first_day(text: &str) -> Option<Date> {
    let (year, part) = match text.split_once('-') {
        Some((year, part)) => (year, Some(part)),
        None => (text, None),
    };
    let number = |digits: &str, length: usize| {
        let is_number = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<i16>().ok()).flatten()
    };
    let year = number(year, 4)?;
    let Some(part) = part else {
        return Date::new(year, 1, 1).ok();
    };
    if let Some(week) = part.strip_prefix('W') {
        let week = i8::try_from(number(week, 2)?).ok()?;
        let monday = ISOWeekDate::new(year, week, Weekday::Monday);
        return Some(monday.ok()?.date());
    }
    Date::new(year, i8::try_from(number(part, 2)?).ok()?, 1).ok()
}

/// `30m`, `24h`, `7d`: so long before now. Days are calendar days.
fn ago(text: &str, now: &Zoned) -> Option<Timestamp> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: i64 = digits.parse().ok()?;
    let before = match unit {
        's' => now.checked_sub(SignedDuration::from_secs(count)),
        'm' => now.checked_sub(SignedDuration::from_secs(count.checked_mul(60)?)),
        'h' => now.checked_sub(SignedDuration::from_secs(count.checked_mul(3600)?)),
        'd' => now.checked_sub(i32::try_from(count).ok()?.days()),
        'w' => now.checked_sub(i32::try_from(count).ok()?.checked_mul(7)?.days()),
        _ => return None,
    };
    before.ok().map(|before| before.timestamp())
}

fn date_or_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if text.contains(['T', ' ', ':']) {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        return Some(civil.to_zoned(zone.clone()).ok()?.timestamp());
    }
    midnight(text.parse().ok()?, zone)
}

#[cfg(test)]
mod tests;
