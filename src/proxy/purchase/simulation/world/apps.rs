//! The apps: equal requests, own keys, retries, connections that end, followers, polls of runs.

use pingora::http::ResponseHeader;

use super::*;
use crate::ledger::undelivered::Delivery;

impl World {
    /// A request of an app. Equal ones are common on purpose.
    pub(super) fn arrive(&mut self, process: &mut Process) -> Result<(), String> {
        if process.cutting || process.flights.len() >= 6 {
            return Ok(());
        }
        let route = Arc::clone(&self.routes[self.chance.below(self.routes.len())]);
        let app = self.chance.below(2);
        let prompt = self.chance.below(2);
        let stream = route.keyed && self.chance.one_in(3) && {
            matches!(route.operation, Operation::Chat | Operation::AgentTurn)
        };
        let body = Self::body_of(&route, prompt, stream);
        let own_key = (route.keyed && self.chance.one_in(5)).then(|| {
            // Mostly one key for one body; now and then the same for several.
            let number = if self.chance.one_in(8) { 0 } else { body };
            format!("own-{app}-{number}")
        });
        let mut fingerprint = [0; 32];
        fingerprint[..8].copy_from_slice(&body.to_be_bytes());
        let entry = EntryId(Uuid::from_u128(self.next_entry));
        self.next_entry += 1;
        let claimant = Claimant {
            request_key: RequestKey {
                app: Arc::from(["default", "ci"][app]),
                fingerprint: Fingerprint(fingerprint),
            },
            entry,
            own_key,
            keyed: route.keyed,
            marked_retry: self.chance.one_in(3),
            keeps_answer: route.answer != crate::protocol::routes::AnswerKind::NamedEvents,
        };
        self.note(|| {
            let app = &claimant.request_key.app;
            let key = &claimant.own_key;
            let operation = route.operation;
            format!(
                "{} arrives: {operation} of {app}, body {body}, key {key:?}",
                short(entry)
            )
        });
        let claim = match process.table.claim(&claimant, self.policy, true) {
            Claim::LookAgain { .. } => {
                self.count("looked again");
                process.table.claim(&claimant, self.policy, false)
            }
            claim => claim,
        };
        let purchase = match claim {
            Claim::Lead(purchase) => purchase,
            Claim::Follow(follower) => {
                self.count("joined");
                process.followers.push(Joined {
                    follower,
                    following: Following::new(true),
                    action: FollowAction::Wait,
                    given: Transcript::default(),
                    presence: Presence::Here,
                });
                return Ok(());
            }
            Claim::ReadOn(_) => {
                // Its app's patience ends before that answer does.
                self.count("read on");
                return Ok(());
            }
            Claim::LookAgain { .. } => return Err("a second look did not decide".to_owned()),
        };
        if process.table.sizes().0 > 4096 {
            return Err("I11: the table grows beyond its bound".to_owned());
        }
        self.take_off(process, purchase, route, stream, body)
    }

