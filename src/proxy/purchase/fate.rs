//! How a request's answer ended: for the table of undelivered requests, and for the ledger.

/// What became of a request's answer, as the table has to remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The app has it, or nothing ran: nothing to remember.
    Closed,
    /// The app never received it, and the service may have run it.
    Undelivered,
    /// Nothing was sent under a key that was adopted: the request before it is undelivered as it was.
    /// `in_ledger`: this one's intent is in the ledger, and stands for both there.
    Unsent { in_ledger: bool },
}

/// What became of an answer whose outcome is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Its app has what counts as delivered. As long as somebody follows, and where bursar's stop cut the
    /// giving, this is not the last word: it counts as [`Self::UnderWay`].
    Given,
    /// Its app does not have it, unless a follower took it since the leader looked.
    Missed,
    /// It is being given. Of a stream the first byte counts as delivered as long as bursar lives; if
    /// bursar dies now, the app has no end of it.
    UnderWay,
}

// === impl News ===

impl From<Fate> for News {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Closed => Self::Given,
            Fate::Undelivered | Fate::Unsent { .. } => Self::Missed,
        }
    }
}
