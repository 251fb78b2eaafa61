//! What apps do: ask, ask again, leave.

use super::*;

impl World {
    /// An app asks. Bodies are few, so that equal requests meet.
    pub(super) fn ask(&mut self) {
        if self.flights.len() >= FLIGHTS_MAX {
            return;
        }
        let kind = self.dice.pick(&self.kinds);
        let body = 4 + self.dice.below(2) as u64;
        let route = match self.table.look_up(&Method::POST, kind.path()) {
            Lookup::Found(route) => route.clone(),
            _ => panic!("{} is in the table", kind.path()),
        };
        let own_key = (route.keyed && self.dice.chance(20)).then(|| self.own_key(kind, body));
        // One key for another body: a mistake that the service answers with 422.
        let sent_body = if own_key.is_some() && self.dice.chance(10) {
            body + 3
        } else {
            body
        };
        let body = sent_body * 8 + kind as u64;
        let mut fingerprint = [0; 32];
        fingerprint[..8].copy_from_slice(&body.to_be_bytes());
        self.entries += 1;
        let claimant = Claimant {
            mark: Mark {
                app: Arc::from(self.dice.pick(&["default", "default", "other"])),
                fingerprint: Fingerprint(fingerprint),
            },
            entry: EntryId(Uuid::from_u128(self.entries)),
            own_key,
            keyed: route.keyed,
            marked_retry: self.dice.chance(40),
        };
        let now = self.now();
        let mut claim = self.claims.claim(&claimant, self.policy, true);
        if let Claim::LookAgain(_) = claim {
            self.note("look_again", self.entries);
            claim = self.claims.claim(&claimant, self.policy, false);
        }
        match claim {
            Claim::Lead(live) => self.lead(live, route, kind, body, now),
            Claim::Follow(follower) => {
                self.note("follow", follower.live.entry.0.as_u128());
                self.followers.push((follower, false));
            }
            Claim::LookAgain(_) => panic!("a second look always decides"),
        }
    }

    /// An app's own key is used again soon, or long after its 24 h, whatever the clock says.
    fn own_key(&mut self, kind: Kind, body: u64) -> String {
        self.note("own_key", 0);
        let now = self.service.now_ms;
        let used = self.own_keys.entry((kind, body)).or_insert((0, now));
        let age = now - used.1;
        if age > HOUR_MS {
            *used = (used.0 + 1, now);
        }
        format!("own-{}-{body}-{}", kind as u64, used.0)
    }

    fn lead(&mut self, live: Arc<Live>, route: Route, kind: Kind, body: u64, now: Ages) {
        let entry = live.entry;
        self.note("lead", entry.0.as_u128());
        let mut began = now;
        if let Some(EntryKey { value, origin }) = &live.key
            && matches!(origin, KeyOrigin::Adopted { .. })
        {
            began = self.first_uses[value];
            self.paper.audit.may_repeat(now, began);
            self.note("adopt", entry.0.as_u128());
        } else if let Some(key) = &live.key {
            self.first_uses.insert(Arc::clone(&key.value), now);
            if key.origin == KeyOrigin::App {
                let first = self.own_first_ms.entry(Arc::clone(&key.value));
                first.or_insert(self.service.now_ms);
            }
        }
        let intent = Intent {
            id: entry,
            at_ms: now.wall_ms,
            app: Arc::clone(&live.mark.app),
            lane: route.lane,
            operation: route.operation,
            model: None,
            stream: kind.streams(),
            key: live.key.clone(),
            fingerprint: live.mark.fingerprint,
            request_bytes: 1,
            key_use: live.key_use(),
        };
        self.paper.pending.push(Command::Intend(Box::new(intent)));
        let patience = Duration::from_secs(self.dice.pick(&[600, 30, 3600]));
        self.flights.push(Flight {
            entry,
            live,
            route,
            kind,
            body,
            began,
            deadline: self.clock.monotonic() + patience,
            attempts: Vec::new(),
            broken: None,
            app_here: true,
            phase: Phase::Intending,
            answer: None,
            job: None,
            cut_by: None,
            state: None,
            delivery: Delivery::Missed,
        });
    }

    pub(super) fn app_leaves(&mut self) {
        if !self.followers.is_empty() && self.dice.chance(20) {
            let at = self.dice.below(self.followers.len());
            self.followers.remove(at);
            return;
        }
        if self.flights.is_empty() {
            return;
        }
        let at = self.dice.below(self.flights.len());
        let flight = &mut self.flights[at];
        if flight.app_here {
            flight.app_here = false;
            flight.live.app_left();
            let entry = flight.entry.0.as_u128();
            self.note("app_left", entry);
        }
    }
}
