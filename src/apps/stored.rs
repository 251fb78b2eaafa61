//! The apps that were added while bursar ran: one file in the state directory, hashes and no tokens.
//!
//! Promise: written whole or not at all, 0600, with a checksum; a file of another format or with a
//! flipped bit is an error, for taken as empty it would let every caller in.

use serde::{Deserialize, Serialize};

use super::declared::Declared;
use super::error::{APPS_MAX, AppsError};
use crate::config::{App, DEFAULT_APP, Limits, NameError, TokenHash};
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
}

/// `None`: not given; `Some(None)`: none.
pub type Given = Option<Option<MicroUsd>>;

/// Everything in the file, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub apps: Vec<StoredApp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApp {
    pub name: String,
    pub token: TokenHash,
    pub uids: Vec<u32>,
    pub limits: Limits,
    pub request_floor: Option<MicroUsd>,
    pub added_ms: u64,
    pub token_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct AppsFile {
    format: u32,
    apps: Vec<AppRow>,
    /// CRC-32C of the apps as they are written.
    crc: String,
}

#[derive(Serialize, Deserialize)]
struct AppRow {
    name: String,
    token_blake3: String,
    #[serde(default)]
    uids: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_hour_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_day_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cap_month_micro_usd: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_floor_micro_usd: Option<MicroUsd>,
    added_ms: u64,
    token_ms: u64,
}

// === impl Stored ===

impl Stored {
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
        let apps = file
            .apps
            .into_iter()
            .map(StoredApp::of)
            .collect::<Option<_>>();
        let apps = apps.ok_or("an app in it has no valid name or hash")?;
        Ok(Self { apps })
    }

    fn print(&self) -> serde_json::Result<String> {
        let apps: Vec<AppRow> = self.apps.iter().map(StoredApp::row).collect();
        let file = AppsFile {
            format: FORMAT,
            crc: sum(&apps)?,
            apps,
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
        let limits = Limits {
            hour: new.cap_hour_micro_usd,
            day: new.cap_day_micro_usd,
            month: new.cap_month_micro_usd,
        };
        reachable(limits)?;
        let mut uids = new.uids.clone();
        uids.sort_unstable();
        uids.dedup();
        self.apps.push(StoredApp {
            name: new.name.clone(),
            token,
            uids,
            limits,
            request_floor: new.request_floor_micro_usd,
            added_ms: now_ms,
            token_ms: now_ms,
        });
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
        not_declared(&asked.name, declared)?;
        if asked.name == DEFAULT_APP {
            return Err(AppsError::Default);
        }
        let app = self.apps.iter_mut().find(|app| app.name == asked.name);
        let app = app.ok_or_else(|| unknown(&asked.name))?;
        let limits = Limits {
            hour: asked.cap_hour_micro_usd.unwrap_or(app.limits.hour),
            day: asked.cap_day_micro_usd.unwrap_or(app.limits.day),
            month: asked.cap_month_micro_usd.unwrap_or(app.limits.month),
        };
        reachable(limits)?;
        app.limits = limits;
        app.request_floor = asked.request_floor_micro_usd.unwrap_or(app.request_floor);
        Ok(())
    }

    pub(super) fn rotate(
        &mut self,
        name: &str,
        declared: &Declared,
        token: TokenHash,
        now_ms: u64,
    ) -> Result<(), AppsError> {
        not_declared(name, declared)?;
        let app = self.apps.iter_mut().find(|app| app.name == name);
        let app = app.ok_or_else(|| unknown(name))?;
        app.token = token;
        app.token_ms = now_ms;
        Ok(())
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

fn sum(apps: &[AppRow]) -> serde_json::Result<String> {
    let text = serde_json::to_string(apps)?;
    Ok(format!("{:08x}", crc32c::crc32c(text.as_bytes())))
}

// === impl StoredApp ===

impl StoredApp {
    pub(super) fn app(&self) -> App {
        App {
            uids: self.uids.clone(),
            limits: self.limits,
            request_floor: self.request_floor,
            ..App::new(self.name.as_str())
        }
    }

    fn of(row: AppRow) -> Option<Self> {
        // A reserved name gets an error of its own, and can be removed.
        if let Err(NameError::Form) = App::check_name(&row.name) {
            return None;
        }
        Some(Self {
            token: TokenHash::from_hex(&row.token_blake3)?,
            name: row.name,
            uids: row.uids,
            limits: Limits {
                hour: row.cap_hour_micro_usd,
                day: row.cap_day_micro_usd,
                month: row.cap_month_micro_usd,
            },
            request_floor: row.request_floor_micro_usd,
            added_ms: row.added_ms,
            token_ms: row.token_ms,
        })
    }

    fn row(&self) -> AppRow {
        AppRow {
            name: self.name.clone(),
            token_blake3: self.token.to_hex(),
            uids: self.uids.clone(),
            cap_hour_micro_usd: self.limits.hour,
            cap_day_micro_usd: self.limits.day,
            cap_month_micro_usd: self.limits.month,
            request_floor_micro_usd: self.request_floor,
            added_ms: self.added_ms,
            token_ms: self.token_ms,
        }
    }
}

/// A key that is there is given, also with `null`.
mod given {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Given;

    pub fn serialize<S: Serializer>(given: &Given, to: S) -> Result<S::Ok, S::Error> {
        given.flatten().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Given, D::Error> {
        Option::deserialize(from).map(Some)
    }
}
