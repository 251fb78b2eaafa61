//! Whether an attempt may have run is decided once, for the entry, for its app and for its repeat.

use super::*;
use crate::ledger::fold::state::may_have_run;

/// All ways of up to three attempts without a whole answer.
fn ways() -> Vec<Vec<Attempt>> {
    let ends = || {
        [NotSent, NoHead, Gateway, Broken]
            .map(attempt)
            .into_iter()
            .chain([refused(409), refused(503), refused(400)])
    };
    let mut ways = vec![Vec::new()];
    for _ in 0..3 {
        let longer = ways.iter().flat_map(|way: &Vec<Attempt>| {
            ends().map(move |end| way.iter().cloned().chain([end]).collect())
        });
        ways = longer.chain(ways.clone()).collect();
    }
    ways
}

#[test]
fn i4_what_may_have_run_is_what_is_in_doubt() {
    let id = EntryId(uuid::Uuid::nil());
    for attempts in ways() {
        for key in [None, FRESH] {
            let may_have = may_have_run(&attempts, key.is_some());
            let ends: Vec<_> = attempts.iter().map(|one| (one.end, one.status)).collect();
            let outcome = outcome(id, attempts.clone(), Receipt::default());
            let state = fold(&outcome, key.as_ref()).state;
            let is_doubt = matches!(state, State::InDoubt { .. });
            assert_eq!(may_have, is_doubt, "{ends:?}, {key:?}: {state:?}");
            assert_eq!(
                !may_have,
                state == State::Failed,
                "{ends:?}, {key:?}: {state:?}"
            );
        }
    }
}

#[test]
fn i4_the_last_answer_under_a_key_says_whether_it_runs() {
    let conflict = || refused(409);
    let rows = [
        (vec![conflict()], true, true),
        (vec![conflict()], false, false),
        (vec![conflict(), attempt(NotSent)], true, true),
        (
            vec![conflict(), attempt(NotSent), attempt(NotSent)],
            true,
            true,
        ),
        (vec![conflict(), attempt(NotSent)], false, false),
        (vec![conflict(), refused(503)], true, false),
        (vec![refused(503), conflict()], true, true),
        (vec![attempt(NoHead), refused(503)], true, true),
        (vec![attempt(NotSent), refused(503)], true, false),
        (vec![attempt(Gateway), attempt(NotSent)], false, true),
        (vec![attempt(Broken), attempt(NotSent)], true, true),
        (vec![], true, false),
    ];
    for (attempts, keyed, wanted) in rows {
        assert_eq!(
            may_have_run(&attempts, keyed),
            wanted,
            "{attempts:?} {keyed}"
        );
    }
}
