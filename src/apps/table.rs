//! The known callers at one moment, and the one question of the door: which app is this request of?
//!
//! Promise: every hash is compared, each in constant time, so that the time of an answer reveals nothing of
//! which token came close; two apps never have the same name, user or token.

use std::collections::HashMap;
use std::sync::Arc;

use super::declared::Declared;
use super::error::{APPS_MAX, AppsError};
use super::stored::Stored;
use crate::config::{App, DEFAULT_APP, TokenForm, TokenHash};

/// The apps that may spend.
#[derive(Debug)]
pub struct Table {
    known: Vec<Known>,
    users: HashMap<u32, Arc<App>>,
    default: Arc<App>,
    is_anonymous_allowed: bool,
}

/// One app, and what it is known by.
#[derive(Clone, Debug)]
pub struct Known {
    pub app: Arc<App>,
    pub token: Option<TokenHash>,
    pub origin: Origin,
}

/// Where an app comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration, with the line of its table.
    Declared { place: String },
    /// `bursar app add`. Unix milliseconds.
    Added { at_ms: u64, token_at_ms: u64 },
}

/// Why a caller belongs to no app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    NoToken,
    WrongToken(TokenForm),
    /// It shows two tokens that differ, or one header twice: it is neither of these apps, nor one that may spend without a token.
    TwoTokens,
    /// It shows the token of a run that is expected in a moment.
    Awaited,
}

// === impl Table ===

impl Table {
    pub(super) fn of(declared: &Declared, stored: &Stored) -> Result<Self, AppsError> {
        stored.check_names()?;
        let mut known: Vec<Known> = Vec::new();
        let mut default = App::new(DEFAULT_APP);
        for (app, place) in declared.apps.iter().zip(&declared.places) {
            if *app.name == *DEFAULT_APP {
                default = app.clone();
                continue;
            }
            let place = place.clone();
            known.push(Known {
                app: Arc::new(app.clone()),
                token: app.token,
                origin: Origin::Declared { place },
            });
        }
        for app in stored.apps() {
            let twice = known.iter().find(|known| *known.app.name == *app.name);
            if let Some(Origin::Declared { place }) = twice.map(|known| &known.origin) {
                return Err(AppsError::Twice {
                    name: app.name.clone(),
                    place: place.clone(),
                });
            }
            known.push(Known {
                app: Arc::new(app.app()),
                token: Some(app.token),
                origin: Origin::Added {
                    at_ms: app.added_ms,
                    token_at_ms: app.token_ms,
                },
            });
        }
        if known.len() > APPS_MAX {
            return Err(AppsError::Full);
        }
        differ(&known)?;
        let mut users = HashMap::new();
        for known in &known {
            for uid in &known.app.uids {
                if let Some(other) = users.insert(*uid, Arc::clone(&known.app)) {
                    let name = other.name.to_string();
                    return Err(AppsError::UserTaken { uid: *uid, name });
                }
            }
        }
        Ok(Self {
            // An address that other machines reach is never open to every caller.
            is_anonymous_allowed: !declared.remote
                && declared.anonymous.unwrap_or(known.is_empty()),
            known,
            users,
            default: Arc::new(default),
        })
    }

    /// The app of a request: by the token that it shows where SDKs put the API key, else by the user at the
    /// other end of a Unix socket, else the default app where callers may be anonymous.
    ///
    /// A token in our form that is not known is refused also where none is needed: it was made for an app,
    /// and that app was removed or its token rotated. Another text may be an SDK's placeholder, for SDKs do
    /// not start without a key.
    pub fn app_of(&self, token: Option<&[u8]>, user: Option<u32>) -> Result<Arc<App>, Stranger> {
        let form = match token {
            None => None,
            Some(token) => {
                if let Some(app) = self.app_with(TokenHash::of(token)) {
                    return Ok(app);
                }
                Some(TokenForm::of(token))
            }
        };
        if let Some(form @ (TokenForm::Whole | TokenForm::Mistyped)) = form {
            return Err(Stranger::WrongToken(form));
        }
        if let Some(app) = user.and_then(|user| self.users.get(&user)) {
            return Ok(Arc::clone(app));
        }
        match form {
            _ if self.is_anonymous_allowed => Ok(Arc::clone(&self.default)),
            None => Err(Stranger::NoToken),
            Some(form) => Err(Stranger::WrongToken(form)),
        }
    }

    /// Every hash is looked at, also behind one that fits.
    fn app_with(&self, hash: TokenHash) -> Option<Arc<App>> {
        let mut found = None;
        for known in &self.known {
            if known.token.is_some_and(|token| token == hash) {
                found = Some(&known.app);
            }
        }
        found.map(Arc::clone)
    }

    /// Declared apps in the order of the file, then added ones in the order of their names.
    pub fn known(&self) -> &[Known] {
        &self.known
    }

    /// The app of callers that are none.
    pub fn default_app(&self) -> &Arc<App> {
        &self.default
    }

    pub fn app(&self, name: &str) -> Option<&Arc<App>> {
        let mut apps = self.known.iter().map(|known| &known.app);
        apps.find(|app| *app.name == *name)
            .or_else(|| (*self.default.name == *name).then_some(&self.default))
    }

    /// Every process that reaches bursar may spend.
    pub fn is_anonymous_allowed(&self) -> bool {
        self.is_anonymous_allowed
    }

    /// At least one app has a token, so callers from other machines can identify themselves.
    pub fn has_token(&self) -> bool {
        self.known.iter().any(|known| known.token.is_some())
    }

    /// Some app is known by its user on a Unix socket.
    pub fn has_users(&self) -> bool {
        !self.users.is_empty()
    }
}

/// Two apps with one token would be one app, by the order of the file.
fn differ(known: &[Known]) -> Result<(), AppsError> {
    for (number, one) in known.iter().enumerate() {
        let mut others = known.iter().skip(number + 1);
        let same = others.find(|other| one.token.is_some() && one.token == other.token);
        if let Some(other) = same {
            return Err(AppsError::SameToken {
                one: one.app.name.to_string(),
                other: other.app.name.to_string(),
            });
        }
    }
    Ok(())
}
