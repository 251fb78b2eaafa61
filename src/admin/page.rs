//! The status page: one screen a person can read, without script and without anything loaded.
//!
//! Promise: the figures are those of `/metrics` and `bursar spend`; what is not known stands beside
//! what is, in the same size.

use std::fmt::{self, Display, Write};

use crate::caps::CapsView;
use crate::config::ListenAddr;
use crate::ledger::LedgerHealth;
use crate::ledger::query::Spend;
use crate::ledger::totals::Totals;
use crate::screen::shown;
use crate::telemetry::metrics::Traffic;

/// What the page shows.
pub struct Status<'a> {
    pub now: String,
    pub since: String,
    pub proxy: &'a [ListenAddr],
    pub upstream: String,
    pub in_flight: usize,
    /// Callers that are no app may spend.
    pub anonymous: bool,
    pub traffic: Traffic,
    /// What is wrong although it serves; or why it does not.
    pub ready: Result<Option<String>, String>,
    pub today: Result<Spend, String>,
    pub caps: &'a CapsView,
    pub totals: &'a Totals,
    pub health: &'a LedgerHealth,
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>bursar</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 1.5rem; }
th { font-weight: normal; text-align: left; padding: .2rem 1rem .2rem 0; }
td { text-align: right; font-variant-numeric: tabular-nums; padding: .2rem 0; overflow-wrap: anywhere; }
tr { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.bad { font-weight: bold; }
</style>
<h1>bursar</h1>
"#;

/// Writes the page.
pub fn render(status: &Status<'_>) -> String {
    let mut page = HEAD.to_owned();
    match &status.ready {
        Ok(None) => line(&mut page, "<p>Serving.</p>"),
        Ok(Some(wrong)) => line(
            &mut page,
            format_args!("<p class=\"bad\">Serving, but {}</p>", Escaped(wrong)),
        ),
        Err(why) => line(
            &mut page,
            format_args!("<p class=\"bad\">Not ready: {}</p>", Escaped(why)),
        ),
    }
    spent(&mut page, status);
    caps(&mut page, status.caps);
    ledger(&mut page, status.health);
    traffic(&mut page, &status.traffic);
    table(&mut page, "Process");
    for address in status.proxy {
        row(&mut page, "apps are served at", address);
    }
    let spenders = match status.anonymous {
        true => "every process of this machine",
        false => "apps with a token or a user",
    };
    row(&mut page, "may spend", spenders);
    row(&mut page, "the service", &status.upstream);
    row(&mut page, "in flight", status.in_flight);
    row(&mut page, "started", &status.since);
    row(&mut page, "now", &status.now);
    row(&mut page, "version", env!("CARGO_PKG_VERSION"));
    line(&mut page, "</table></html>");
    page
}

fn spent(page: &mut String, status: &Status<'_>) {
    let totals = status.totals;
    table(page, "Spend");
    match &status.today {
        Ok(today) => {
            let total = &today.total;
            row(page, "today, as far as known", total.billed_micro_usd);
            row(page, "today in doubt", total.in_doubt);
            row(page, "today unreported", total.unreported);
        }
        Err(why) => row(page, "today", why),
    }
    if status.health.is_adding_up {
        row(page, "in all", "the journal is being added up");
        return line(page, "</table>");
    }
    row(page, "in all, as far as known", totals.billed());
    row(page, "in doubt", totals.in_doubt().values().sum::<u64>());
    row(
        page,
        "unreported",
        totals.unreported().values().sum::<u64>(),
    );
    row(
        page,
        "of that, for answers whose app had left",
        totals.drained(),
    );
    row(
        page,
        "saved against a frontier model (estimate)",
        totals.compared(),
    );
    row(page, "requests", totals.requests());
    line(page, "</table>");
}

fn caps(page: &mut String, view: &CapsView) {
    if view.caps.is_empty() && view.frozen.is_empty() {
        return;
    }
    table(page, "Caps");
    for frozen in &view.frozen {
        let app = frozen.app.as_deref().unwrap_or("all apps");
        row(page, "frozen", format_args!("{app}, by {}", frozen.by));
    }
    for cap in &view.caps {
        let what = format!("left of {} a {}, {}", cap.limit, cap.period, cap.scope);
        row(page, &what, cap.left);
    }
    line(page, "</table>");
}

fn ledger(page: &mut String, health: &LedgerHealth) {
    table(page, "Ledger");
    match &health.unavailable {
        None => row(page, "can be written", "yes"),
        Some(why) => row(page, "cannot be written", why),
    }
    row(page, "entries that wait to be written", health.waiting);
    row(page, "journal bytes", health.journal_bytes);
    row(page, "damaged ranges set aside", health.quarantined);
    row(page, "index behind by records", health.index_lag_records);
    line(page, "</table>");
}

fn traffic(page: &mut String, traffic: &Traffic) {
    let of = |limit: i64| match limit {
        0 => String::new(),
        limit => format!(" of {limit}"),
    };
    table(page, "At the service");
    let at_once = format!("{}{}", traffic.in_flight, of(traffic.in_flight_limit));
    row(page, "requests in flight", at_once);
    row(page, "waiting for a place", traffic.waiting);
    if traffic.per_minute_limit > 0 {
        row(page, "most in a minute", traffic.per_minute_limit);
    }
    let held_back = match traffic.breaking.as_slice() {
        [] => "no".to_owned(),
        causes => format!("yes: {}", causes.join(", ")),
    };
    row(page, "new requests are held back", held_back);
    line(page, "</table>");
}

fn table(page: &mut String, caption: &str) {
    line(page, format_args!("<h2>{caption}</h2>\n<table>"));
}

fn row(page: &mut String, what: &str, value: impl Display) {
    let value = value.to_string();
    line(
        page,
        format_args!("<tr><th>{what}</th><td>{}</td></tr>", Escaped(&value)),
    );
}

fn line(page: &mut String, text: impl Display) {
    // Writing to a String cannot fail.
    let written = writeln!(page, "{text}");
    debug_assert!(written.is_ok(), "writing to a String");
}

/// Text in a page: what [`crate::screen`] writes out, and what HTML takes for its own.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in shown(self.0).chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
