//! The apps that may spend: those that the configuration declares, those that were added while bursar ran,
//! and the app of callers that are let in without a name.
//!
//! The door asks for the app of each request; the command line adds, removes and rotates, over the
//! daemon's admin socket or, with no daemon, under the ledger's lock. A request keeps its app to its
//! end, whatever becomes of the app meanwhile.
//!
//! Promise: a change is durable before it is in force, and in force before it is answered; a file
//! that is damaged lets no caller in instead of all; tokens are kept as hashes and compared in
//! constant time.
//!
//! Lowest first: `error` `declared` < `stored` `runs` `awaited` < `table` < this registry.

mod awaited;
mod declared;
mod error;
pub mod namespace;
pub mod runs;
mod stored;
mod table;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::awaited::Awaited;
pub use self::declared::Declared;
pub use self::error::{APPS_MAX, AppsError};
use self::runs::{Run, Runs};
pub use self::stored::{AppAdd, AppSet, Stored, StoredApp};
pub use self::table::{Known, Origin, Stranger, Table};
use crate::caps::{Caps, Rules};
use crate::config::{self, App, Token, TokenForm, TokenHash};
use crate::ledger::state_dir::{Directory, Lock};

/// The registry of one process.
pub struct Apps {
    runs: Runs,
    awaited: Awaited,
    /// Each change is put in force in the caps before it is at the door.
    caps: OnceLock<Arc<Caps>>,
    table: ArcSwap<Table>,
    /// Hears of each table before it is in force.
    herald: OnceLock<Herald>,
    /// One change at a time.
    changing: Mutex<AppList>,
    changed: watch::Sender<()>,
    /// Marked when a run opens.
    opened: watch::Sender<()>,
    /// Marked when a run ends.
    ended: watch::Sender<()>,
}

type Herald = Box<dyn Fn(&Table) + Send + Sync>;

/// The app of a request, and its run.
#[derive(Clone, Debug)]
pub struct Caller {
    pub app: Arc<App>,
    /// Its token was a run's.
    pub run: Option<Arc<Run>>,
}

/// A run that is open until this is dropped: then its token is no caller's.
pub struct OpenRun {
    apps: Arc<Apps>,
    pub run: Arc<Run>,
}

/// The apps as they are declared and stored, and what changes them.
pub struct AppList {
    directory: Directory,
    declared: Declared,
    stored: Stored,
    /// Held where no daemon does.
    _lock: Option<Lock>,
}

// === impl AppList ===

impl AppList {
    fn read(
        directory: Directory,
        declared: Declared,
        lock: Option<Lock>,
    ) -> Result<Self, AppsError> {
        let stored = Stored::read(&directory)?;
        Ok(Self {
            directory,
            declared,
            stored,
            _lock: lock,
        })
    }

    /// Takes the ledger's lock, so that no daemon runs beside. Makes the directory where there is none.
    pub fn open(state_dir: &Path, declared: Declared) -> Result<Self, AppsError> {
        let directory = Directory::open_or_create(state_dir)?;
        let lock = directory.lock()?;
        Self::read(directory, declared, Some(lock))
    }

    /// The apps that may spend.
    pub fn table(&self) -> Result<Table, AppsError> {
        Table::of(&self.declared, &self.stored)
    }

    /// As [`Apps::add`].
    pub fn add(&mut self, new: &AppAdd, now_ms: u64) -> Result<Token, AppsError> {
        let token = Token::draw().map_err(AppsError::Random)?;
        self.replace(|next, declared| {
            next.add(new, declared, token.hash(), now_ms)?;
            // What is wrong with it beside the others shows before it is written.
            Table::of(declared, next).map(drop)
        })?;
        Ok(token)
    }

    /// As [`Apps::remove`]. Works also where an app is in two places, which no daemon starts with.
    pub fn remove(&mut self, name: &str) -> Result<(), AppsError> {
        self.replace(|next, declared| next.remove(name, declared))
    }

    /// As [`Apps::rotate`].
    pub fn rotate(&mut self, name: &str, now_ms: u64) -> Result<Token, AppsError> {
        let token = Token::draw().map_err(AppsError::Random)?;
        self.replace(|next, declared| {
            next.rotate(name, declared, token.hash(), now_ms)?;
            Table::of(declared, next).map(drop)
        })?;
        Ok(token)
    }

