//! The status page: who spent what, what is not known, what failed, and how the daemon is. One small script asks for
//! it anew every ten seconds; without script it is whole, and has a link to load it anew.
//!
//! Lowest first: `html` < `sums` `entry` (the page of one entry) < `chart` < this file.
//!
//! Promise: the figures are those of `/metrics` and `bursar spend`; what is not known stands beside
//! what is, in the same size. The page loads nothing but its icon, and runs no script but its own ([`POLICY`]). Its
//! size has a bound: 20 apps, 20 receipts, 10 failures, 10 doubts, 64 apps' caps.

mod chart;
pub mod entry;
mod html;
mod sums;

use std::fmt::Display;
use std::time::Duration;

use jiff::tz::TimeZone;

use self::html::{Field, Html};
use self::sums::{AppSums, Spent, WindowSums, Windows};
use super::cells;
use super::documents::{EntryDocument, ReceiptsDocument, SpendDocument, StatusDocument};
use super::explain::doubt;
use crate::calendar::{self, LastDays};
use crate::caps::{CapView, CapsView, SharedCapView};
use crate::ledger::entry::AttemptEnd;
use crate::ledger::query::EntryView;
use crate::ledger::totals::Totals;

/// What the browser is to run and load: the hashes are those of the script and the style in the page.
pub const POLICY: &str = "default-src 'none'; \
     script-src 'sha256-pi59xkbzt4mrBWlUtTHkG1z6jMAEsSoitbqKdE6wcYI='; \
     style-src 'sha256-K0hhgAvKav0Ufu49MBh8jakIeY63r3M0XtK8uMdFa4I='; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = include_str!("page/refresh.js");

/// The icon: a coin with a slot.
pub const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\"><circle cx=\"16\" cy=\"16\" \
     r=\"14\" fill=\"#1f8a5b\"/><rect x=\"9\" y=\"14\" width=\"14\" height=\"4\" rx=\"2\" fill=\"#fff\"/></svg>";

/// The days of the longest window, and of the one between it and today.
pub const DAYS: u16 = 30;
const WEEK: u16 = 7;

/// Rows of the page.
const APPS_SHOWN: usize = 20;
pub const RECEIPTS_SHOWN: usize = 20;
pub const PROBLEMS_SHOWN: usize = 10;

/// Apps with a colour of their own in the chart; the others share one.
const COLOURS: usize = 5;

/// What the page shows of the ledger's files, read at one moment.
#[derive(Debug)]
pub struct PageFigures {
    pub at_ms: u64,
    pub days: LastDays,
    pub spend: SpendFigure,
    /// Newest last, here and in the next two.
    pub receipts: Result<ReceiptsDocument, String>,
    pub failed: Result<ReceiptsDocument, String>,
    pub in_doubt: Result<ReceiptsDocument, String>,
}

/// The sums of the days.
#[derive(Debug)]
pub enum SpendFigure {
    /// By app, day and server.
    Whole(Box<SpendDocument>),
    /// The index is made anew from the journal: they would take long, again and again.
    BeingAddedUp,
    Unread(String),
}

/// All that the page shows.
pub struct PageView<'a> {
    pub now_ms: u64,
    pub zone: &'a TimeZone,
    pub status: &'a StatusDocument,
    /// What is wrong although it serves; or why it does not.
    pub ready: Result<Option<String>, String>,
    pub caps: &'a CapsView,
    /// `None` while the journal is added up.
    pub totals: Option<&'a Totals>,
    /// Or why they are not there.
    pub figures: Result<&'a PageFigures, &'a str>,
}

/// How long figures are good: a twentieth of one processor at most goes into them, however long they take and however
/// many look at the page.
pub fn figures_good_for(figures: &Result<PageFigures, String>, took: Duration) -> Duration {
    const LEAST: Duration = Duration::from_secs(2);
    match figures {
        Ok(_) => took.saturating_mul(20).max(LEAST),
        Err(_) => Duration::ZERO,
    }
}

