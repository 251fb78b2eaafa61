//! The apps that were added while bursar ran: one file in the state directory, hashes and no tokens.
//!
//! Promise: written whole or not at all, 0600, with a checksum; a file of another format or with a
//! flipped bit is an error, for taken as empty it would let every caller in.

use serde::{Deserialize, Serialize};

use super::declared::Declared;
use super::error::{APPS_MAX, AppsError};
use crate::config::{App, DEFAULT_APP, Limits, NameError, SessionLimits, TokenHash};
use crate::ledger::state_dir::Directory;
use crate::money::MicroUsd;

const FILE: &str = "apps.json";
const FORMAT: u32 = 1;

/// What `bursar app add` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppAdd {
    pub name: String,
    #[serde(default)]
    pub uids: Vec<u32>,
    #[serde(default)]
    pub cap_hour_micro_usd: Option<MicroUsd>,
    #[serde(default)]
    pub cap_day_micro_usd: Option<MicroUsd>,
    #[serde(default)]
    pub cap_month_micro_usd: Option<MicroUsd>,
    #[serde(default)]
    pub request_floor_micro_usd: Option<MicroUsd>,
    #[serde(default)]
    pub session_cap_micro_usd: Option<MicroUsd>,
    #[serde(default)]
    pub session_requests_max: Option<u64>,
}

/// What `bursar app set` asks for. What is not given stays as it is; `Some(None)` takes it away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppSet {
    pub name: String,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub cap_hour_micro_usd: Given,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub cap_day_micro_usd: Given,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub cap_month_micro_usd: Given,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub request_floor_micro_usd: Given,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub session_cap_micro_usd: Given,
    #[serde(default, with = "given", skip_serializing_if = "Option::is_none")]
    pub session_requests_max: Given<u64>,
}

/// `None`: not given; `Some(None)`: none.
pub type Given<T = MicroUsd> = Option<Option<T>>;

/// Everything in the file, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    apps: Vec<StoredApp>,
}

/// One of them, as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredApp {
    pub name: String,
    #[serde(rename = "token_blake3", with = "hexadecimal")]
    pub token: TokenHash,
    #[serde(default)]
    pub uids: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_hour_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_day_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_month_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_floor_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_cap_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_requests_max: Option<u64>,
    pub added_ms: u64,
    pub token_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct AppsFile {
    format: u32,
    apps: Vec<StoredApp>,
    /// CRC-32C of the apps as they are written.
    crc: String,
}

// === impl Stored ===

impl Stored {
    /// By name.
    pub(super) fn apps(&self) -> &[StoredApp] {
        &self.apps
    }

    /// Nothing stored is nothing added.
    pub(super) fn read(directory: &Directory) -> Result<Self, AppsError> {
        let Some(text) = directory.read(FILE)? else {
            return Ok(Self::default());
        };
        Self::parse(&text).map_err(|why| AppsError::Damaged {
            path: directory.path().join(FILE).display().to_string(),
            why,
        })
    }

