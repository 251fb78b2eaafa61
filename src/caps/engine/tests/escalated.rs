//! Where answers are cheap until some are escalated: the slow zone before a cap begins where two of them
//! would not fit, and not earlier.

use super::*;

const CHEAP: u64 = 10;
const ESCALATED: u64 = 260;

impl Bench {
    fn answered_cheaply(&mut self, entry: EntryId) {
        let billed = usd(CHEAP);
        self.end_with_frontier(entry, "a", State::Settled { billed }, ESCALATED);
    }

    fn escalated(&mut self, entry: EntryId) {
        let billed = usd(ESCALATED);
        self.end_with_frontier(entry, "a", State::Settled { billed }, ESCALATED);
    }

    fn buys_cheaply(&mut self) {
        let (entry, _) = self.admitted("a");
        self.answered_cheaply(entry);
    }

    /// As many as go beside each other, ten at most.
    fn fill(&mut self) -> Vec<EntryId> {
        let mut under = Vec::new();
        while under.len() < 10 {
            match self.ask("a") {
                Became::Admitted(entry, _) => under.push(entry),
                Became::Waits(entry) => {
                    let answers = self.engine.give_up(entry, self.now_ms);
                    self.send(answers);
                    break;
                }
                Became::Refused(_) => break,
            }
        }
        under
    }

    fn booked(&self) -> u64 {
        let cap = &self.engine.caps[&(Scope::All, Period::Day)];
        u64::try_from(cap.charge.billed.get()).unwrap()
    }
}

#[test]
fn requests_go_beside_each_other_while_both_could_be_escalated() {
    for (left, goes_beside) in [(2 * ESCALATED, true), (2 * ESCALATED - 1, false)] {
        let cap = CHEAP + left;
        let mut bench = Bench::new(rules(limits(None, Some(cap)), &[], 0));
        bench.buys_cheaply();
        let (one, reserved) = bench.admitted("a");
        assert_eq!(
            reserved, ESCALATED,
            "an answer whose price is lost may have been escalated"
        );
        let second = bench.ask("a");
        assert_eq!(
            matches!(second, Became::Admitted(..)),
            goes_beside,
            "{left}"
        );
        let (Became::Admitted(two, _) | Became::Waits(two)) = second else {
            panic!("{second:?}");
        };
        bench.escalated(one);
        if !goes_beside {
            assert!(matches!(bench.became(two), Became::Admitted(..)), "alone");
        }
        bench.escalated(two);
        assert!(bench.booked() <= cap + u64::from(!goes_beside) * ESCALATED);
        bench.refused("a");
    }
}

/// After any number of cheap answers.
#[test]
fn every_answer_is_cheap_until_two_are_escalated_at_once() {
    const CAP: u64 = 2_500;
    let mut beside = 0;
    for cheap in 1..CAP / CHEAP {
        let mut bench = Bench::new(rules(limits(None, Some(CAP)), &[], 0));
        (0..cheap).for_each(|_| bench.buys_cheaply());
        let under = bench.fill();
        assert!(!under.is_empty(), "something is left");
        for (number, entry) in under.iter().enumerate() {
            match number {
                0 | 1 => bench.escalated(*entry),
                _ => bench.answered_cheaply(*entry),
            }
        }
        if under.len() > 1 {
            beside += 1;
            assert!(bench.booked() <= CAP, "{cheap}: {}", bench.booked());
        }
        // What comes behind goes one at a time, each as dear as it may be.
        while let Became::Admitted(entry, _) = bench.ask("a") {
            bench.escalated(entry);
        }
        assert!(
            bench.booked() < CAP + ESCALATED,
            "{cheap}: {}",
            bench.booked()
        );
        assert!(bench.booked() >= CAP, "the cap is used up");
    }
    // The slow zone is as long as two escalated answers, not as eight.
    assert_eq!(beside, (CAP - 2 * ESCALATED) / CHEAP);
}

/// Once one was billed so, the next may grow from there, as ever.
#[test]
fn what_was_billed_dearly_counts_with_four_times_itself() {
    let mut bench = Bench::new(rules(limits(None, Some(5_000)), &[], 0));
    bench.buys_cheaply();
    let (entry, _) = bench.admitted("a");
    bench.escalated(entry);
    let room = (5_000 - CHEAP - ESCALATED) / (4 * ESCALATED);
    assert_eq!(bench.fill().len() as u64, room);
}