/// Writes the page.
pub fn render(view: &PageView<'_>) -> String {
    let mut html = Html::titled("bursar");
    html.line(
        "<header><h1>bursar</h1>\n<p class=\"side\"><span id=\"note\" class=\"muted\" role=\"status\"></span>\n\
         <a href=\"/\">Reload</a>\n<button type=\"button\" id=\"pause\" hidden>Pause</button></p></header>",
    );
    html.line(format_args!(
        "<main id=\"figures\" tabindex=\"-1\" data-version=\"{}\">",
        env!("CARGO_PKG_VERSION")
    ));
    verdict(&mut html, view);
    html.section("spend", "Spend", |html| spend(html, view));
    match view.figures {
        Ok(figures) => of_ledger(&mut html, figures, view.zone),
        Err(why) => html.paragraph("bad", why),
    }
    html.section("doubts", "In doubt, and why", |html| doubts(html, view));
    let of_caps = view.caps;
    if !(of_caps.caps.is_empty() && of_caps.frozen.is_empty() && of_caps.shared.is_empty()) {
        html.section("caps", "Caps", |html| caps(html, view));
    }
    html.line("<div class=\"columns\"><div>");
    html.section("service", "At the service", |html| {
        html.list(at_service(view))
    });
    html.section("process", "Process", |html| html.list(process(view)));
    html.line("</div>");
    html.section("ledger", "Ledger", |html| html.list(ledger(view)));
    html.line("</div>\n</main>");
    html.line(format_args!("<script>{SCRIPT}</script>"));
    html.finish()
}

fn verdict(html: &mut Html, view: &PageView<'_>) {
    html.line("<div class=\"verdict\">");
    match &view.ready {
        Ok(None) => html.paragraph("good", "Serving."),
        Ok(Some(wrong)) => html.paragraph("bad", &format!("Serving, but {wrong}")),
        Err(why) => html.paragraph("bad", &format!("Not ready: {why}")),
    }
    let at_ms = view.figures.map_or(view.now_ms, |figures| figures.at_ms);
    let at = calendar::shown(at_ms, view.zone);
    let zone = calendar::zone_shown(view.now_ms, view.zone);
    html.paragraph("muted", &format!("As of {at}. Times and days: {zone}."));
    html.line("</div>");
}

fn spend(html: &mut Html, view: &PageView<'_>) {
    let ever = view.totals.map(WindowSums::of_totals);
    if ever.is_none() {
        html.paragraph(
            "bad",
            "The totals are not whole yet: the journal is being added up, and requests are served meanwhile.",
        );
    }
    match view
        .figures
        .map(|figures| (&figures.spend, &figures.days.names))
    {
        Ok((SpendFigure::Whole(document), days)) => {
            if document.damaged > 0 {
                html.paragraph("bad", &lacking(document.damaged));
            }
            let spent = Spent::of(&document.rows, days, usize::from(WEEK));
            let Windows { today, week, month } = &spent.all;
            let windows = [Some(today), Some(week), Some(month), ever.as_ref()];
            windows_table(html, ">Today|>7 days|>30 days|>In all", &windows);
            by_app(html, &spent, days);
        }
        Ok((SpendFigure::Unread(why), _)) => {
            html.paragraph(
                "bad",
                &format!("The sums of the days cannot be read: {why}"),
            );
            windows_table(html, ">In all", &[ever.as_ref()]);
        }
        Ok((SpendFigure::BeingAddedUp, _)) | Err(_) => {
            windows_table(html, ">In all", &[ever.as_ref()])
        }
    }
}

fn lacking(damaged: u64) -> String {
    let ranges = cells::counted(damaged, "range", "ranges");
    format!("The journal has {ranges} that cannot be read: the sums lack what was in them.")
}

fn windows_table(html: &mut Html, titles: &str, windows: &[Option<&WindowSums>]) {
    let row = |name: &str, of: &dyn Fn(&WindowSums) -> Field| {
        let fields = windows.iter().map(|window| match window {
            Some(window) => of(window),
            None => Field::number("not whole yet"),
        });
        std::iter::once(Field::text(name)).chain(fields).collect()
    };
    let rows: [Vec<Field>; 7] = [
        row("Billed, as far as known", &|sums| {
            Field::number(sums.billed)
        }),
        row("Requests", &|sums| Field::number(sums.requests)),
        row("Price in doubt", &|sums| Field::number(sums.in_doubt)),
        row("Without a reported price", &|sums| {
            Field::number(sums.unreported)
        }),
        row("Failed, at no cost", &|sums| Field::number(sums.failed)),
        row("Answered by a frontier model", &escalation),
        row("Saved against a frontier model", &savings),
    ];
    html.table("spend", &format!("Window|{titles}"), rows);
    html.paragraph(
        "muted",
        "Saved is counted over the answers that reported both prices; the frontier's is the service's estimate.",
    );
}

