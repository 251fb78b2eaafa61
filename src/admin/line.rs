//! The day so far in one document: what `bursar line` prints.
//!
//! Why a document of its own: a prompt or a status bar asks each second, and what it shows is in memory already.
//! Promise: no file is read and no entry looked at, however long the ledger is; no session's id is answered or logged.

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::query::{self, LineQuestion, QueryError};
use super::shared::Admin;
use crate::caps::TodayView;
use crate::ledger::MicroUsdSum;

/// The document of `/api/line`.
#[derive(Debug, Serialize, Deserialize)]
pub struct LineDocument {
    /// `None`: all apps.
    pub app: Option<String>,
    /// What the session that was asked for by its id was billed, in that app or in all. `None`: none was asked for, or
    /// nothing is known of it.
    pub session_micro_usd: Option<MicroUsdSum>,
    pub today: TodayView,
    /// Why requests wait.
    pub held_back_by: Vec<String>,
    /// The ledger can be written.
    pub writable: bool,
}

pub(super) fn line(admin: &Admin, asked: &str) -> Result<LineDocument, Failure> {
    let LineQuestion { app, session } = query::line(asked)?;
    if let Some(name) = &app
        && admin.apps.table().app(name).is_none()
    {
        return Err(QueryError::NoApp.into());
    }
    let session = session.and_then(|session| spent_in(admin, app.as_deref(), &session));
    Ok(LineDocument {
        session_micro_usd: session,
        today: admin.caps.today(app.as_deref()),
        held_back_by: admin.held_back_by(),
        writable: admin.ledger.health().is_writable(),
        app,
    })
}

/// What a session came to, of one app or of whichever has it. `None`: it is not known.
fn spent_in(admin: &Admin, app: Option<&str>, session: &str) -> Option<MicroUsdSum> {
    let sessions = admin.ledger.session_hasher();
    let of = |app: &str| sessions.session(app, session).hash;
    admin.caps.session_billed(app, of)
}
