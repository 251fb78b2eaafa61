//! One visit: what the fleet lacks of this ledger's journal is brought there.
//!
//! | the fleet's mark, against the journal | |
//! |---|---|
//! | the same hash there | ship what follows |
//! | another hash, or a number that the journal does not reach | this is a copy: find the last common line, take another name, ship what follows it |
//! | the same hash there, and another copy has shipped what follows it | under a name that has shipped nothing yet: the fleet passes over what both have; else the same |
//! | at a line that was compacted | the same hash over the sums up to there: ship the rest of them; else stop: nothing can be compared, and nothing is guessed |
//! | behind lines that are lost here, and that it has | its hash behind them stands in for theirs; what follows them shows whether they were the same |
//!
//! Promise: bounded memory, whatever is to be shipped; a visit that ends anywhere is gone on with by the next. The
//! database's mark is the truth, and what is kept here a hint.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::answer::FleetError;
use super::chain::Chain;
use super::database::{Fleet, Standing, Taken};
use super::identity::{FleetIdentity, IdentityError};
use super::lease_file::{KeptLeases, Machine};
use super::marks::Marks;
use crate::ledger::LedgerError;
use crate::ledger::query::{GapWhy, Place, Shelved, Since, compacted_seq, last_seq, lines_since};
use crate::ledger::state_dir::Directory;

/// Lines that are handed over at once.
const BATCH_LINES: usize = 500;

/// How often a visit begins anew: after a copy was noticed, or the fleet had forgotten something.
const TURNS_MAX: usize = 8;

/// A ledger that ships.
pub struct Shipping {
    state_dir: PathBuf,
    identity: FleetIdentity,
    marks: Marks,
    host_label: String,
    ship_people: bool,
    /// This and the next two until they are taken: lines that the fleet took, with ranges that the journal does not have.
    lines_shipped: u64,
    /// Lines that were refused for what is in them.
    lines_refused: u64,
    /// The fleet's mark, as its database stated it last.
    stated_seq: Option<u64>,
}

/// What a visit came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shipped {
    /// Lines, and ranges that the journal does not have.
    pub lines: u64,
    /// The last number that the fleet has.
    pub mark_seq: u64,
    /// The journal's own.
    pub journal_seq: u64,
    pub clock_ahead_ms: i64,
    /// It was a copy, and took another name.
    pub forked: bool,
}

/// A ledger by the name that it had when it said hello. Orders are heard whatever becomes of its lines.
pub struct Hearing {
    state_dir: PathBuf,
    identity: FleetIdentity,
    host_label: String,
}

/// Why a visit did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("the journal cannot be read: {0}")]
    Ledger(#[from] LedgerError),
    #[error(
        "the fleet has this ledger up to line {0}, and what could be compared with it was compacted here: its database \
         was restored from an older backup than [fleet] resend_days, or the file fleet-marks in the state directory is \
         gone. See docs/runbook.md, \"A restored database\""
    )]
    NeedsCompacted(u64),
    #[error(
        "lines of the journal are lost up to line {0}, and the fleet has others in their place: whether they were this \
         ledger's cannot be compared. Restore the journal, or the file fleet-marks in the state directory, from a backup. \
         See docs/runbook.md, \"BursarFleetBehind\""
    )]
    NeedsLost(u64),
    #[error("this ledger is in no fleet; a code below the URL lets it in (docs/fleet.md)")]
    NotJoined,
    #[error("the fleet's address in {path} cannot be used: {why}")]
    UrlFile { path: PathBuf, why: String },
    #[error("the fleet and this ledger do not come to agree on its last line")]
    Undecided,
    #[error("reading the journal ended by a panic")]
    Panicked,
}

/// The hash of this journal behind a number, and how what follows it is read.
enum Own {
    Known(Chain, Place),
    /// In a range that is lost here, which ends with this line.
    Lost(u64),
    /// No line ends there.
    Elsewhere,
}

// === impl Shipping ===

