//! The way to the service and back: what gets lost, what is answered, and what follows.

use super::*;

impl Flight {
    pub(super) fn first_send(
        &mut self,
        world: &mut World,
        process: &mut Process,
    ) -> Result<Step, String> {
        if process.cutting {
            return Ok(self.settle(world, process, Outlook::Cut));
        }
        if !self.purchase.may_begin(&world.clock) {
            world.count("adopted key too old to send");
            return Ok(self.settle(world, process, Outlook::Nothing));
        }
        self.send(world, process)
    }

    fn send(&mut self, world: &mut World, process: &mut Process) -> Result<Step, String> {
        let ask = self.ask();
        world.may_send(&ask, self.is_own())?;
        if world.chance.one_in(10) {
            let cause = if world.chance.one_in(8) {
                Cause::Certificate
            } else {
                Cause::Connect
            };
            world.count("not sent");
            return Ok(self.lose(world, process, Lost::NotSent(cause)));
        }
        if world.chance.one_in(12) {
            world.count("lost on its way");
            return Ok(Step::Waiting(None));
        }
        let now_ms = world.true_ms;
        let job = world.service.arrive(ask, now_ms, &mut world.chance);
        world.count("sent");
        Ok(Step::Waiting(Some(job)))
    }

    pub(super) fn wait(
        &mut self,
        world: &mut World,
        process: &mut Process,
        job: Option<u64>,
    ) -> Step {
        if process.cutting && world.chance.one_in(4) {
            world.count("cut while waiting");
            self.record(AttemptEnd::NoHead, None);
            return self.settle(world, process, Outlook::Cut);
        }
        let Some(job) = job else {
            return self.lose(world, process, Lost::NoHead(Cause::Reset));
        };
        let is_hop = self.repeats == Repeats::Unkeyed || self.repeats == Repeats::Run;
        if is_hop && world.chance.one_in(12) {
            world.count("gateway answered");
            let status = if world.chance.one_in(2) { 502 } else { 504 };
            return self.refused(world, process, status, false);
        }
        match world.service.answer(job) {
            None if world.chance.one_in(14) => {
                world.count("no head came");
                self.lose(world, process, Lost::NoHead(Cause::Timeout))
            }
            None => Step::Waiting(Some(job)),
            Some(_) if world.chance.one_in(8) => {
                world.count("reply lost");
                let is_stale = self.route.retry.no_head && world.chance.one_in(3);
                let lost = if is_stale {
                    Lost::StaleConnection
                } else {
                    Lost::NoHead(Cause::Reset)
                };
                self.lose(world, process, lost)
            }
            Some(answer) if answer.status == 200 => self.answered(world, process, &answer),
            Some(answer) => {
                world.count("refused by the service");
                self.refused(world, process, answer.status, true)
            }
        }
    }

    fn answered(
        &mut self,
        world: &mut World,
        process: &mut Process,
        answer: &ServiceAnswer,
    ) -> Step {
        if world.chance.one_in(8) {
            world.count("broke behind its head");
            self.record(AttemptEnd::Broken, Some(200));
            let headers = if self.stream {
                HeaderMap::new()
            } else {
                self.headers(world, answer)
            };
            let names = Arc::clone(&world.names);
            self.retries
                .saw_broken_head(|| Receipt::from_headers(&names, &headers));
            return self.decide(world, process, Ending::Broken, Outlook::Nothing);
        }
        if self.stream {
            let mut receipt = Receipt::default();
            if world.chance.one_in(12) {
                world.count("stream without a receipt");
            } else {
                let value = shown(world, answer.shown);
                receipt.absorb_comment(&world.names, &world.names.comment_billed, &value);
                if answer.clarification {
                    let headers = self.headers(world, answer);
                    receipt = Receipt::from_headers(&world.names, &headers);
                }
            }
            return self.begin_stream(world, receipt);
        }
        self.record(AttemptEnd::Answered, Some(200));
        let headers = self.headers(world, answer);
        let mut receipt = Receipt::from_headers(&world.names, &headers);
        if self.route.receipt == ReceiptFrom::BodyCost {
            receipt.absorb_body_cost(Told::Value(MicroUsd::new(answer.shown)));
        }
        world.count("answered");
        let run_id = answer.run_id.clone();
        self.settle(world, process, Outlook::Success { receipt, run_id })
    }

