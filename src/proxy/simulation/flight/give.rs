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
        let nobody = !self.here && !self.purchase.is_followed();
        if process.cutting || (nobody && world.chance.one_in(4)) {
            let reason = if process.cutting {
                InDoubt::Shutdown
            } else {
                world.count("drain ended");
                InDoubt::ClientGone
            };
            self.record(AttemptEnd::Broken, Some(200));
            let reached = Outlook::FlowBroken(forward);
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
            let reached = Outlook::FlowBroken(forward);
            return Ok(self.settle_with(world, process, reached, told, None));
        }
        if world.chance.one_in(2) {
            self.give_chunk(world, &mut forward)?;
            return Ok(Step::Flowing { receipt, forward });
        }
        world.count("stream ended");
        self.record(AttemptEnd::Answered, Some(200));
        let reached = Outlook::FlowDone(forward);
        Ok(self.settle_with(world, process, reached, receipt, None))
    }

    /// One piece: to the app, or recorded for whoever follows.
    fn give_chunk(&mut self, world: &mut World, forward: &mut Forward) -> Result<(), String> {
        let (purchase, head) = (Arc::clone(&self.purchase), answer_head());
        forward.gives_way(Some(&purchase), &head);
        if forward.is_to_app() {
            if self.here && !world.chance.one_in(12) {
                let is_first = !purchase.is_delivered();
                forward.wrote(Some(&purchase), true);
                return if is_first {
                    world.delivered(&purchase)
                } else {
                    Ok(())
                };
            }
            self.leave();
            if !forward.failed(Some(&purchase), &head) {
                return Ok(());
            }
        }
        let chunk = Bytes::from_static(b"data: {}\n\n");
        purchase.record_chunk(chunk).now_or_never();
        Ok(())
    }

    /// Writes what there is to write, and closes.
    pub(super) fn give(
        &mut self,
        world: &mut World,
        process: &mut Process,
        reached: Outlook,
    ) -> Result<Step, String> {
        match reached {
            Outlook::Success { .. } => {
                world.facts.giving(self.id, &world.reading)?;
                if self.here && world.chance.one_in(12) {
                    // "Of a slow one the ledger is told that it is under way still."
                    world.count("slow write");
                    self.tell(world, process, News::UnderWay);
                }
                self.write_whole(world, true)?;
            }
            Outlook::Refusal(_) | Outlook::Nothing | Outlook::Cut => {
                self.write_whole(world, false)?;
            }
            Outlook::FlowDone(mut forward) => {
                world.facts.giving(self.id, &world.reading)?;
                let is_kept = self.here && forward.is_to_app() && self.purchase.is_delivered();
                if is_kept && process.cutting {
                    world.count("kept end cut");
                    self.purchase.cuts_short();
                    self.is_cut(world);
                } else if is_kept && !world.chance.one_in(4) {
                    world.count("end kept");
                    self.tell(world, process, News::UnderWay);
                    return Ok(Step::Giving(Outlook::FlowDone(forward)));
                }
                self.give_chunk(world, &mut forward)?;
                if !forward.is_to_app() {
                    self.purchase.record_end(ReplayEnd::Complete);
                }
            }
            Outlook::FlowBroken(forward) => {
                if !forward.is_to_app() {
                    let end = ReplayEnd::Broken(Code::UpstreamBroken.into());
                    self.purchase.record_end(end);
                }
            }
            Outlook::Unsent => {}
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
        let (kind, head) = if is_answer {
            (Kind::Whole, answer_head())
        } else {
            (Kind::Error, refusal_head())
        };
        let mut forward = Forward::new(kind);
        forward.gives_way(Some(&purchase), &head);
        if forward.is_to_app() {
            if self.here {
                if !world.chance.one_in(10) {
                    forward.finished(Some(&purchase));
                    return if is_answer {
                        world.delivered(&purchase)
                    } else {
                        Ok(())
                    };
                }
                world.count("write failed");
                self.leave();
            }
            forward.failed(Some(&purchase), &head);
        }
        purchase
            .record_chunk(Bytes::from_static(b"{}"))
            .now_or_never();
        purchase.record_end(ReplayEnd::Complete);
        Ok(())
    }

    fn tell(&self, world: &World, process: &mut Process, news: News) {
        let queue = &mut process.scribe.queue;
        self.purchase.news(news, world.wall_ms(), |row, delivered| {
            queue.push(Command::Deliver(Box::new(row), delivered));
        });
    }

    pub fn close(&self, world: &mut World, process: &mut Process, fate: Fate) {
        let undelivered = fate != Fate::Closed;
        if undelivered {
            world.count("closed undelivered");
        }
        self.tell(world, process, fate.into());
        process.table.finish(&self.purchase, fate);
    }
}

fn answer_head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::OK, None).unwrap())
}

fn refusal_head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::BAD_GATEWAY, None).unwrap())
}