/// Of the answers that say what gave them.
fn escalation(sums: &WindowSums) -> Field {
    let reported = sums.by_frontier.saturating_add(sums.by_specialist);
    let share = u128::from(sums.by_frontier) * 100 + u128::from(reported) / 2;
    match share.checked_div(u128::from(reported)) {
        None => Field::number("not known"),
        Some(percent) => Field::Noted(
            format!("{percent} %"),
            format!("{} of {reported} answers", sums.by_frontier),
        ),
    }
}

/// Over the answers that carry both prices: no other can be compared.
fn savings(sums: &WindowSums) -> Field {
    let compared = &sums.compared;
    let answers = cells::counted(compared.answers, "answer", "answers");
    match (compared.answers, compared.saved()) {
        (0, _) => Field::number("not known"),
        (_, Some(saved)) => Field::Noted(saved.to_string(), format!("over {answers}")),
        (_, None) => Field::Noted(
            "nothing".to_owned(),
            format!(
                "{answers} cost {} instead of {}",
                compared.billed, compared.frontier
            ),
        ),
    }
}

fn by_app(html: &mut Html, spent: &Spent, days: &[String]) {
    if spent.apps.is_empty() {
        return html.paragraph("muted", "No request in the last 30 days.");
    }
    chart::draw(html, days, &spent.first_apps(COLOURS));
    html.line("<h3 id=\"apps\">By app</h3>");
    let row = |(at, app): (usize, AppSums)| {
        let Windows { today, week, month } = &app.windows;
        vec![
            Field::Coloured(at.min(COLOURS), app.name.clone()),
            Field::number(today.billed),
            Field::number(week.billed),
            Field::number(month.billed),
            Field::number(month.requests),
            Field::number(month.not_known()),
            escalation(month),
            savings(month),
        ]
    };
    let apps = spent.first_apps(APPS_SHOWN).into_iter().enumerate();
    html.table(
        "apps",
        "App|>Today|>7 days|>30 days|>Requests, 30 days|>Price not known|>By a frontier model|>Saved",
        apps.map(row),
    );
}

fn of_ledger(html: &mut Html, figures: &PageFigures, zone: &TimeZone) {
    let at = |entry: &EntryView| Field::number(calendar::shown(entry.at_ms, zone));
    html.section("receipts", "Last receipts", |html| {
        let row = |entry: &EntryView| {
            let served_by = entry.served_by.map_or("", |by| by.as_str());
            let model = entry.model.as_deref().unwrap_or("");
            let state = cells::state(entry.state.word(), entry.state.reason());
            vec![
                at(entry),
                Field::text(&entry.app),
                Field::text(spoken(entry.operation.as_str())),
                Field::text(model),
                Field::text(served_by),
                Field::number(cells::amount(entry.billed_micro_usd)),
                Field::text(spoken(&state)),
                Field::Entry(entry.id),
            ]
        };
        let titles = "Begun|App|Operation|Model|Served by|>Billed|State|Entry";
        entries(html, "receipts", titles, &figures.receipts, row);
    });
    html.section("errors", "Last errors, of 7 days", |html| {
        let row = |entry: &EntryView| {
            vec![
                at(entry),
                Field::text(&entry.app),
                Field::text(spoken(entry.operation.as_str())),
                Field::text(failure(entry)),
                Field::number(cells::counted(entry.attempts.len(), "attempt", "attempts")),
                Field::Entry(entry.id),
            ]
        };
        let titles = "Begun|App|Operation|Why|>Attempts|Entry";
        entries(html, "errors", titles, &figures.failed, row);
    });
}

