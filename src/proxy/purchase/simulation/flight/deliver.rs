//! The way to the app: [`AnswerFlow`] decides, and chance has its actions succeed, fail or wait.

use super::super::transcript::is_end_mark;
use super::*;
use crate::proxy::purchase::event::{EndMark, Loss, Read, Stop, Then, Wait};

impl Flight {
    /// A stream begins: its first piece is a move of the service's as any other.
    pub(super) fn begin_stream(&self, world: &mut World, receipt: Receipt) -> Step {
        let terms = Terms {
            form: AnswerForm::Chat,
            is_metered: true,
            is_cancelled: world.chance.one_in(8),
            stream_time: STREAM_TIME,
            document_time: STREAM_TIME,
        };
        let purchase = Some(Arc::clone(&self.purchase));
        Step::Flowing(Box::new(Flowing {
            receipt,
            answer: AnswerFlow::flowing(terms, answer_head(), purchase),
            action: Action::Read(Wait::Long),
            since: world.monotonic(),
        }))
    }

    /// Carries out the action that was handed out last, or lets it wait.
    pub(super) fn flow(
        &mut self,
        world: &mut World,
        process: &mut Process,
        mut flowing: Box<Flowing>,
    ) -> Result<Step, String> {
        let Some(event) = self.carry_out(world, process, &mut flowing)? else {
            return Ok(Step::Flowing(flowing));
        };
        self.flows_on(world, process, flowing, event)
    }

    /// What the machine makes of an event.
    fn flows_on(
        &mut self,
        world: &mut World,
        process: &mut Process,
        mut flowing: Box<Flowing>,
        event: Event,
    ) -> Result<Step, String> {
        if flowing.answer.asks_for_app() {
            self.look();
        }
        let app = self.app(world, &flowing.answer);
        let was_delivered = self.is_delivered();
        flowing.action = flowing.answer.on(event, &app);
        flowing.since = world.monotonic();
        let waits_long = matches!(flowing.action, Action::Read(Wait::Long));
        if waits_long && app.presence == Presence::Gone {
            return Err("an answer is read without a reader without an end".to_owned());
        }
        if !was_delivered && self.is_delivered() {
            let purchase = Arc::clone(&self.purchase);
            world.delivered(&purchase)?;
        }
        match flowing.action {
            Action::Settle { ending, .. } => {
                let (end, _, cut_by) = ending.recorded();
                let receipt = match ending {
                    AnswerEnd::Complete => flowing.receipt.clone(),
                    AnswerEnd::Broke(_) if world.chance.one_in(3) => flowing.receipt.clone(),
                    AnswerEnd::Broke(_) => Receipt::default(),
                    AnswerEnd::Stopped(stop) => {
                        world.count(match stop {
                            Stop::Shutdown => "stream cut",
                            Stop::NoRoom => "drain refused",
                            Stop::Cancelled => "drain cancelled",
                            Stop::Displaced => "drain displaced",
                            Stop::Bounds | Stop::Unread => "drain ended",
                        });
                        Receipt::default()
                    }
                };
                self.record(end, Some(200));
                let outlook = Outlook::Flow(flowing);
                let step = self.settle_with(world, process, outlook, receipt, cut_by);
                if cut_by == Some(InDoubt::Shutdown) {
                    self.is_cut(world);
                }
                Ok(step)
            }
            Action::Refuse(_) => Ok(Step::Giving(Outlook::Nothing)),
            Action::Done(_) => {
                self.close(world, process, self.purchase.fate(self.state));
                Ok(Step::Over)
            }
            _ => Ok(Step::Flowing(flowing)),
        }
    }

    /// The outcome of a stream was written, or not.
    pub(super) fn flow_settled(
        &mut self,
        world: &mut World,
        process: &mut Process,
        flowing: Box<Flowing>,
        ok: bool,
    ) -> Result<Step, String> {
        let event = if ok { Event::Did } else { Event::Refused };
        self.flows_on(world, process, flowing, event)
    }

    /// What the shells see of the app.
    fn app(&self, world: &mut World, answer: &AnswerFlow) -> AppView {
        AppView {
            now: world.monotonic(),
            presence: self.presence(),
            is_proven: self.is_proven,
            held: self.held.clone(),
            is_displaced: answer.is_drained() && world.chance.one_in(12),
        }
    }

