//! What goes out behind the outcome of a stream, and in its place where the ledger could not write it.

use super::*;

#[test]
fn what_was_held_may_go_out_as_something_else_behind_the_outcome() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Chat);
    play(&mut answer, Presence::Here, vec![piece(), OUT, end_mark()]);
    let priced = Event::Settled(Bytes::from_static(b"priced"));
    let action = answer.on(priced, &app(Presence::Here));
    assert!(matches!(action, Action::Write { piece, .. } if piece == "priced"));
}

#[test]
fn what_says_that_a_stream_broke_goes_out_behind_the_outcome() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Chat);
    let failed = Event::Settled(Bytes::from_static(b"failed"));
    let broke = read(Then::Broke(Cause::Reset));
    let events = vec![piece(), OUT, broke, failed, OUT, Event::Did];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(said[3..], ["write", "Leave(GivenUp)", "warn"]);
}

#[test]
fn an_outcome_that_cannot_be_written_gives_nothing_more() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Chat);
    let events = vec![piece(), OUT, end_mark(), Event::Refused, Event::Did, OUT];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(said[3..], ["Leave(GivenUp)", "warn", "Break"]);
    let last = play(&mut answer, Presence::Here, vec![Event::Did]);
    assert_eq!(last, ["done false Some(LedgerUnavailable)"]);
}

/// Both apps of a stream in another dialect read the same: the one that has a part, and one that has joined it.
#[test]
fn in_another_dialect_the_stream_itself_says_that_its_outcome_could_not_be_written() {
    let unwritten = || Event::Unwritten(Bytes::from_static(b"event: failed\n\n"));
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Translated);
    let events = vec![piece(), OUT, end_mark(), unwritten(), Event::Did, OUT];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(said[3..], ["Leave(GivenUp)", "write", "Break"]);
    let last = play(&mut answer, Presence::Here, vec![Event::Did]);
    assert_eq!(last, ["done false Some(LedgerUnavailable)"]);

    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Translated);
    let follower = bench.follow();
    let events = vec![piece(), Event::Did, end_mark(), unwritten(), Event::Did];
    let said = play(&mut answer, Presence::Gone, events);
    assert_eq!(said[3..], ["Leave(GivenUp)", "keep"]);
    drop(follower);
}

#[test]
fn the_app_of_a_stream_in_another_dialect_does_not_wait_for_the_services_end() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Translated);
    let events = vec![piece(), OUT, end_mark(), Event::Did, OUT];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(said[4], "read TheEnd(1s)");
    let events = vec![Event::TimeUp, Event::Did, Event::Did];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(said, ["Leave(Abandoned)", "Finish", "done true None"]);
}