    /// As [`Apps::set`].
    pub fn set(&mut self, asked: &AppSet) -> Result<(), AppsError> {
        self.replace(|next, declared| {
            next.set(asked, declared)?;
            Table::of(declared, next).map(drop)
        })
    }

    fn replace(
        &mut self,
        change: impl FnOnce(&mut Stored, &Declared) -> Result<(), AppsError>,
    ) -> Result<(), AppsError> {
        let mut next = self.stored.clone();
        change(&mut next, &self.declared)?;
        next.write(&self.directory)?;
        self.stored = next;
        Ok(())
    }
}

// === impl Apps ===

impl Apps {
    /// Reads the apps that were added, and sets them beside the declared ones. The directory is the
    /// ledger's, and the caller holds its lock.
    pub fn open(state_dir: &Path, declared: Declared) -> Result<Self, AppsError> {
        let changing = AppList::read(Directory::open(state_dir)?, declared, None)?;
        Ok(Self {
            runs: Runs::default(),
            awaited: Awaited::read(&changing.directory),
            caps: OnceLock::new(),
            table: ArcSwap::from_pointee(changing.table()?),
            herald: OnceLock::new(),
            changing: Mutex::new(changing),
            changed: watch::Sender::new(()),
            opened: watch::Sender::new(()),
            ended: watch::Sender::new(()),
        })
    }

    /// From now on every change reaches these caps, and the runs of before the start are waited for.
    /// `now` is monotonic. Called once.
    pub fn govern(&self, caps: &Arc<Caps>, now: Duration) {
        let changing = self.changing.lock();
        // The first caps stay: a process has one gateway.
        let caps = self.caps.get_or_init(|| Arc::clone(caps));
        caps.reload(self.cap_rules(&changing.declared.caps));
        self.awaited.start(now);
    }

    /// `hear` is called with the table of this moment, and with each later one before a caller of it passes the door.
    /// Called once.
    pub fn announce(&self, hear: impl Fn(&Table) + Send + Sync + 'static) {
        let _changing = self.changing.lock();
        self.herald.get_or_init(|| Box::new(hear))(&self.table());
    }

    /// The apps that may spend at this moment.
    pub fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// The caller of a request at the monotonic time `now`. Runs' tokens are compared first; the token of a
    /// run whose app was removed is refused.
    pub fn caller(
        &self,
        token: Option<&[u8]>,
        user: Option<u32>,
        now: Duration,
    ) -> Result<Caller, Stranger> {
        let table = self.table();
        let hash = token.map(TokenHash::of);
        let run = hash.and_then(|hash| Some((hash, self.runs.with(hash)?)));
        let Some((hash, run)) = run else {
            let is_awaited = hash.is_some_and(|hash| self.awaited.holds(hash, now));
            return match table.app_of(token, user) {
                Ok(app) => Ok(Caller { app, run: None }),
                Err(_) if is_awaited => Err(Stranger::Awaited),
                Err(stranger) => Err(stranger),
            };
        };
        match table.app(&run.app) {
            Some(app) => {
                self.awaited.has_app(hash);
                Ok(Caller {
                    app: Arc::clone(app),
                    run: Some(run),
                })
            }
            None if self.awaited.holds_orphan(hash, now) => Err(Stranger::Awaited),
            None => Err(Stranger::WrongToken(TokenForm::Whole)),
        }
    }

    /// A run is about to open, perhaps again: its token is waited for.
    pub fn expect_run(&self, token: TokenHash, now: Duration) {
        self.awaited.expect(token, now);
    }

    /// Lets a token spend as this run, until what is answered is dropped. Blocks for the disk.
    pub fn open_run(self: &Arc<Self>, run: Run, token: TokenHash) -> Result<OpenRun, AppsError> {
        let run = Arc::new(run);
        self.runs.open(Arc::clone(&run), token)?;
        self.awaited.settle(token);
        let changing = self.changing.lock();
        let open = self.runs.tokens();
        if let Err(error) = self.awaited.write(&changing.directory, &open) {
            tracing::warn!(%error, "after a restart this run's token may be refused for a moment");
        }
        drop(changing);
        self.opened.send_replace(());
        Ok(OpenRun {
            apps: Arc::clone(self),
            run,
        })
    }