    fn take_off(
        &mut self,
        process: &mut Process,
        purchase: Arc<Purchase>,
        route: Arc<Route>,
        stream: bool,
        body: u64,
    ) -> Result<(), String> {
        if let Some(key) = purchase
            .key
            .as_ref()
            .filter(|_| purchase.key_use().is_some())
        {
            let others = process.flights.values();
            let others = others.filter_map(|flight| flight.purchase.key.as_ref());
            let others = others.map(|other| Arc::clone(&other.value));
            self.facts.claimed(&key.value, others)?;
        }
        self.count(match (&purchase.key, purchase.adoptions) {
            (None, _) => "without a key",
            (Some(_), 0) if purchase.key_use().is_none() => "own key",
            (Some(_), 0) => "minted",
            (Some(_), _) => "adopted",
        });
        let intent = Intent {
            stream,
            key: purchase.key.as_ref().map(|key| {
                let request = || purchase.request_key.fingerprint;
                KeptKey::new(&[0; 32], key, Organization(self.service_key), request)
            }),
            request_bytes: 1,
            key_use: purchase.key_use(),
            ..Intent::new(
                purchase.entry,
                self.wall_ms(),
                Arc::clone(&purchase.request_key.app),
                route.lane,
                route.operation,
                purchase.request_key.fingerprint,
            )
        };
        let bounds = Bounds {
            backoff: Backoff {
                retries_max: 2,
                base: Duration::from_millis(500),
                cap: Duration::from_secs(8),
            },
            deadline: self.monotonic() + Duration::from_secs(600),
        };
        let repeats = repeats_of(&route, stream);
        let mut flight = Flight::new(purchase, route, repeats, bounds);
        flight.stream = stream;
        if self.chance.one_in(6) {
            flight.ends_with_its_connection();
        }
        flight.body = body;
        flight.organization = self.organization();
        if self.chance.one_in(8) && self.gives_up(process, &mut flight)? {
            return Ok(());
        }
        self.facts.opens(flight.id, flight.ask().account());
        process.scribe.queue.push(Command::Intend(Arc::new(intent)));
        process.flights.insert(flight.id, flight);
        Ok(())
    }

    /// `Request::is_given_up`: an app gave this try up before bursar read it. `true`: it is not sent.
    fn gives_up(&mut self, process: &mut Process, flight: &mut Flight) -> Result<bool, String> {
        flight.leave();
        let purchase = Arc::clone(&flight.purchase);
        let is_reset = self.chance.one_in(3);
        let age = Duration::from_millis(self.chance.ms(3_000));
        let since = self.monotonic().saturating_sub(age);
        let presence = match is_reset {
            true => Presence::Gone,
            false => Presence::Suspect,
        };
        if !process.table.goes(&purchase, self.policy, since, presence) {
            self.count(if is_reset {
                "reset before it was read"
            } else {
                "given up beside its retry"
            });
            flight.close(self, process, purchase.fate_unsent(false));
            return Ok(true);
        }
        self.count("input ended before it was read");
        flight.is_suspected();
        // What began to be answered before this one's connection was free is no repeat of it.
        let is_retry = |other: &Flight| {
            other.is_connected()
                && other.purchase.given_at().is_none_or(|at| at > since)
                && other.purchase.request_key == purchase.request_key
                && !other.is_own()
                && !other.is_delivered()
        };
        let has_retry = process.flights.values().any(is_retry);
        let is_one = self.policy.adopt == Adopt::Always && !flight.is_own();
        if is_one && has_retry && !purchase.is_followed() {
            return Err("a try that was given up is bought beside its retry".to_owned());
        }
        Ok(false)
    }

    /// Path and bytes in a number.
    fn body_of(route: &Route, prompt: usize, stream: bool) -> u64 {
        let at = Operation::ALL
            .iter()
            .position(|known| *known == route.operation);
        let number = at.unwrap_or(0) * 4 + prompt * 2 + usize::from(stream);
        u64::try_from(number).unwrap() + 1
    }

    pub(super) fn leave(&mut self, process: &mut Process) {
        if let Some(id) = self.pick(process)
            && let Some(flight) = process.flights.get_mut(&id)
            && flight.here
        {
            if self.chance.one_in(3) {
                flight.hangs_up();
                self.count("app hung up unnoticed");
            } else {
                flight.leave();
                self.count("app left");
            }
        }
    }

