//! The way to the app: chunks, whole answers, the tape for whoever follows, and the close.

use super::*;
use crate::proxy::purchase::handover::News;

impl Flight {
    pub(super) fn flow(
        &mut self,
        world: &mut World,
        process: &mut Process,
        receipt: Receipt,
        mut on_tape: bool,
        mut given: bool,
    ) -> Result<Step, String> {
        let nobody = !self.here && !self.live.is_followed();
        if process.cutting || (nobody && world.chance.one_in(4)) {
            let reason = if process.cutting {
                InDoubt::Shutdown
            } else {
                world.count("drain ended");
                InDoubt::ClientGone
            };
            self.record(AttemptEnd::Broken, Some(200));
            let reached = Reached::FlowBroken { on_tape };
            let step = self.settle_with(world, process, reached, Receipt::default(), Some(reason));
            if process.cutting {
                world.count("stream cut");
                self.is_cut(world);
            }
            return Ok(step);
        }
        if world.chance.one_in(10) {
            world.count("stream broke");
            self.record(AttemptEnd::Broken, Some(200));
            let told = if world.chance.one_in(3) {
                receipt
            } else {
                Receipt::default()
            };
            let reached = Reached::FlowBroken { on_tape };
            return Ok(self.settle_with(world, process, reached, told, None));
        }
        if world.chance.one_in(2) {
            self.give_chunk(world, &mut on_tape, &mut given)?;
            return Ok(Step::Flowing {
                receipt,
                on_tape,
                given,
            });
        }
        world.count("stream ended");
        self.record(AttemptEnd::Answered, Some(200));
        let reached = Reached::FlowDone { on_tape, given };
        Ok(self.settle_with(world, process, reached, receipt, None))
    }

    /// `Relay::give`: to the app, or to the tape for whoever follows.
    fn give_chunk(
        &mut self,
        world: &mut World,
        on_tape: &mut bool,
        given: &mut bool,
    ) -> Result<(), String> {
        if !*on_tape && !*given && !self.live.take() {
            *on_tape = true;
            self.live.record_head(answer_head(), true);
        }
        if !*on_tape {
            if self.here && !world.chance.one_in(12) {
                if !*given {
                    *given = true;
                    self.delivered = true;
                    self.live.handed_out();
                    world.delivered(&self.live)?;
                }
                return Ok(());
            }
            self.leave();
            if *given {
                return Ok(());
            }
            self.live.not_taken();
            *on_tape = true;
            self.live.record_head(answer_head(), true);
        }
        let chunk = Bytes::from_static(b"data: {}\n\n");
        self.live.record_chunk(chunk).now_or_never();
        Ok(())
    }

    /// Writes what there is to write, and closes.
    pub(super) fn give(
        &mut self,
        world: &mut World,
        process: &mut Process,
        reached: Reached,
    ) -> Result<Step, String> {
        match reached {
            Reached::Success { .. } => {
                world.facts.giving(self.id, &world.reading)?;
                if self.here && world.chance.one_in(12) {
                    // "Of a slow one the ledger is told that it is under way still."
                    world.count("slow write");
                    self.tell(world, process, News::UnderWay);
                }
                self.delivered = self.write_whole(world, true)?;
            }
            Reached::Refusal(_) | Reached::Nothing | Reached::Cut => {
                self.write_whole(world, false)?;
            }
            Reached::FlowDone {
                mut on_tape,
                mut given,
            } => {
                world.facts.giving(self.id, &world.reading)?;
                let is_kept = given && self.here && !on_tape;
                if is_kept && process.cutting {
                    world.count("kept end cut");
                    self.live.cuts_short();
                    self.is_cut(world);
                } else if is_kept && !world.chance.one_in(4) {
                    world.count("end kept");
                    self.tell(world, process, News::UnderWay);
                    return Ok(Step::Giving(Reached::FlowDone { on_tape, given }));
                }
                self.give_chunk(world, &mut on_tape, &mut given)?;
                if on_tape {
                    self.live.record_end(TapeEnd::Complete);
                }
            }
            Reached::FlowBroken { on_tape } => {
                if on_tape {
                    let end = TapeEnd::Broken(Code::UpstreamBroken.into());
                    self.live.record_end(end);
                }
            }
            Reached::Unsent => {}
        }
        let fate = self.live.fate(self.state, self.delivered);
        self.close(world, process, fate);
        Ok(Step::Over)
    }

    /// bursar's stop cut what the app was given: after the restart its key is to be had.
    fn is_cut(&self, world: &mut World) {
        if let Some(key) = self.live.key.as_ref().filter(|_| !self.is_own()) {
            world.facts.cut(&key.value);
        }
    }

    /// `Relay::give_whole`.
    fn write_whole(&mut self, world: &mut World, is_answer: bool) -> Result<bool, String> {
        let taken = self.live.take();
        if self.here && taken {
            if !world.chance.one_in(10) {
                if is_answer {
                    self.live.handed_out();
                    world.delivered(&self.live)?;
                }
                return Ok(is_answer);
            }
            world.count("write failed");
            self.leave();
        }
        if taken {
            self.live.not_taken();
        }
        let head = if is_answer {
            answer_head()
        } else {
            refusal_head()
        };
        self.live.record_head(head, false);
        self.live
            .record_chunk(Bytes::from_static(b"{}"))
            .now_or_never();
        self.live.record_end(TapeEnd::Complete);
        Ok(false)
    }

    fn tell(&self, world: &World, process: &mut Process, news: News) {
        let queue = &mut process.scribe.queue;
        self.live.news(news, world.wall_ms(), |row, delivered| {
            queue.push(Command::Deliver(Box::new(row), delivered));
        });
    }

    pub fn close(&self, world: &mut World, process: &mut Process, fate: Fate) {
        let undelivered = fate != Fate::Closed;
        if undelivered {
            world.count("closed undelivered");
        }
        self.tell(world, process, fate.into());
        process.table.finish(&self.live, fate);
    }
}

fn answer_head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::OK, None).unwrap())
}

fn refusal_head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::BAD_GATEWAY, None).unwrap())
}