    /// Whether a run spends, over whatever connection holds it.
    pub fn is_open(&self, run: &Run) -> bool {
        self.runs.holds(&run.id)
    }

    /// Resolves when this run is no longer held open.
    pub async fn ended(&self, run: &Run) {
        let mut ended = self.ended.subscribe();
        while self.is_open(run) {
            // The sender lives as long as `self`.
            ended.changed().await.ok();
        }
    }

    /// A run that was expected did not open.
    pub fn expect_no_run(&self, token: TokenHash) {
        self.awaited.settle(token);
    }

    /// The caps of the apps as they are now.
    pub fn cap_rules(&self, caps: &config::CapsTable) -> Rules {
        rules_of(&self.table(), caps)
    }

    /// Marked whenever the table is another one.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Marked when a run opens.
    pub fn openings(&self) -> watch::Receiver<()> {
        self.opened.subscribe()
    }

    /// A reload: other apps and caps are declared. On an error nothing has changed.
    pub fn redeclare(&self, declared: Declared) -> Result<(), AppsError> {
        let mut changing = self.changing.lock();
        let table = Table::of(&declared, &changing.stored)?;
        changing.declared = declared;
        self.put_in_force(&changing, table);
        Ok(())
    }

    /// Adds an app and answers its token: nothing else knows it. Blocks for the disk.
    pub fn add(&self, new: &AppAdd, now_ms: u64) -> Result<Token, AppsError> {
        self.change(|changing| changing.add(new, now_ms))
    }

    /// Takes an app away; its token stops at once. Requests under way go on, those that wait for their
    /// turn are refused. Blocks for the disk.
    pub fn remove(&self, name: &str) -> Result<(), AppsError> {
        self.change(|changing| changing.remove(name))
    }

    /// Gives an app a new token; the old one stops at once. Blocks for the disk.
    pub fn rotate(&self, name: &str, now_ms: u64) -> Result<Token, AppsError> {
        self.change(|changing| changing.rotate(name, now_ms))
    }

    /// Sets caps of an app that was added; what it spent counts on. Blocks for the disk.
    pub fn set(&self, asked: &AppSet) -> Result<(), AppsError> {
        self.change(|changing| changing.set(asked))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut AppList) -> Result<T, AppsError>,
    ) -> Result<T, AppsError> {
        let mut changing = self.changing.lock();
        let changed = change(&mut changing)?;
        self.put_in_force(&changing, changing.table()?);
        Ok(changed)
    }

    /// Under the lock of the changes, and the caps before the door: no request passes the door before the
    /// caps know its app, and one that has passed it when its app is removed gets no room.
    fn put_in_force(&self, changing: &AppList, table: Table) {
        if let Some(hear) = self.herald.get() {
            hear(&table);
        }
        if let Some(caps) = self.caps.get() {
            caps.reload(rules_of(&table, &changing.declared.caps));
        }
        self.table.store(Arc::new(table));
        self.changed.send_replace(());
    }
}

// === impl OpenRun ===

impl Drop for OpenRun {
    fn drop(&mut self) {
        self.apps.runs.close(&self.run);
        self.apps.ended.send_replace(());
    }
}

/// The apps that may spend, read without a lock: for display only.
pub fn read(state_dir: &Path, declared: &Declared) -> Result<Table, AppsError> {
    let stored = match Directory::open_to_read(state_dir) {
        Ok(directory) => Stored::read(&directory)?,
        Err(error) if error.is_missing() => Stored::default(),
        Err(error) => return Err(error.into()),
    };
    Table::of(declared, &stored)
}

/// The caps of all apps there are: declared, added, and the app of callers that are none.
pub fn rules_of(table: &Table, caps: &config::CapsTable) -> Rules {
    let known = table.known().iter().map(|known| &*known.app);
    Rules::new(caps, known.chain([&**table.default_app()])).of_all_apps()
}

#[cfg(test)]
mod tests;