    pub(super) fn follow(&mut self, process: &mut Process) -> Result<(), String> {
        if process.followers.is_empty() {
            return Ok(());
        }
        let at = self.chance.below(process.followers.len());
        let mut joined = process.followers.swap_remove(at);
        let event = match joined.action.clone() {
            FollowAction::Wait if self.chance.one_in(8) => {
                self.count("follower left");
                joined.presence = Presence::Gone;
                FollowEvent::Left
            }
            FollowAction::Wait => match joined.follower.next().now_or_never() {
                Some(item) => FollowEvent::Came(item),
                None => {
                    process.followers.push(joined);
                    return Ok(());
                }
            },
            _ if self.chance.one_in(16) => {
                joined.presence = Presence::Gone;
                FollowEvent::Lost
            }
            FollowAction::WriteHead(_) => FollowEvent::Did,
            FollowAction::Write(chunk) => {
                joined.given.takes(&chunk)?;
                FollowEvent::Wrote(match self.chance.one_in(6) {
                    true => Written::Held,
                    false => Written::Out,
                })
            }
            FollowAction::Finish => {
                if joined.following.is_answer() {
                    let entry = joined.follower.purchase().entry;
                    self.facts.giving(entry, &self.reading)?;
                    self.streams.ended_cleanly(entry, &joined.given)?;
                }
                FollowEvent::Did
            }
            FollowAction::Refuse(_) | FollowAction::Break(_) | FollowAction::Done => {
                self.count("follower served");
                return self.unfollow(process, joined);
            }
        };
        let had = joined.following.end().is_delivered;
        let presence = joined.presence;
        let is_event_stream = |head: &ResponseHeader| head.headers.contains_key("content-type");
        let Joined {
            follower,
            following,
            action,
            ..
        } = &mut joined;
        *action = following.on(event, presence, follower, is_event_stream);
        if !had && joined.following.end().is_delivered {
            self.count("handed to a follower");
            let purchase = Arc::clone(joined.follower.purchase());
            self.delivered(&purchase)?;
        }
        if matches!(joined.action, FollowAction::Done) {
            self.count("follower served");
            return self.unfollow(process, joined);
        }
        process.followers.push(joined);
        Ok(())
    }

    /// bursar's stop cuts what a follower is given.
    pub(super) fn cut_off(&mut self, process: &mut Process, joined: Joined) -> Result<(), String> {
        let purchase = joined.follower.purchase();
        if joined.following.end().is_delivered {
            self.count("follower cut");
            purchase.cuts_short();
            if let Some(key) = purchase
                .key
                .as_ref()
                .filter(|_| purchase.key_use().is_some())
            {
                self.facts.cut(&key.value);
            }
        }
        self.unfollow(process, joined)
    }

    /// `Gateway::delivered`.
    fn unfollow(&mut self, process: &mut Process, joined: Joined) -> Result<(), String> {
        let purchase = &Arc::clone(joined.follower.purchase());
        let is_delivered = joined.following.end().is_delivered;
        drop(joined.follower);
        if is_delivered {
            let queue = &mut process.scribe.queue;
            purchase.note_delivery(Delivery::Given, self.clock.wall_ms(), |row, delivered| {
                queue.push(Command::Deliver(Box::new(row), delivered));
            });
            process.table.delivered(purchase);
        }
        Ok(())
    }

    /// An app has an answer: its key is used up.
    pub fn delivered(&mut self, purchase: &Purchase) -> Result<(), String> {
        self.count("delivered");
        match purchase
            .key
            .as_ref()
            .filter(|_| purchase.key_use().is_some())
        {
            Some(key) => self.facts.delivered(&key.value),
            None => Ok(()),
        }
    }

    pub(super) fn poll_run(&mut self, process: &mut Process) {
        if self.service.runs.is_empty() {
            return;
        }
        let at = self.chance.below(self.service.runs.len());
        if let Some((run_id, billed)) = self.service.end_run(at, &mut self.chance) {
            self.count("run polled");
            process.scribe.queue.push(Command::Run { run_id, billed });
        }
    }
}

fn repeats_of(route: &Route, stream: bool) -> Repeats {
    match route.operation {
        Operation::Embeddings | Operation::Rerank | Operation::AgentTurn => Repeats::Alongside,
        _ if stream => Repeats::Alongside,
        Operation::EvalRun => Repeats::Run,
        _ if route.keyed => Repeats::Stored,
        _ => Repeats::Unkeyed,
    }
}