    /// How an action went. `None`: it waits.
    fn carry_out(
        &mut self,
        world: &mut World,
        process: &mut Process,
        flowing: &mut Flowing,
    ) -> Result<Option<Event>, String> {
        let is_settled = flowing.answer.is_settled();
        let event = match flowing.action.clone() {
            Action::Read(wait) => return Ok(self.hear(world, process, flowing, wait)),
            Action::Drain if world.chance.one_in(6) => Event::Refused,
            Action::Drain => {
                world.count("drain begun");
                Event::Did
            }
            Action::Write { piece, .. } => {
                if is_settled || is_end_mark(&piece) {
                    world.facts.giving(self.id, &world.reading)?;
                }
                if is_settled {
                    let is_kept = self.presence() == Presence::Here && self.is_delivered();
                    if is_kept && process.cutting {
                        world.count("kept end cut");
                        self.is_cut(world);
                        return Ok(Some(Event::Lost(Loss::Cut)));
                    }
                    if is_kept && !world.chance.one_in(4) {
                        world.count("end kept");
                        self.note(world, process, Delivery::Pending);
                        return Ok(None);
                    }
                }
                self.write(world, piece)?
            }
            Action::Keep(piece) => {
                if is_end_mark(&piece) {
                    world.facts.giving(self.id, &world.reading)?;
                }
                match self.purchase.record_chunk(piece).now_or_never() {
                    Some(()) => Event::Did,
                    None if process.cutting => {
                        world.count("keeping cut");
                        self.is_cut(world);
                        Event::Lost(Loss::Cut)
                    }
                    None => return Ok(None),
                }
            }
            Action::Warn(warning) => self.write(world, warning)?,
            Action::Finish => {
                world.facts.giving(self.id, &world.reading)?;
                if !self.takes(world) {
                    Event::Lost(Loss::AppGone)
                } else if process.cutting && world.chance.one_in(4) {
                    self.leave();
                    if self.is_delivered() {
                        world.count("finish cut");
                        self.is_cut(world);
                    }
                    Event::Lost(Loss::Cut)
                } else {
                    if let Some(last) = self.held.take() {
                        self.given.takes(&last)?;
                    }
                    world.streams.ended_cleanly(self.id, &self.given)?;
                    Event::Did
                }
            }
            Action::Break => {
                self.leave();
                Event::Did
            }
            Action::FreePlace | Action::Leave(_) => Event::Did,
            action => return Err(format!("no action of a stream that flows: {action:?}")),
        };
        Ok(Some(event))
    }

    /// The service's next move. `None`: it is silent.
    fn hear(
        &self,
        world: &mut World,
        process: &Process,
        flowing: &Flowing,
        wait: Wait,
    ) -> Option<Event> {
        let mut read = Read {
            bytes: 10,
            piece: None,
            end_mark: EndMark::None,
            then: Then::More,
        };
        if process.cutting {
            read.then = Then::Stopped;
            return Some(Event::Read(read));
        }
        let limit = match wait {
            Wait::WhileFollowed if !self.purchase.is_followed() => {
                world.count("follower left the leader");
                return Some(Event::Changed);
            }
            Wait::Long | Wait::WhileFollowed => None,
            Wait::AtMost(limit) | Wait::TheEnd(limit) => Some(limit),
        };
        let waited = world.monotonic().saturating_sub(flowing.since);
        if limit.is_some_and(|limit| waited >= limit) {
            return Some(Event::TimeUp);
        }
        let is_settled = flowing.answer.is_settled();
        match world.chance.below(20) {
            0..=1 => {
                world.count("stream broke");
                read.then = Then::Broke(Cause::Reset);
            }
            2..=8 if !is_settled => {
                read.piece = Some(world.streams.piece(self.id));
                if flowing.answer.is_drained() && world.chance.one_in(8) {
                    read.bytes = 17 * 1024 * 1024;
                }
            }
            9..=12 => {
                world.count("stream ended");
                if !is_settled {
                    read.piece = Some(world.streams.piece(self.id));
                    let held = Some(world.streams.end_mark(self.id));
                    read.end_mark = EndMark::Came { held };
                }
                read.then = Then::Ended {
                    rest: Vec::new(),
                    is_priced: true,
                };
            }
            13..=14 if !is_settled => {
                world.count("end mark came");
                let held = Some(world.streams.end_mark(self.id));
                read.end_mark = EndMark::Came { held };
            }
            15 if !is_settled => {
                world.count("stream ended without its mark");
                let is_priced = world.chance.one_in(2);
                let rest = vec![world.streams.piece(self.id)];
                if is_priced {
                    world.streams.ends_priced(self.id);
                }
                read.then = Then::Ended { rest, is_priced };
            }
            16 => return Some(Event::Changed),
            _ => return None,
        }
        Some(Event::Read(read))
    }

