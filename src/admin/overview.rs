//! What the two pages ask: the sums and the newest entries for the status page, one entry for its own.
//!
//! Promise: a view of the status page costs the ledger nothing while figures are good that another view has read; it
//! takes one of the turns to read, waits a bounded time for the figures, and is answered without them where they take
//! longer: the next view has them. What is written waits for it only while the index adds these days up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::time::timeout;

use super::documents::{ReceiptsDocument, SpendDocument, SpendQuestion, StatusDocument};
use super::explain::Explanation;
use super::failure::Failure;
use super::page::{self, DAYS, PROBLEMS_SHOWN, PageFigures, PageView, RECEIPTS_SHOWN, SpendFigure};
use super::reading::read;
use super::shared::Admin;
use crate::calendar;
use crate::ledger::Ledger;
use crate::ledger::entry::{EntryId, StateWord};
use crate::ledger::query::{Filter, GroupBy, find, list};

/// Longest wait for the figures.
const PATIENCE: Duration = Duration::from_secs(3);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How far back failures are looked for.
const FAILED_MS: u64 = 7 * DAY_MS;

/// The status page.
pub async fn status_page(admin: &Arc<Admin>, status: &StatusDocument) -> String {
    let zone = zone(admin);
    let asking = Arc::clone(admin);
    let asked = admin.figures.ask(|| async move { figures(&asking).await });
    let asked = timeout(PATIENCE, asked).await;
    let figures = match &asked {
        Ok(Some((figures, _))) => figures.as_ref().as_ref().map_err(String::as_str),
        Ok(None) => Err("Reading the ledger failed; the log has the place."),
        Err(_) => Err("The ledger is still being read for this page: reload it in a moment."),
    };
    let (totals, health) = admin.ledger.totals_and_health();
    page::render(&PageView {
        now_ms: admin.clock.wall_ms(),
        zone: &zone,
        status,
        ready: admin.ready(),
        caps: &admin.caps.view(),
        totals: (!health.is_adding_up).then_some(&*totals),
        figures,
    })
}

/// The page of an entry; `None`: there is none.
pub async fn entry_page(admin: &Arc<Admin>, id: &str) -> Result<Option<String>, Failure> {
    // Nothing else is looked for here: an id is found at once, however long the journal is.
    let Ok(id) = id.parse::<EntryId>() else {
        return Ok(None);
    };
    let found = read(admin, move |state_dir| find(state_dir, &id.to_string())).await?;
    let explanation = Explanation::new(&found).without_keys();
    let now_ms = admin.clock.wall_ms();
    Ok(page::entry::render(&explanation, now_ms, &zone(admin)))
}

/// That of the caps, as in every command: "today" is the same day on the page, in `bursar spend` and below a cap.
fn zone(admin: &Admin) -> TimeZone {
    admin.config.load().caps.time_zone.clone()
}

/// One turn for all of it. An error is good for no time.
async fn figures(admin: &Arc<Admin>) -> Result<PageFigures, String> {
    let at_ms = admin.clock.wall_ms();
    let zone = zone(admin);
    let days = calendar::last_days(at_ms, DAYS, &zone);
    let days = days.ok_or("The clock shows a time outside the calendar.")?;
    let asked = SpendQuestion {
        since_ms: Some(days.since_ms),
        until_ms: None,
        by: vec![GroupBy::App, GroupBy::Day, GroupBy::ServedBy],
        zone,
    };
    let ledger = admin.ledger.clone();
    let answered = read(admin, move |state_dir| {
        let failed_since = Some(at_ms.saturating_sub(FAILED_MS));
        let problems = |state, since_ms| {
            newest(
                Filter {
                    state: Some(state),
                    since_ms,
                    limit: Some(PROBLEMS_SHOWN),
                    ..Filter::default()
                },
                state_dir,
            )
        };
        Ok(PageFigures {
            at_ms,
            spend: spend(&ledger, &asked),
            receipts: newest(
                Filter {
                    limit: Some(RECEIPTS_SHOWN),
                    ..Filter::default()
                },
                state_dir,
            ),
            failed: problems(StateWord::Failed, failed_since),
            in_doubt: problems(StateWord::InDoubt, asked.since_ms),
            days,
        })
    });
    answered.await.map_err(|failure| failure.to_string())
}

/// From the index. Where it is made anew, the journal would be read for each view.
fn spend(ledger: &Ledger, asked: &SpendQuestion) -> SpendFigure {
    if ledger.health().is_adding_up {
        return SpendFigure::BeingAddedUp;
    }
    match ledger.spend(asked.since_ms, asked.until_ms, &asked.by, &asked.zone) {
        Ok(spend) => SpendFigure::Whole(Box::new(SpendDocument::new(asked, spend))),
        Err(error) => SpendFigure::Unread(error.to_string()),
    }
}

fn newest(filter: Filter, state_dir: &Path) -> Result<ReceiptsDocument, String> {
    match list(state_dir, &filter) {
        Ok(listing) => Ok(listing.into()),
        Err(error) => Err(format!("The entries cannot be read: {error}")),
    }
}
