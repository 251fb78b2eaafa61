//! Tells a person that little of a cap is left: at the shares of `[caps] warn_at`, by what `[notify]` names.
//!
//! Why a task of its own: it looks at the caps after something was charged, so that no request waits for a look, a file
//! or a receiver. Between two looks is a pause: what is reached in the last moments of a window may bring no notice.
//!
//! Promise: a share brings at most one notice in a window of a limit, also after kill -9, for it is marked on the disk
//! before it is sent ([`marks`]). Of several that were reached between two looks the highest counts. One is sent at a
//! time, [`WAITING_MAX`] wait, further ones are counted as dropped; each has a line in the log whatever becomes of it.
//!
//! Lowest first: `marks` `notice` < `send` < this file, which looks and hands on.

mod marks;
mod notice;
mod send;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use self::marks::{Mark, Marks};
pub use self::notice::Notice;
pub use self::send::Unsent;
use self::send::{send, try_once};
use crate::caps::{CapView, Caps, CapsView};
use crate::clock::SharedClock;
use crate::config::{Config, Share};
use crate::telemetry::metrics::{Metrics, NoticeResult};

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// After marks that could not be written.
const AGAIN: Duration = Duration::from_secs(5);

/// Notices that wait while one is sent.
const WAITING_MAX: usize = 64;

/// Warns of caps.
pub struct Notices {
    config: ArcSwap<Config>,
    caps: Arc<Caps>,
    metrics: Arc<Metrics>,
    clock: SharedClock,
    state_dir: PathBuf,
    /// One is sent at a time.
    turn: Mutex<()>,
}

/// Why nothing was tried.
#[derive(Debug, thiserror::Error)]
pub enum TryError {
    #[error("[notify] names neither url nor command: nothing can be tried")]
    NoWay,
    #[error("{way}: {why}")]
    Unsent { way: String, why: Unsent },
}

// === impl Notices ===

impl Notices {
    pub fn new(
        config: Arc<Config>,
        caps: Arc<Caps>,
        metrics: Arc<Metrics>,
        clock: SharedClock,
    ) -> Arc<Self> {
        let state_dir = config.ledger.state_dir.clone();
        Arc::new(Self {
            config: ArcSwap::new(config),
            caps,
            metrics,
            clock,
            state_dir,
            turn: Mutex::new(()),
        })
    }

    /// The caps' own reload has them looked at again.
    pub fn reload(&self, config: Arc<Config>) {
        self.config.store(config);
    }

    /// Looks and sends until `stop` turns true. What waits then is not sent any more.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let (to_send, waiting) = mpsc::channel(WAITING_MAX);
        tokio::select! {
            () = self.look_always(to_send) => {}
            () = self.send_always(waiting) => {}
            // A sender that is gone has stopped, too.
            _ = stop.wait_for(|stopped| *stopped) => {}
        }
    }

    async fn look_always(&self, to_send: mpsc::Sender<Notice>) {
        let mut marks = self.read_marks().await;
        let mut is_failing = false;
        loop {
            let marked = self.look(&marks).await;
            let pause = match marked {
                Ok((new, notices)) => {
                    is_failing = false;
                    marks = new;
                    notices
                        .into_iter()
                        .for_each(|notice| self.hand_on(notice, &to_send));
                    LOOK_PAUSE
                }
                Err(why) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::error!(
                            why,
                            "the file `notified` in the state directory cannot be written: no warning of a cap is sent until it can"
                        );
                    }
                    AGAIN
                }
            };
            sleep(pause).await;
            if !is_failing {
                self.caps.moved().await;
            }
        }
    }

    async fn read_marks(&self) -> Marks {
        let state_dir = self.state_dir.clone();
        let read = spawn_blocking(move || Marks::read(&state_dir)).await;
        match read {
            Ok(Ok(marks)) => marks,
            Ok(Err(why)) => {
                tracing::error!(
                    why,
                    "the file `notified` in the state directory cannot be read: what the caps have reached by now \
                     counts as sent"
                );
                self.all_sent()
            }
            Err(_) => self.all_sent(),
        }
    }

    /// As if of everything that is reached a notice had been sent.
    fn all_sent(&self) -> Marks {
        let config = self.config.load();
        let mut marks = Marks::default();
        for (cap, share) in reached(&self.caps.view(), &config.caps.warn_at) {
            marks.add(Mark::of(cap, share));
        }
        marks
    }

    /// What is to be sent now, behind marks that are durable. An error: in words.
    async fn look(&self, marks: &Marks) -> Result<(Marks, Vec<Notice>), String> {
        let config = self.config.load_full();
        let view = self.caps.view();
        let mut new = marks.clone();
        let mut notices = Vec::new();
        for (cap, share) in reached(&view, &config.caps.warn_at) {
            if new.add(Mark::of(cap, share)) {
                notices.push(Notice::of(cap, share, view.time_zone.as_deref()));
            }
        }
        if notices.is_empty() {
            return Ok((new, notices));
        }
        new.prune(self.clock.wall_ms());
        let (state_dir, written) = (self.state_dir.clone(), new.clone());
        let written = spawn_blocking(move || written.write(&state_dir)).await;
        match written {
            Ok(Ok(())) => Ok((new, notices)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("writing failed".to_owned()),
        }
    }

    fn hand_on(&self, notice: Notice, to_send: &mpsc::Sender<Notice>) {
        tracing::warn!(
            cap = notice.scope(),
            period = notice.cap.as_str(),
            threshold = %notice.share,
            spent = %notice.spent,
            held = %notice.held,
            limit = %notice.limit,
            "a cap is used up to this share of it"
        );
        if self.config.load().notify.way.is_some() && to_send.try_send(notice).is_err() {
            self.metrics.notices.count(NoticeResult::Dropped);
            tracing::error!(
                waiting = WAITING_MAX,
                "a notice about a cap was dropped: so many wait to be sent"
            );
        }
    }

    async fn send_always(&self, mut waiting: mpsc::Receiver<Notice>) {
        while let Some(notice) = waiting.recv().await {
            let Some(way) = self.config.load().notify.way.clone() else {
                continue;
            };
            let sent = {
                let _turn = self.turn.lock().await;
                send(&way, &notice).await
            };
            match sent {
                Ok(()) => self.metrics.notices.count(NoticeResult::Sent),
                Err(why) => {
                    self.metrics.notices.count(NoticeResult::Failed);
                    tracing::error!(%way, %why, "a notice about a cap could not be sent");
                }
            }
        }
    }

    /// Sends a notice that says it is a trial, once, as this process sends all others. What it was sent by.
    pub async fn try_now(&self) -> Result<String, TryError> {
        let way = self.config.load().notify.way.clone();
        let way = way.ok_or(TryError::NoWay)?;
        let notice = Notice::trial(self.clock.wall_ms());
        let _turn = self.turn.lock().await;
        match try_once(&way, &notice).await {
            Ok(()) => Ok(way.to_string()),
            Err(why) => Err(TryError::Unsent {
                way: way.to_string(),
                why,
            }),
        }
    }
}

/// The caps that have reached a share, each with the highest.
fn reached<'a>(view: &'a CapsView, shares: &[Share]) -> impl Iterator<Item = (&'a CapView, Share)> {
    view.caps.iter().filter_map(|cap| {
        let counted = cap.spent.get().saturating_add(cap.held.get());
        let mut shares = shares.iter().rev();
        let share = shares.find(|share| share.is_reached(counted, cap.limit.get()))?;
        Some((cap, *share))
    })
}

#[cfg(test)]
mod tests;
