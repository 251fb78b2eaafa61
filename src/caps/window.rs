//! Calendar windows: the hour, day or month of a time zone that a moment lies in.
//!
//! Promise: the windows of one kind cover time without a gap and without an overlap, also where the
//! clock is set: a day may have 23 or 25 hours, and where summer time is half an hour, an hour half of
//! one.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::protocol::closed_set;

closed_set! {
    /// How long a window is.
    Period {
        Hour => "hour",
        Day => "day",
        Month => "month",
    }
}

/// From the first instant on, up to and not including the second. Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub since_ms: u64,
    pub until_ms: u64,
}

const HOUR_MS: i64 = 60 * 60 * 1000;

// === impl Window ===

impl Window {
    /// Outside the calendar there is one window, without an end.
    const EVER: Self = Self {
        since_ms: 0,
        until_ms: u64::MAX,
    };

    pub fn of(period: Period, at_ms: u64, zone: &TimeZone) -> Self {
        Self::find(period, at_ms, zone)
            .filter(|window| window.holds(at_ms))
            .unwrap_or(Self::EVER)
    }

    pub const fn holds(&self, at_ms: u64) -> bool {
        self.since_ms <= at_ms && at_ms < self.until_ms
    }

    fn find(period: Period, at_ms: u64, zone: &TimeZone) -> Option<Self> {
        let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
        let date = zone.to_datetime(at).date();
        match period {
            Period::Hour => hour(at, zone),
            Period::Day => Self::between(date, date.tomorrow().ok()?, zone),
            Period::Month => {
                let next = date.last_of_month().tomorrow().ok()?;
                Self::between(date.first_of_month(), next, zone)
            }
        }
    }

    fn between(first: Date, next: Date, zone: &TimeZone) -> Option<Self> {
        Self::new(midnight_ms(first, zone)?, midnight_ms(next, zone)?)
    }

    fn new(since_ms: i64, until_ms: i64) -> Option<Self> {
        Some(Self {
            since_ms: u64::try_from(since_ms.max(0)).ok()?,
            until_ms: u64::try_from(until_ms).ok()?,
        })
    }
}

/// Where summer time skips midnight, the day begins at the first instant that exists.
fn midnight_ms(date: Date, zone: &TimeZone) -> Option<i64> {
    let start = date.to_zoned(zone.clone()).ok()?.start_of_day().ok()?;
    Some(start.timestamp().as_millisecond())
}

/// Hours begin where the local clock shows a full one. Where it is set by less than that within one,
/// the hour ends there and another begins.
fn hour(at: Timestamp, zone: &TimeZone) -> Option<Window> {
    let offset_ms = |at: Timestamp| i64::from(zone.to_offset(at).seconds()).checked_mul(1000);
    let (at_ms, shift_ms) = (at.as_millisecond(), offset_ms(at)?);
    let local_ms = at_ms.checked_add(shift_ms)?;
    let mut since_ms = at_ms - local_ms.rem_euclid(HOUR_MS);
    let mut until_ms = since_ms.checked_add(HOUR_MS)?;
    let is_odd = |other: Timestamp| {
        offset_ms(other).is_some_and(|other_ms| (other_ms - shift_ms).rem_euclid(HOUR_MS) != 0)
    };
    // `preceding` is strictly before: the instant itself may be where the clock was set.
    let behind = Timestamp::from_millisecond(at_ms.checked_add(1)?).ok()?;
    if let Some(set) = zone.preceding(behind).next() {
        let set_ms = set.timestamp().as_millisecond();
        let before = Timestamp::from_millisecond(set_ms.checked_sub(1)?).ok()?;
        if set_ms > since_ms && is_odd(before) {
            since_ms = set_ms;
        }
    }
    if let Some(set) = zone.following(at).next() {
        let set_ms = set.timestamp().as_millisecond();
        if set_ms < until_ms && is_odd(set.timestamp()) {
            until_ms = set_ms;
        }
    }
    Window::new(since_ms, until_ms)
}

#[cfg(test)]
mod tests;