/// A table of entries, newest first.
fn entries(
    html: &mut Html,
    section: &str,
    titles: &str,
    read: &Result<ReceiptsDocument, String>,
    row: impl Fn(&EntryView) -> Vec<Field>,
) {
    match read {
        Err(why) => html.paragraph("bad", why),
        Ok(document) if document.receipts.is_empty() => html.paragraph("muted", "None."),
        Ok(document) => {
            let newest = document.receipts.iter().rev();
            html.entries(
                section,
                titles,
                newest.map(|EntryDocument(entry)| row(entry)),
            );
        }
    }
}

/// `in_doubt(client_gone)` as people read it.
fn spoken(state: &str) -> String {
    state.replace('(', " (").replace('_', " ")
}

/// What the last attempt came to.
fn failure(entry: &EntryView) -> String {
    let Some(last) = entry.attempts.last() else {
        return "no attempt was made".to_owned();
    };
    let what = match last.end {
        AttemptEnd::NotSent => "not sent whole",
        AttemptEnd::NoHead => "no answer",
        AttemptEnd::Refused if last.status.is_some_and(|status| status >= 500) => {
            "failed at the service"
        }
        AttemptEnd::Refused => "refused by the service",
        AttemptEnd::Gateway => "answered by a gateway",
        AttemptEnd::Answered => "answered",
        AttemptEnd::Broken => "the answer broke off",
    };
    let status = last.status.map(|status| format!("{status}, "));
    let cause = last.cause.as_ref().map(|cause| format!(" ({cause})"));
    format!(
        "{}{what}{}",
        status.unwrap_or_default(),
        cause.unwrap_or_default()
    )
}

fn doubts(html: &mut Html, view: &PageView<'_>) {
    let Some(totals) = view.totals else {
        return html.paragraph("muted", "Not whole yet.");
    };
    let reasons = totals.in_doubt();
    let reasons: Vec<_> = reasons
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    let unreported = totals.unreported();
    let unreported: Vec<_> = unreported
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    if reasons.is_empty() {
        html.paragraph("muted", "No price is in doubt.");
    } else {
        let row = |(reason, count): &(_, u64)| {
            let word = spoken(&format!("{reason}"));
            vec![
                Field::text(word),
                Field::number(count),
                Field::text(doubt(*reason)),
            ]
        };
        html.table("doubts", "Reason|>Requests|Why", reasons.iter().map(row));
        if let Ok(figures) = view.figures {
            html.line("<h3 id=\"doubtful\">The last of them, of 30 days</h3>");
            let row = |entry: &EntryView| {
                let reason = entry.state.reason().map(|reason| spoken(reason.as_str()));
                vec![
                    Field::number(calendar::shown(entry.at_ms, view.zone)),
                    Field::text(&entry.app),
                    Field::text(spoken(entry.operation.as_str())),
                    Field::text(reason.unwrap_or_default()),
                    Field::Entry(entry.id),
                ]
            };
            let titles = "Begun|App|Operation|Reason|Entry";
            entries(html, "doubtful", titles, &figures.in_doubt, row);
        }
    }
    if !unreported.is_empty() {
        let of = |(operation, count): &(_, u64)| {
            format!("{count} × {}", spoken(&format!("{operation}")))
        };
        let list: Vec<String> = unreported.iter().map(of).collect();
        let list = list.join(", ");
        html.paragraph(
            "muted",
            &format!("Whole answers for which the service reports no price: {list}."),
        );
    }
}

fn caps(html: &mut Html, view: &PageView<'_>) {
    for frozen in &view.caps.frozen {
        let app = frozen.app.as_deref().unwrap_or("all apps");
        let since = calendar::shown(frozen.since_ms, view.zone);
        html.paragraph(
            "bad",
            &format!("{app}: frozen since {since}, by {}", frozen.by),
        );
    }
    shared_caps(html, &view.caps.shared);
    if view.caps.caps.is_empty() {
        return;
    }
    let row = |cap: &CapView| {
        vec![
            Field::text(format_args!("{}, a {}", cap.scope, cap.period)),
            Field::number(cap.limit),
            Field::number(cap.spent),
            Field::number(cap.held),
            Field::number(cap.reserved),
            Field::number(cap.left),
            Field::number(cap.refusals),
            Field::number(calendar::shown(cap.resets_at_ms, view.zone)),
        ]
    };
    html.table(
        "caps",
        "Cap|>Limit|>Spent|>Held|>Under way|>Left|>Refused|>Resets at",
        view.caps.caps.iter().map(row),
    );
    if let Some(zone) = &view.caps.time_zone {
        html.paragraph(
            "muted",
            &format!("The windows of caps are those of {zone}."),
        );
    }
    if view.caps.waiting > 0 {
        let waiting = cells::counted(view.caps.waiting, "request waits", "requests wait");
        html.paragraph("muted", &format!("{waiting} for room below a cap."));
    }
}

