//! The way to the app: chunks, whole answers, the tape for whoever follows, and the close.

use super::*;
use crate::proxy::purchase::fate::News;

impl Flight {
    pub(super) fn flow(
        &mut self,
        world: &mut World,
        process: &mut Process,
        receipt: Receipt,
        mut forward: Forward,
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
            let reached = Reached::FlowBroken(forward);
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
            let reached = Reached::FlowBroken(forward);
            return Ok(self.settle_with(world, process, reached, told, None));
        }
        if world.chance.one_in(2) {
            self.give_chunk(world, &mut forward)?;
            return Ok(Step::Flowing { receipt, forward });
        }
        world.count("stream ended");
        self.record(AttemptEnd::Answered, Some(200));
        let reached = Reached::FlowDone(forward);
        Ok(self.settle_with(world, process, reached, receipt, None))
    }

    /// One piece: to the app, or recorded for whoever follows.
    fn give_chunk(&mut self, world: &mut World, forward: &mut Forward) -> Result<(), String> {
        let (live, head) = (Arc::clone(&self.live), answer_head());
        forward.gives_way(Some(&live), &head);
        if forward.is_to_app() {
            if self.here && !world.chance.one_in(12) {
                let is_first = !live.is_delivered();
                forward.wrote(Some(&live), true);
                return if is_first {
                    world.delivered(&live)
                } else {
                    Ok(())
                };
            }
            self.leave();
            if !forward.failed(Some(&live), &head) {
                return Ok(());
            }
        }
        let chunk = Bytes::from_static(b"data: {}\n\n");
        live.record_chunk(chunk).now_or_never();
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
                self.write_whole(world, true)?;
            }
            Reached::Refusal(_) | Reached::Nothing | Reached::Cut => {
                self.write_whole(world, false)?;
            }
            Reached::FlowDone(mut forward) => {
                world.facts.giving(self.id, &world.reading)?;
                let is_kept = self.here && forward.is_to_app() && self.live.is_delivered();
                if is_kept && process.cutting {
                    world.count("kept end cut");
                    self.live.cuts_short();
                    self.is_cut(world);
                } else if is_kept && !world.chance.one_in(4) {
                    world.count("end kept");
                    self.tell(world, process, News::UnderWay);
                    return Ok(Step::Giving(Reached::FlowDone(forward)));
                }
                self.give_chunk(world, &mut forward)?;
                if !forward.is_to_app() {
                    self.live.record_end(TapeEnd::Complete);
                }
            }
            Reached::FlowBroken(forward) => {
                if !forward.is_to_app() {
                    let end = TapeEnd::Broken(Code::UpstreamBroken.into());
                    self.live.record_end(end);
                }
            }
            Reached::Unsent => {}
        }
        let fate = self.live.fate(self.state);
        self.close(world, process, fate);
        Ok(Step::Over)
    }

    /// bursar's stop cut what the app was given: after the restart its key is to be had.
    fn is_cut(&self, world: &mut World) {
        if let Some(key) = self.live.key.as_ref().filter(|_| !self.is_own()) {
            world.facts.cut(&key.value);
        }
    }

    /// All of it at once.
    fn write_whole(&mut self, world: &mut World, is_answer: bool) -> Result<(), String> {
        let live = Arc::clone(&self.live);
        let (kind, head) = if is_answer {
            (Kind::Whole, answer_head())
        } else {
            (Kind::Error, refusal_head())
        };
        let mut forward = Forward::new(kind);
        forward.gives_way(Some(&live), &head);
        if forward.is_to_app() {
            if self.here {
                if !world.chance.one_in(10) {
                    forward.finished(Some(&live));
                    return if is_answer {
                        world.delivered(&live)
                    } else {
                        Ok(())
                    };
                }
                world.count("write failed");
                self.leave();
            }
            forward.failed(Some(&live), &head);
        }
        live.record_chunk(Bytes::from_static(b"{}")).now_or_never();
        live.record_end(TapeEnd::Complete);
        Ok(())
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