    /// A piece, to a connection that may hold each back for its successor.
    fn write(&mut self, world: &mut World, piece: Bytes) -> Result<Event, String> {
        if !self.takes(world) {
            return Ok(Event::Lost(Loss::AppGone));
        }
        let out = match self.is_close_delimited {
            true => self.held.replace(piece),
            false => Some(piece),
        };
        let Some(out) = out else {
            world.count("held back");
            return Ok(Event::Wrote(Written::Held));
        };
        self.given.takes(&out)?;
        Ok(Event::Wrote(Written::Out))
    }

    /// Whether the app takes what is written; else it has gone.
    fn takes(&mut self, world: &mut World) -> bool {
        let takes = match self.presence() {
            Presence::Here => !self.has_hung_up() && !world.chance.one_in(12),
            Presence::Suspect => world.chance.one_in(2),
            Presence::Gone => false,
        };
        if takes && self.presence() == Presence::Suspect {
            world.count("a suspect reads");
            self.is_proven = true;
        }
        if !takes {
            self.leave();
        }
        takes
    }

    /// Writes what there is to write, and closes.
    pub(super) fn give(
        &mut self,
        world: &mut World,
        process: &mut Process,
        outlook: Outlook,
    ) -> Result<Step, String> {
        match outlook {
            Outlook::Success { .. } => {
                world.facts.giving(self.id, &world.reading)?;
                if self.here && world.chance.one_in(12) {
                    // "Of a slow one the ledger notes that it is under way still."
                    world.count("slow write");
                    self.note(world, process, Delivery::Pending);
                }
                self.write_whole(world, true)?;
            }
            Outlook::Refusal(_) | Outlook::Nothing | Outlook::Cut => {
                self.write_whole(world, false)?;
            }
            Outlook::Unsent | Outlook::Flow(_) => {}
        }
        let fate = self.purchase.fate(self.state);
        self.close(world, process, fate);
        Ok(Step::Over)
    }

    /// bursar's stop cut what the app was given: after the restart its key is to be had.
    fn is_cut(&self, world: &mut World) {
        if let Some(key) = self.purchase.key.as_ref().filter(|_| !self.is_own()) {
            world.facts.cut(&key.value);
        }
    }

    /// All of it at once.
    fn write_whole(&mut self, world: &mut World, is_answer: bool) -> Result<(), String> {
        let purchase = Arc::clone(&self.purchase);
        let head = if is_answer {
            answer_head()
        } else {
            refusal_head()
        };
        self.look();
        let body = Bytes::from_static(b"{}");
        let mut answer = AnswerFlow::whole(is_answer, head, body, Some(Arc::clone(&purchase)));
        let mut app = self.app(world, &answer);
        let mut action = answer.begin(&app);
        loop {
            let event = match action {
                Action::WriteWhole(_) if self.takes(world) => Event::Did,
                Action::WriteWhole(_) => {
                    world.count("write failed");
                    Event::Lost(Loss::AppGone)
                }
                Action::Keep(body) => {
                    purchase.record_chunk(body).now_or_never();
                    Event::Did
                }
                Action::Done(done) if done.is_whole && is_answer => {
                    return world.delivered(&purchase);
                }
                Action::Done(_) => return Ok(()),
                action => return Err(format!("no action of a whole answer: {action:?}")),
            };
            app = self.app(world, &answer);
            action = answer.on(event, &app);
        }
    }

    fn note(&self, world: &World, process: &mut Process, delivery: Delivery) {
        let queue = &mut process.scribe.queue;
        self.purchase
            .note_delivery(delivery, world.wall_ms(), |row, delivered| {
                queue.push(Command::Deliver(Box::new(row), delivered));
            });
    }

    pub fn close(&self, world: &mut World, process: &mut Process, fate: Fate) {
        let undelivered = fate != Fate::Closed;
        if undelivered {
            world.count("closed undelivered");
        }
        self.note(world, process, fate.into());
        process.table.finish(&self.purchase, fate);
    }
}

/// As in the configuration's default.
const STREAM_TIME: Duration = Duration::from_secs(120);

fn answer_head() -> Arc<ResponseHeader> {
    let mut head = ResponseHeader::build(StatusCode::OK, None).unwrap();
    head.insert_header("content-type", "text/event-stream")
        .unwrap();
    Arc::new(head)
}

fn refusal_head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::BAD_GATEWAY, None).unwrap())
}