/// Caps that many machines share, and what this one holds of them.
fn shared_caps(html: &mut Html, shared: &[SharedCapView]) {
    if shared.is_empty() {
        return;
    }
    let row = |cap: &SharedCapView| {
        let limit = cap.limit.map(|limit| limit.to_string());
        let period = cap.period.map_or("", |period| period.as_str());
        vec![
            Field::text(format_args!("{} {period}", cap.cap)),
            Field::number(limit.unwrap_or_default()),
            Field::number(cap.leased),
            Field::number(cap.spent),
            Field::number(cap.held),
            Field::number(cap.open),
            Field::number(cap.refusals),
            Field::text(spoken(&cap.state)),
        ]
    };
    let titles = "Shared cap|>Limit|>Leased here|>Spent here|>Held|>Left of it|>Refused|Fleet";
    html.table("shared", titles, shared.iter().map(row));
}

/// A name with its value, in a list.
type Pair = (&'static str, Field);

fn text(name: &'static str, value: impl Display) -> Pair {
    (name, Field::text(value))
}

fn number(name: &'static str, value: impl Display) -> Pair {
    (name, Field::number(value))
}

fn at_service(view: &PageView<'_>) -> Vec<Pair> {
    let traffic = &view.status.traffic;
    let at_once = match traffic.in_flight_limit {
        None => traffic.at_service.to_string(),
        Some(limit) => format!("{} of {limit}", traffic.at_service),
    };
    let held_back = match traffic.held_back_by.as_slice() {
        [] => "no".to_owned(),
        causes => format!("yes: {}", causes.join(", ")),
    };
    let mut pairs = vec![
        text("new requests are held back", held_back),
        number("requests in flight", at_once),
        number("waiting for a place", traffic.waiting),
    ];
    if let Some(limit) = traffic.per_minute_limit {
        pairs.push(number("most in a minute", limit));
    }
    pairs
}

fn ledger(view: &PageView<'_>) -> Vec<Pair> {
    let ledger = &view.status.ledger;
    let writable = match &ledger.unavailable {
        None => text("can be written", "yes"),
        Some(why) => text("cannot be written", why),
    };
    let mut pairs = vec![writable];
    if ledger.adding_up {
        pairs.push(text("index", "is being rebuilt from the journal"));
    }
    pairs.push(number(
        "entries that wait to be written",
        ledger.unwritten_waiting,
    ));
    if ledger.unwritten_dropped > 0 {
        let dropped = ledger.unwritten_dropped;
        pairs.push(number("entries that found no place to wait", dropped));
    }
    pairs.push(number("damaged ranges set aside", ledger.quarantined));
    pairs.push(number(
        "journal",
        cells::counted(ledger.journal_bytes, "byte", "bytes"),
    ));
    pairs.push(number("index behind by records", ledger.index_lag_records));
    pairs.push(text("directory", &ledger.state_dir));
    if let Some(totals) = view.totals {
        pairs.push(number(
            "billed for answers whose app had left",
            totals.drained(),
        ));
    }
    pairs
}

fn process(view: &PageView<'_>) -> Vec<Pair> {
    let status = view.status;
    let mut pairs: Vec<Pair> = Vec::new();
    for address in &status.proxy {
        pairs.push(text("apps are served at", address));
    }
    let spenders = match status.anonymous {
        true => "every process of this machine",
        false => "apps with a token or a user",
    };
    pairs.push(text("may spend", spenders));
    pairs.push(text("the service", &status.upstream));
    pairs.push(number("in flight", status.in_flight));
    let since_ms = view
        .now_ms
        .saturating_sub(status.uptime_s.saturating_mul(1000));
    pairs.push(number("started", calendar::shown(since_ms, view.zone)));
    pairs.push(number("version", &status.version));
    pairs
}

#[cfg(test)]
mod tests;
