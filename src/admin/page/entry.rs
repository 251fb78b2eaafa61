//! The page of one entry: what `bursar explain` prints of it, and what else happened under its key.
//!
//! Promise: it has no script; the key itself is never on it.

use jiff::tz::TimeZone;

use super::html::{Escaped, Field, Html};
use crate::admin::cells;
use crate::admin::explain::{EntryLine, Explanation, timeline};
use crate::calendar;

/// Writes the page of an entry; `None`: there is none.
pub fn render(explanation: &Explanation, now_ms: u64, zone: &TimeZone) -> Option<String> {
    let entry = explanation.entries.first()?;
    let id = entry.entry.id;
    let mut html = Html::titled(&format!("bursar: entry {}", cells::tail(&id)));
    begin(&mut html, &format!("Entry {id}"));
    for explained in &explanation.entries {
        html.line("<dl class=\"timeline\">");
        for (label, fact) in timeline::of(explained, zone).facts() {
            // A fact without a label goes on with the one before.
            html.line(match label {
                "" => format!("<div><dd>{}</dd></div>", Escaped(fact)),
                label => format!(
                    "<div><dt>{}</dt><dd>{}</dd></div>",
                    Escaped(label),
                    Escaped(fact)
                ),
            });
        }
        html.line("</dl>");
    }
    let purchase = explanation.purchase.as_ref();
    if let Some(purchase) = purchase.filter(|purchase| purchase.entries.len() > 1) {
        html.section("purchase", "All of this key", |html| {
            let billed = purchase.billed_micro_usd;
            let unknown = match purchase.not_known {
                0 => String::new(),
                count => format!(", {count} with an amount that is not known"),
            };
            let entries = cells::counted(purchase.entries.len(), "entry", "entries");
            html.paragraph("muted", &format!("Billed {billed} in {entries}{unknown}."));
            let rows = purchase.entries.iter().map(|line| row(line, zone));
            let titles = "Begun|App|Operation|>Billed|State|Entry";
            html.entries("purchase", titles, rows);
        });
    }
    let zone = calendar::zone_shown(now_ms, zone);
    html.paragraph("muted", &format!("Times: {zone}."));
    html.line("</main>");
    Some(html.finish())
}

/// The page in place of one that is not there.
pub fn missing() -> String {
    let mut html = Html::titled("bursar: no such entry");
    begin(&mut html, "No such entry");
    html.paragraph(
        "muted",
        "The ledger has no entry with this id. Free requests have none, and entries that retention removed are only in the sums.",
    );
    html.line("</main>");
    html.finish()
}

fn begin(html: &mut Html, heading: &str) {
    html.line(format_args!(
        "<header><h1>{}</h1>\n<p class=\"side\"><a href=\"/\">Status</a></p></header>\n<main>",
        Escaped(heading)
    ));
}

fn row(line: &EntryLine, zone: &TimeZone) -> Vec<Field> {
    vec![
        Field::number(calendar::shown(line.at_ms, zone)),
        Field::text(&line.app),
        Field::text(line.operation.as_str().replace('_', " ")),
        Field::number(cells::amount(line.billed_micro_usd)),
        Field::text(cells::state(line.state, line.reason)),
        Field::Entry(line.id),
    ]
}