    pub(super) fn write(&self, directory: &Directory) -> Result<(), AppsError> {
        let text = self.print().map_err(|error| AppsError::Damaged {
            path: directory.path().join(FILE).display().to_string(),
            why: error.to_string(),
        })?;
        Ok(directory.replace(FILE, text.as_bytes())?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: AppsFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!(
                "it is of format {}, and this release knows {FORMAT}",
                file.format
            ));
        }
        if sum(&file.apps).map_err(|error| error.to_string())? != file.crc {
            return Err("its checksum differs".to_owned());
        }
        // A reserved name gets an error of its own, and can be removed.
        let is_malformed = |app: &StoredApp| App::check_name(&app.name) == Err(NameError::Form);
        if file.apps.iter().any(is_malformed) {
            return Err("an app in it has no valid name".to_owned());
        }
        Ok(Self { apps: file.apps })
    }

    fn print(&self) -> serde_json::Result<String> {
        let file = AppsFile {
            format: FORMAT,
            crc: sum(&self.apps)?,
            apps: self.apps.clone(),
        };
        serde_json::to_string_pretty(&file)
    }

    /// Every name is one that an app may have. A release before this one knew fewer reserved words.
    pub(super) fn check_names(&self) -> Result<(), AppsError> {
        for app in &self.apps {
            if let Err(why) = App::check_name(&app.name) {
                return Err(AppsError::Misnamed {
                    name: app.name.clone(),
                    place: self.place(&app.name),
                    why,
                });
            }
        }
        Ok(())
    }

    /// Where an app's name stands in the file: `apps.json:5`.
    fn place(&self, name: &str) -> String {
        let text = self.print().unwrap_or_default();
        let own = format!("\"name\": {name:?},");
        let mut lines = text.lines();
        match lines.position(|line| line.trim() == own) {
            Some(above) => format!("{FILE}:{}", above + 1),
            None => FILE.to_owned(),
        }
    }

    pub(super) fn add(
        &mut self,
        new: &AppAdd,
        declared: &Declared,
        token: TokenHash,
        now_ms: u64,
    ) -> Result<(), AppsError> {
        App::check_name(&new.name)?;
        not_declared(&new.name, declared)?;
        if new.name == DEFAULT_APP {
            return Err(AppsError::Default);
        }
        if self.apps.iter().any(|app| app.name == new.name) {
            let name = new.name.clone();
            return Err(AppsError::Exists { name });
        }
        if self.apps.len() + declared.apps.len() >= APPS_MAX {
            return Err(AppsError::Full);
        }
        let mut uids = new.uids.clone();
        uids.sort_unstable();
        uids.dedup();
        let app = StoredApp {
            name: new.name.clone(),
            token,
            uids,
            cap_hour_micro_usd: new.cap_hour_micro_usd,
            cap_day_micro_usd: new.cap_day_micro_usd,
            cap_month_micro_usd: new.cap_month_micro_usd,
            request_floor_micro_usd: new.request_floor_micro_usd,
            session_cap_micro_usd: new.session_cap_micro_usd,
            session_requests_max: new.session_requests_max,
            added_ms: now_ms,
            token_ms: now_ms,
        };
        reachable(app.limits())?;
        self.apps.push(app);
        self.apps.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str, declared: &Declared) -> Result<(), AppsError> {
        let before = self.apps.len();
        self.apps.retain(|app| app.name != name);
        // One that is in both places is taken out of this one: that is the way out.
        if self.apps.len() < before {
            return Ok(());
        }
        not_declared(name, declared)?;
        Err(unknown(name))
    }

    pub(super) fn set(&mut self, asked: &AppSet, declared: &Declared) -> Result<(), AppsError> {
        if asked.name == DEFAULT_APP {
            not_declared(&asked.name, declared)?;
            return Err(AppsError::Default);
        }
        let app = self.find(&asked.name, declared)?;
        for (value, given) in [
            (&mut app.cap_hour_micro_usd, asked.cap_hour_micro_usd),
            (&mut app.cap_day_micro_usd, asked.cap_day_micro_usd),
            (&mut app.cap_month_micro_usd, asked.cap_month_micro_usd),
            (
                &mut app.request_floor_micro_usd,
                asked.request_floor_micro_usd,
            ),
            (&mut app.session_cap_micro_usd, asked.session_cap_micro_usd),
        ] {
            *value = given.unwrap_or(*value);
        }
        let requests = &mut app.session_requests_max;
        *requests = asked.session_requests_max.unwrap_or(*requests);
        reachable(app.limits())
    }

    pub(super) fn rotate(
        &mut self,
        name: &str,
        declared: &Declared,
        token: TokenHash,
        now_ms: u64,
    ) -> Result<(), AppsError> {
        let app = self.find(name, declared)?;
        app.token = token;
        app.token_ms = now_ms;
        Ok(())
    }

    fn find(&mut self, name: &str, declared: &Declared) -> Result<&mut StoredApp, AppsError> {
        not_declared(name, declared)?;
        let app = self.apps.iter_mut().find(|app| app.name == name);
        app.ok_or_else(|| unknown(name))
    }
}

fn reachable(limits: Limits) -> Result<(), AppsError> {
    match limits.unreachable().first().copied() {
        Some((short, long)) => Err(AppsError::Caps { short, long }),
        None => Ok(()),
    }
}

fn not_declared(name: &str, declared: &Declared) -> Result<(), AppsError> {
    let mut apps = declared.apps.iter().zip(&declared.places);
    match apps.find(|(app, _)| *app.name == *name) {
        None => Ok(()),
        Some((_, place)) => Err(AppsError::Declared {
            name: name.to_owned(),
            place: place.clone(),
        }),
    }
}

fn unknown(name: &str) -> AppsError {
    AppsError::Unknown {
        name: name.to_owned(),
    }
}

fn sum(apps: &[StoredApp]) -> serde_json::Result<String> {
    let text = serde_json::to_string(apps)?;
    Ok(format!("{:08x}", crc32c::crc32c(text.as_bytes())))
}

// === impl StoredApp ===

impl StoredApp {
    pub(super) fn app(&self) -> App {
        App {
            token: Some(self.token),
            uids: self.uids.clone(),
            limits: self.limits(),
            request_floor: self.request_floor_micro_usd,
            session: SessionLimits {
                cap: self.session_cap_micro_usd,
                requests: self.session_requests_max,
            },
            ..App::new(self.name.as_str())
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            hour: self.cap_hour_micro_usd,
            day: self.cap_day_micro_usd,
            month: self.cap_month_micro_usd,
        }
    }
}

/// The hash as the file has it.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::config::TokenHash;

    pub fn serialize<S: Serializer>(hash: &TokenHash, to: S) -> Result<S::Ok, S::Error> {
        hash.to_hex().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TokenHash, D::Error> {
        let text = String::deserialize(from)?;
        TokenHash::from_hex(&text).ok_or_else(|| Error::custom("a hash in it is not valid"))
    }
}

/// A key that is there is given, also with `null`.
mod given {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Given;

    pub fn serialize<T: Copy + Serialize, S: Serializer>(
        given: &Given<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        given.flatten().serialize(to)
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Given<T>, D::Error> {
        Option::deserialize(from).map(Some)
    }
}