impl Shipping {
    /// `None`: this ledger is in no fleet.
    pub fn open(
        state_dir: PathBuf,
        host_label: String,
        ship_people: bool,
    ) -> Result<Option<Self>, Trouble> {
        let directory = Directory::open(&state_dir)?;
        let Some(identity) = FleetIdentity::read(&directory)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            marks: Marks::read(&directory, last_seq(&state_dir)?)?,
            state_dir,
            identity,
            host_label,
            ship_people,
            lines_shipped: 0,
            lines_refused: 0,
            stated_seq: None,
        }))
    }

    /// With a name that the fleet does not know yet, and that stays, whatever becomes of the first call.
    pub fn create(
        state_dir: PathBuf,
        host_label: String,
        ship_people: bool,
    ) -> Result<Self, Trouble> {
        let directory = Directory::open(&state_dir)?;
        // What was acknowledged before was so to another name.
        let marks = Marks::read(&directory, 0)?;
        let identity = FleetIdentity::new()?;
        identity.store(&directory)?;
        Ok(Self {
            marks,
            state_dir,
            identity,
            host_label,
            ship_people,
            lines_shipped: 0,
            lines_refused: 0,
            stated_seq: None,
        })
    }

    /// Has the fleet let this ledger in. Repeated, it changes nothing.
    pub async fn enrol(&mut self, fleet: &Fleet, code: &str) -> Result<(), Trouble> {
        let enrolment = fleet.enrol(code, &self.identity, &self.host_label);
        enrolment.await?;
        // What was acknowledged before was so by another fleet, or is forgotten.
        self.marks = Marks::read(&self.directory()?, 0)?;
        Ok(())
    }

    /// The fleet does not wait for this ledger any more. A copy takes its own name before that, for the leases that go back
    /// would be another machine's. `up_ms`: since the machine's start.
    pub async fn leave(&mut self, fleet: &Fleet, wall_ms: u64, up_ms: u64) -> Result<(), Trouble> {
        self.agree(fleet, wall_ms).await?;
        let ledger = self.identity.ledger;
        KeptLeases::forget_ahead(&self.directory()?, ledger, &Machine::this(), up_ms)?;
        Ok(fleet.leave(&self.identity).await?)
    }

    pub fn identity(&self) -> &FleetIdentity {
        &self.identity
    }

    pub fn hearing(&self) -> Hearing {
        Hearing {
            state_dir: self.state_dir.clone(),
            identity: self.identity.clone(),
            host_label: self.host_label.clone(),
        }
    }

    /// Whether what the fleet has under this ledger's name is this ledger's. A copy takes another name. Answers the
    /// fleet's mark.
    pub async fn agree(&mut self, fleet: &Fleet, wall_ms: u64) -> Result<u64, Trouble> {
        let mut shipped = Shipped::default();
        for _ in 0..TURNS_MAX {
            if self.agreed(fleet, wall_ms, &mut shipped).await?.is_some() {
                return Ok(shipped.mark_seq);
            }
        }
        Err(Trouble::Undecided)
    }

    /// How many lines the fleet took since this was asked last, also in visits that failed behind them.
    pub fn take_shipped(&mut self) -> u64 {
        std::mem::take(&mut self.lines_shipped)
    }

    /// The mark that the database stated last. `None`: it stated none since this was asked last.
    pub fn take_stated(&mut self) -> Option<u64> {
        self.stated_seq.take()
    }

    /// How many lines were refused since it was asked last.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.lines_refused)
    }

    /// What is kept of the marks can be less: opened again, it is.
    pub fn is_worn(&self) -> bool {
        self.marks.are_many()
    }

    /// The last line that the fleet ever acknowledged.
    pub fn acknowledged_seq(&self) -> u64 {
        self.marks.last_seq()
    }

    /// Brings everything there that was acknowledged when it began, and what came meanwhile.
    pub async fn visit(&mut self, fleet: &Fleet, wall_ms: u64) -> Result<Shipped, Trouble> {
        let mut shipped = Shipped::default();
        for _ in 0..TURNS_MAX {
            if let Some((chain, place)) = self.agreed(fleet, wall_ms, &mut shipped).await?
                && self.ship_from(fleet, chain, place, &mut shipped).await?
            {
                return Ok(shipped);
            }
        }
        Err(Trouble::Undecided)
    }

    /// The hash behind the fleet's mark, which is this journal's, too. `None`: this was a copy, and goes on under
    /// another name.
    async fn agreed(
        &mut self,
        fleet: &Fleet,
        wall_ms: u64,
        shipped: &mut Shipped,
    ) -> Result<Option<(Chain, Place)>, Trouble> {
        if self.identity.becomes.is_some() {
            shipped.forked |= self.become_another(fleet).await?;
        }
        shipped.journal_seq = self.journal_seq().await?;
        let (caller, label) = (&self.identity, &self.host_label);
        let journal_seq = Some(shipped.journal_seq);
        let hello = fleet.hello(caller, label, journal_seq, wall_ms);
        let standing = hello.await?;
        shipped.clock_ahead_ms = standing.clock_ahead_ms;
        shipped.mark_seq = standing.mark_seq;
        self.stated_seq = Some(standing.mark_seq);
        standing.admits()?;
        match self.chain_at(fleet, standing.mark_seq).await? {
            Own::Known(chain, place) if chain == standing.chain => {
                self.state_mark(fleet, standing.mark_seq).await?;
                self.marks.add(standing.mark_seq, &chain)?;
                Ok(Some((chain, place)))
            }
            Own::Known(..) | Own::Lost(_) | Own::Elsewhere => {
                self.take_another_name(fleet, standing.mark_seq).await?;
                Ok(None)
            }
        }
    }

    /// Shows a restored database that it is one, before it has the lines again that it forgot.
    async fn state_mark(&self, fleet: &Fleet, mark_seq: u64) -> Result<(), Trouble> {
        let acknowledged_seq = self.acknowledged_seq();
        if acknowledged_seq <= mark_seq {
            return Ok(());
        }
        match fleet.acknowledged(&self.identity, acknowledged_seq).await {
            // An older schema hears it with the leases alone.
            Err(FleetError::NoSchema) => Ok(()),
            stated => Ok(stated?),
        }
    }

    /// Ships until nothing is left. `false`: the fleet's mark is another than was thought.
    async fn ship_from(
        &mut self,
        fleet: &Fleet,
        mut chain: Chain,
        mut place: Place,
        shipped: &mut Shipped,
    ) -> Result<bool, Trouble> {
        loop {
            let lines = match self.lines_since(&mut place).await? {
                Since::These(lines) if lines.is_empty() => return Ok(true),
                Since::These(lines) => lines,
                Since::Compacted => return Err(Trouble::NeedsCompacted(place.seq)),
            };
            let own = chain.behind_each(&lines);
            let after = (shipped.mark_seq, &chain);
            shipped.journal_seq = self.journal_seq().await?;
            let taken = fleet
                .ship(
                    &self.identity,
                    after,
                    &lines,
                    self.ship_people,
                    shipped.journal_seq,
                )
                .await;
            let count = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
            if let Err(FleetError::Lines(_) | FleetError::Unshippable(_)) = taken {
                self.lines_refused = self.lines_refused.saturating_add(count(lines.len()));
            }
            let (mark_seq, there) = match taken? {
                Taken::All { mark_seq, chain } => (mark_seq, chain),
                Taken::Fork { mark_seq } => {
                    self.take_another_name(fleet, mark_seq).await?;
                    return Ok(false);
                }
                Taken::Behind { .. } => return Ok(false),
            };
            // A copy is asked again for what lies behind the last line that it was found to share.
            let Some(at) = own
                .iter()
                .position(|line| *line == (mark_seq, there.clone()))
            else {
                return Ok(false);
            };
            shipped.lines = shipped.lines.saturating_add(count(at + 1));
            self.lines_shipped = self.lines_shipped.saturating_add(count(at + 1));
            shipped.mark_seq = mark_seq;
            self.stated_seq = Some(mark_seq);
            place.seq = mark_seq;
            chain = there;
            self.marks.add(mark_seq, &chain)?;
        }
    }

    /// Finds the last line that both have, and notes the name that this copy takes.
    async fn take_another_name(&mut self, fleet: &Fleet, mark_seq: u64) -> Result<(), Trouble> {
        // What stands in sums was acknowledged by this name line by line, or is this name's own beginning: a copy has
        // it in common with the ledger that it was, or nothing can be compared.
        let compacted_seq = self.compacted_seq().await?;
        let floor_seq = match compacted_seq {
            0 => 0,
            compacted_seq => self.marks.from(compacted_seq).unwrap_or(compacted_seq) - 1,
        };
        let mut common_seq = floor_seq;
        let mut low = floor_seq;
        let mut high = mark_seq.min(self.journal_seq().await?);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match fleet.chain_at(&self.identity, middle).await? {
                Some((seq, chain)) if seq > common_seq => match self.chain_at(fleet, seq).await? {
                    Own::Known(own, _) if own == chain => {
                        common_seq = seq;
                        low = middle;
                    }
                    // The first line behind the range shows what they have in common.
                    Own::Lost(last_seq)
                        if last_seq < high && self.is_common(fleet, last_seq + 1).await? =>
                    {
                        common_seq = last_seq + 1;
                        low = common_seq;
                    }
                    Own::Known(..) | Own::Lost(_) | Own::Elsewhere => high = seq - 1,
                },
                Some(_) | None => low = middle,
            }
        }
        if compacted_seq > 0 && common_seq == floor_seq {
            return Err(Trouble::NeedsCompacted(mark_seq));
        }
        let common_seq = self.in_family(fleet, common_seq).await?;
        tracing::warn!(
            ledger = %self.identity.ledger,
            common_seq,
            "the fleet has other lines under this ledger's name, or these under another name: this is a copy, or the \
             other is. It takes a name of its own and ships what follows the last common line"
        );
        self.identity = self.identity.clone().becoming(common_seq)?;
        self.identity.store(&self.directory()?)?;
        Ok(())
    }

    /// The last line that this ledger and another copy of the same one have, from a line on: each has what they had in
    /// common when they were copied, and only one of them may count it.
    async fn in_family(&self, fleet: &Fleet, from_seq: u64) -> Result<u64, Trouble> {
        let mut common_seq = from_seq;
        let Own::Known(mut chain, mut place) = self.chain_at(fleet, from_seq).await? else {
            return Ok(common_seq);
        };
        loop {
            let Since::These(lines) = self.lines_since(&mut place).await? else {
                return Ok(common_seq);
            };
            let own = chain.behind_each(&lines);
            if own.is_empty() {
                return Ok(common_seq);
            }
            common_seq = match fleet.family_has(&self.identity, &own).await {
                Ok(Some(seq)) => seq,
                // An older schema cannot be asked.
                Ok(None) | Err(FleetError::NoSchema) => return Ok(common_seq),
                Err(error) => return Err(error.into()),
            };
            // Of months that were taken out it has ends of batches alone: there may be more behind it.
            let Some((_, common)) = own.into_iter().find(|(seq, _)| *seq == common_seq) else {
                return Ok(common_seq);
            };
            chain = common;
            place.seq = common_seq;
        }
    }

    /// Has the fleet confirm the name that was noted. False: it has forgotten the line that was common to both, and what is
    /// common now is looked for anew.
    async fn become_another(&mut self, fleet: &Fleet) -> Result<bool, Trouble> {
        let common_seq = self
            .identity
            .becomes
            .as_ref()
            .map_or(0, |one| one.common_seq);
        let Own::Known(common, _) = self.chain_at(fleet, common_seq).await? else {
            return Err(Trouble::Undecided);
        };
        let forked = fleet.fork(&self.identity, &common).await;
        let other = match forked {
            Ok(()) => self.identity.become_it(),
            Err(FleetError::Lines(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let is_another = other.is_some();
        self.identity = other.unwrap_or_else(|| self.identity.clone().as_it_is());
        self.identity.store(&self.directory()?)?;
        Ok(is_another)
    }

    /// At a line that the fleet has. Where lines were compacted, marks among them are of lines that are gone: the sums are
    /// read from their beginning.
    async fn chain_at(&self, fleet: &Fleet, seq: u64) -> Result<Own, Trouble> {
        let compacted_seq = self.compacted_seq().await?;
        let (at, mut chain) = match self.marks.before(seq) {
            (at, chain) if at >= compacted_seq => (at, chain),
            _ => (0, Chain::default()),
        };
        let mut place = Place::at(at);
        while place.seq < seq {
            let lines = match self.lines_since(&mut place).await? {
                Since::These(lines) => lines,
                Since::Compacted => return Err(Trouble::NeedsCompacted(seq)),
            };
            let begun = place.seq;
            for line in &lines {
                let last_seq = line.last_seq();
                let own = chain.then(line);
                chain = match is_loss(line) {
                    _ if place.seq == seq => break,
                    // It may have been shipped as lost.
                    true if last_seq == seq && self.is_there(fleet, seq, &own).await? => own,
                    true if last_seq >= seq => return Ok(Own::Lost(last_seq)),
                    true => self
                        .over_loss(fleet, (place.seq, &chain), line)
                        .await?
                        .unwrap_or(own),
                    false if last_seq > seq => break,
                    false => own,
                };
                place.seq = last_seq;
            }
            if place.seq == begun {
                return Ok(Own::Elsewhere);
            }
        }
        Ok(Own::Known(chain, place))
    }

    /// The fleet's hash behind a range that is lost here, where both have the same before it. `None`: the fleet has not got
    /// that far under this name, has other lines there, or has the range as lost, too.
    async fn over_loss(
        &self,
        fleet: &Fleet,
        (seq, chain): (u64, &Chain),
        loss: &Shelved,
    ) -> Result<Option<Chain>, Trouble> {
        let last_seq = loss.last_seq();
        let reaches = fleet.chain_at(&self.identity, u64::MAX).await?;
        if reaches.is_none_or(|(reached_seq, _)| reached_seq < last_seq)
            || self.is_there(fleet, last_seq, &chain.then(loss)).await?
        {
            return Ok(None);
        }
        if seq > 0 && self.there(fleet, seq).await? != *chain {
            return Ok(None);
        }
        self.there(fleet, last_seq).await.map(Some)
    }

    /// Whether the fleet has the same up to this line, which it and this ledger have.
    async fn is_common(&self, fleet: &Fleet, seq: u64) -> Result<bool, Trouble> {
        let there = self.there(fleet, seq).await?;
        Ok(match self.chain_at(fleet, seq).await? {
            Own::Known(own, _) => own == there,
            Own::Lost(_) | Own::Elsewhere => false,
        })
    }

    /// The fleet's hash behind this line. Of months that were taken out it has those behind batches alone, and then nothing
    /// is guessed.
    async fn there(&self, fleet: &Fleet, seq: u64) -> Result<Chain, Trouble> {
        match fleet.chain_at(&self.identity, seq).await? {
            Some((there_seq, there)) if there_seq == seq => Ok(there),
            _ => Err(Trouble::NeedsLost(seq)),
        }
    }

    /// Whether the fleet has this hash behind this line.
    async fn is_there(&self, fleet: &Fleet, seq: u64, chain: &Chain) -> Result<bool, Trouble> {
        let there = fleet.chain_at(&self.identity, seq).await?;
        Ok(there.is_some_and(|(there_seq, there)| (there_seq, &there) == (seq, chain)))
    }

    async fn lines_since(&self, place: &mut Place) -> Result<Since, Trouble> {
        let (state_dir, mut reached) = (self.state_dir.clone(), *place);
        let reading = spawn_blocking(move || {
            let lines = lines_since(&state_dir, &mut reached, BATCH_LINES)?;
            Ok::<_, LedgerError>((lines, reached))
        });
        let (lines, reached) = reading.await.map_err(|_| Trouble::Panicked)??;
        *place = reached;
        Ok(lines)
    }

    /// Up to which line the journal has sums; 0: nowhere.
    async fn compacted_seq(&self) -> Result<u64, Trouble> {
        let state_dir = self.state_dir.clone();
        let reading = spawn_blocking(move || compacted_seq(&state_dir));
        Ok(reading.await.map_err(|_| Trouble::Panicked)??)
    }

    async fn journal_seq(&self) -> Result<u64, Trouble> {
        journal_seq(&self.state_dir).await
    }

    fn directory(&self) -> Result<Directory, LedgerError> {
        Directory::open(&self.state_dir)
    }
}

// === impl Hearing ===

impl Hearing {
    /// Says that this ledger is there, and hears what is ordered.
    pub async fn hello(&self, fleet: &Fleet, wall_ms: u64) -> Result<Standing, Trouble> {
        // A journal that cannot be read keeps nothing from being heard.
        let journal_seq = journal_seq(&self.state_dir).await.ok();
        let hello = fleet.hello(&self.identity, &self.host_label, journal_seq, wall_ms);
        Ok(hello.await?)
    }

    /// Presents that it holds nothing of any shared cap.
    pub async fn hold_nothing(&self, fleet: &Fleet, machine: &str) -> Result<(), Trouble> {
        fleet.hold(&self.identity, machine, 0, &[]).await?;
        Ok(())
    }
}

fn is_loss(line: &Shelved) -> bool {
    matches!(
        line,
        Shelved::Gap {
            why: GapWhy::Lost,
            ..
        }
    )
}

pub async fn journal_seq(state_dir: &Path) -> Result<u64, Trouble> {
    let state_dir = state_dir.to_owned();
    let reading = spawn_blocking(move || last_seq(&state_dir));
    Ok(reading.await.map_err(|_| Trouble::Panicked)??)
}