    /// What the service's head contains, with the mistakes that a service may make.
    fn headers(&self, world: &mut World, answer: &ServiceAnswer) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let names = Arc::clone(&world.names);
        if self.route.receipt != ReceiptFrom::HeadersAndComments {
            return headers;
        }
        let value = |bytes: &[u8]| HeaderValue::from_bytes(bytes).unwrap();
        if answer.clarification {
            headers.append(&names.billed, value(b"0"));
            headers.append(&names.served_by, value(b"none"));
            headers.append(&names.input_required, value(b"document"));
        } else {
            match world.chance.below(16) {
                0 => world.count("receipt absent"),
                1 => {
                    world.count("receipt twice");
                    headers.append(&names.billed, value(answer.shown.to_string().as_bytes()));
                    headers.append(&names.billed, value(answer.shown.to_string().as_bytes()));
                }
                2 if answer.shown > 0 => {
                    world.count("receipts in conflict");
                    headers.append(&names.billed, value(answer.shown.to_string().as_bytes()));
                    headers.append(&names.billed, value(b"7"));
                }
                3 if answer.replayed => {
                    world.count("amount on a replay");
                    headers.append(&names.billed, value(b"77777"));
                }
                _ => {
                    let shown = shown(world, answer.shown);
                    headers.append(&names.billed, value(&shown));
                }
            }
            headers.append(&names.served_by, value(b"specialist"));
        }
        if answer.replayed {
            headers.append("idempotent-replayed", value(b"true"));
        }
        headers
    }

    fn lose(&mut self, world: &mut World, process: &mut Process, lost: Lost) -> Step {
        let ending = Ending::Lost(lost);
        self.record(self.retries.end_of(&ending), None);
        self.decide(world, process, ending, Outlook::Nothing)
    }

    fn refused(
        &mut self,
        world: &mut World,
        process: &mut Process,
        status: u16,
        has_json: bool,
    ) -> Step {
        let status = StatusCode::from_u16(status).unwrap();
        let mut headers = HeaderMap::new();
        match world.chance.below(8) {
            0 => headers.append("retry-after", HeaderValue::from_static("5")),
            1 => headers.append("x-should-retry", HeaderValue::from_static("false")),
            // An amount on a failure is not believed.
            2 => headers.append(&world.names.billed, HeaderValue::from_static("4711")),
            _ => false,
        };
        let ending = Ending::Refused(Refused {
            status,
            has_json,
            declines: declines_retry(&headers),
            asked: asked_wait(&headers, 0),
        });
        self.record(self.retries.end_of(&ending), Some(status.as_u16()));
        let receipt = Receipt::from_headers(&world.names, &headers);
        self.decide(world, process, ending, Outlook::Refusal(receipt))
    }

    fn decide(
        &mut self,
        world: &mut World,
        process: &mut Process,
        ending: Ending,
        otherwise: Outlook,
    ) -> Step {
        let may_repeat = self.purchase.may_repeat(&world.clock);
        let (now, share) = (world.monotonic(), world.chance.share());
        match self.retries.next(&ending, share, now, may_repeat) {
            Next::Repeat { wait, reason, .. } => {
                world.count(reason);
                let until = now + wait;
                Step::Resting { until, otherwise }
            }
            Next::Exhausted => {
                world.count("retries over");
                self.settle(world, process, otherwise)
            }
            Next::Stop => self.settle(world, process, otherwise),
        }
    }

    pub(super) fn rest(
        &mut self,
        world: &mut World,
        process: &mut Process,
        until: Duration,
        otherwise: Outlook,
    ) -> Result<Step, String> {
        if process.cutting {
            return Ok(self.settle(world, process, Outlook::Cut));
        }
        if world.monotonic() < until {
            return Ok(Step::Resting { until, otherwise });
        }
        self.look();
        let is_awaited = self.here || self.purchase.is_followed();
        if !Retries::resumes(is_awaited, self.purchase.may_repeat(&world.clock)) {
            world.count(if is_awaited {
                "key too old for a retry"
            } else {
                "nobody waits for a retry"
            });
            return Ok(self.settle(world, process, otherwise));
        }
        self.send(world, process)
    }
}

fn shown(world: &mut World, amount: u64) -> Vec<u8> {
    if world.chance.one_in(14) {
        world.count("receipt malformed");
        return format!("{amount} USD").into_bytes();
    }
    amount.to_string().into_bytes()
}
