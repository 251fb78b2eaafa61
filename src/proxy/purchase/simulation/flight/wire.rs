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
        let queues = self.route.is_inference();
        let (attempts, action) = RetryLoop::begin(queues, self.purchase.may_begin(&world.clock));
        self.attempts = Some(attempts);
        if let AttemptAction::Refuse(_) = action {
            world.count("adopted key too old to send");
        }
        self.acts(world, process, action, Outlook::Nothing)
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
            return self.lose(world, process, Lost::NotSent(cause));
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
    ) -> Result<Step, String> {
        if process.cutting && world.chance.one_in(4) {
            world.count("cut while waiting");
            self.record(AttemptEnd::NoHead, None);
            return Ok(self.settle(world, process, Outlook::Cut));
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
            None => Ok(Step::Waiting(Some(job))),
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
    ) -> Result<Step, String> {
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
                let names = &world.names;
                receipt = receipt.with_comment(names, &names.comment_billed, &value);
                if answer.clarification {
                    let headers = self.headers(world, answer);
                    receipt = Receipt::from_headers(&world.names, &headers);
                }
            }
            return Ok(self.begin_stream(world, receipt));
        }
        self.record(AttemptEnd::Answered, Some(200));
        let headers = self.headers(world, answer);
        let mut receipt = Receipt::from_headers(&world.names, &headers);
        if self.route.receipt == ReceiptFrom::BodyCost {
            receipt = receipt.with_body_cost(Reported::Value(MicroUsd::new(answer.shown)));
        }
        world.count("answered");
        let run_id = answer.run_id.clone();
        Ok(self.settle(world, process, Outlook::Success { receipt, run_id }))
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

    fn lose(
        &mut self,
        world: &mut World,
        process: &mut Process,
        lost: Lost,
    ) -> Result<Step, String> {
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
    ) -> Result<Step, String> {
        let status = StatusCode::from_u16(status).unwrap();
        let mut headers = HeaderMap::new();
        match world.chance.below(8) {
            0 => headers.append("retry-after", HeaderValue::from_static("5")),
            1 => headers.append("x-should-retry", HeaderValue::from_static("false")),
            // An amount on a failure is not believed.
            2 => headers.append(&world.names.billed, HeaderValue::from_static("4711")),
            _ => false,
        };
        let ending = Ending::Refused(ErrorHead {
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
        last: Outlook,
    ) -> Result<Step, String> {
        self.goes_on(world, process, AttemptEvent::Ended(ending), last)
    }

    /// What the loop of attempts makes of an event.
    fn goes_on(
        &mut self,
        world: &mut World,
        process: &mut Process,
        event: AttemptEvent,
        last: Outlook,
    ) -> Result<Step, String> {
        self.look();
        let view = AttemptView {
            now: world.monotonic(),
            share: world.chance.share(),
            may_repeat: self.purchase.may_repeat(&world.clock),
            wanted: match (self.here, self.purchase.is_followed()) {
                (true, _) => WantedBy::ItsApp,
                (false, true) => WantedBy::Follower,
                (false, false) => WantedBy::NoApp,
            },
        };
        let is_asked = matches!(event, AttemptEvent::Leave { .. });
        let attempts = self.attempts.as_mut().ok_or("attempts of no loop")?;
        let action = attempts.on(event, &self.retries, view);
        match &action {
            AttemptAction::EndAsLast { exhausted: true } => world.count("retries over"),
            AttemptAction::EndAsLast { .. } if view.wanted == WantedBy::NoApp => {
                world.count("nobody waits for a retry");
            }
            AttemptAction::EndAsLast { .. } if is_asked && !view.may_repeat => {
                world.count("key too old for a retry");
            }
            AttemptAction::Wait { beyond: true, .. } => world.count("waits beyond the crowd"),
            AttemptAction::Send(Some(repeat)) => world.count(repeat.reason),
            _ => {}
        }
        self.acts(world, process, action, last)
    }

    fn acts(
        &mut self,
        world: &mut World,
        process: &mut Process,
        action: AttemptAction,
        last: Outlook,
    ) -> Result<Step, String> {
        match action {
            AttemptAction::Send(_) => self.send(world, process),
            AttemptAction::EndAsLast { .. } => Ok(self.settle(world, process, last)),
            AttemptAction::Refuse(refusal) => {
                world.count("refused between attempts");
                let is_unknown = refusal.code == Code::OutcomeUnknown;
                if self.retries.attempts().is_empty() && !is_unknown {
                    return Err("refused before its first attempt".to_owned());
                }
                Ok(self.settle(world, process, Outlook::Nothing))
            }
            action => Ok(Step::Between {
                action,
                since: world.monotonic(),
                last,
            }),
        }
    }

    /// Between two attempts: chance decides how what is waited for comes.
    pub(super) fn between(
        &mut self,
        world: &mut World,
        process: &mut Process,
        action: AttemptAction,
        since: Duration,
        last: Outlook,
    ) -> Result<Step, String> {
        if process.cutting {
            return Ok(self.settle(world, process, Outlook::Cut));
        }
        let waits_since = world.monotonic().saturating_sub(since);
        let event = match action {
            AttemptAction::Wait { wait, .. } if waits_since < wait => {
                let step = Step::Between {
                    action,
                    since,
                    last,
                };
                return Ok(step);
            }
            AttemptAction::Wait { beyond: false, .. } if world.chance.one_in(12) => {
                AttemptEvent::Crowded(Code::QueueFull.into())
            }
            AttemptAction::Wait { .. } | AttemptAction::Queue { .. } if world.chance.one_in(24) => {
                AttemptEvent::Halted(Code::Frozen.into())
            }
            AttemptAction::Wait { .. } => AttemptEvent::Waited,
            AttemptAction::Queue { while_here } => match world.chance.below(12) {
                0 => AttemptEvent::NoPlace,
                1 => AttemptEvent::QueueClosed,
                _ if while_here && self.has_hung_up() => AttemptEvent::AppLeft,
                _ => AttemptEvent::Placed,
            },
            _ => {
                let of =
                    |world: &mut World, code: Code| world.chance.one_in(16).then(|| code.into());
                AttemptEvent::Leave {
                    halt: of(world, Code::Frozen),
                    limit: of(world, Code::CapReached),
                }
            }
        };
        self.goes_on(world, process, event, last)
    }
}

fn shown(world: &mut World, amount: u64) -> Vec<u8> {
    if world.chance.one_in(14) {
        world.count("receipt malformed");
        return format!("{amount} USD").into_bytes();
    }
    amount.to_string().into_bytes()
}
