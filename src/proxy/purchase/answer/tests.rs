mod behind_outcome;

use crate::proxy::purchase::shared::Received;
use http::StatusCode;

use super::*;
use crate::clock::ManualClock;
use crate::proxy::purchase::claim::{Claim, ClaimTable};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};

const TERMS: Terms = Terms {
    form: AnswerForm::Chat,
    is_metered: true,
    is_cancelled: false,
    stream_time: Duration::from_secs(120),
    document_time: Duration::from_secs(600),
};

const PIECE: &[u8] = b"data: {}\n\n";

fn head() -> Arc<ResponseHeader> {
    Arc::new(ResponseHeader::build(StatusCode::OK, None).unwrap())
}

/// A request that leads, with the table that an equal one would ask.
struct Bench {
    table: ClaimTable,
    purchase: Arc<Purchase>,
}

impl Bench {
    fn new() -> Self {
        let table = ClaimTable::new(Arc::new(ManualClock::at(1_778_284_800_000)));
        let Claim::Lead(purchase) = claim(&table, 1) else {
            panic!("nothing is there before it");
        };
        Self { table, purchase }
    }

    fn answer(&self, form: AnswerForm) -> AnswerFlow {
        let terms = Terms { form, ..TERMS };
        AnswerFlow::flowing(terms, head(), Some(Arc::clone(&self.purchase)))
    }

    /// An equal request comes when the app has left.
    fn follow(&self) -> crate::proxy::purchase::shared::Follower {
        self.purchase.app_left();
        match claim(&self.table, 2) {
            Claim::Follow(follower) => follower,
            other => panic!("{other:?}"),
        }
    }
}

fn claim(table: &ClaimTable, entry: u128) -> Claim {
    let claimant = Claimant {
        request_key: RequestKey {
            app: Arc::from("default"),
            fingerprint: crate::ledger::entry::Fingerprint([7; 32]),
        },
        entry: crate::ledger::entry::EntryId(uuid::Uuid::from_u128(entry)),
        own_key: None,
        keyed: true,
        marked_retry: false,
        keeps_answer: true,
    };
    let policy = AdoptPolicy {
        adopt: crate::config::Adopt::Always,
        window: Duration::from_secs(900),
    };
    table.claim(&claimant, policy, false)
}

fn app(presence: Presence) -> AppView {
    AppView {
        now: Duration::from_secs(10),
        presence,
        is_proven: false,
        held: None,
        is_displaced: false,
    }
}

fn read(then: Then) -> Event {
    Event::Read(Read {
        bytes: PIECE.len(),
        piece: None,
        end_mark: EndMark::None,
        then,
    })
}

fn piece() -> Event {
    Event::Read(Read {
        bytes: PIECE.len(),
        piece: Some(Bytes::from_static(PIECE)),
        end_mark: EndMark::None,
        then: Then::More,
    })
}

fn end_mark() -> Event {
    Event::Read(Read {
        bytes: 14,
        piece: None,
        end_mark: EndMark::Came {
            held: Some(Bytes::from_static(b"data: [DONE]\n\n")),
        },
        then: Then::More,
    })
}

fn ended(is_priced: bool) -> Event {
    read(Then::Ended {
        rest: vec![Bytes::from_static(b"rest")],
        is_priced,
    })
}

/// The name of an action, with what distinguishes it from others of its kind.
fn word(action: &Action) -> String {
    match action {
        Action::Read(wait) => format!("read {wait:?}"),
        Action::Write { head, .. } if head.is_some() => "write head".to_owned(),
        Action::Write { .. } => "write".to_owned(),
        Action::Keep(_) => "keep".to_owned(),
        Action::WriteWhole(_) => "write whole".to_owned(),
        Action::Warn(_) => "warn".to_owned(),
        Action::Settle { ending, is_drained } => format!("settle {ending:?} {is_drained}"),
        Action::Done(done) => format!("done {} {:?}", done.is_whole, done.code),
        other => format!("{other:?}"),
    }
}

/// Feeds events and says what each was answered with.
fn play(answer: &mut AnswerFlow, presence: Presence, events: Vec<Event>) -> Vec<String> {
    events
        .into_iter()
        .map(|event| word(&answer.on(event, &app(presence))))
        .collect()
}

const OUT: Event = Event::Wrote(Written::Out);

#[test]
fn a_stream_is_settled_before_its_end_mark_goes_out() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Chat);
    let events = vec![piece(), OUT, end_mark(), Event::Did, OUT, ended(false)];
    let said = play(&mut answer, Presence::Here, events);
    let wanted = [
        "write head",
        "read Long",
        "settle Complete false",
        "write",
        "read Long",
        "FreePlace",
    ];
    assert_eq!(said, wanted);
    assert!(bench.purchase.is_delivered(), "with its first byte");
    let events = vec![Event::Did, OUT, Event::Did, Event::Did];
    let said = play(&mut answer, Presence::Here, events);
    assert_eq!(
        said,
        ["write", "Leave(Released)", "Finish", "done true None"]
    );
}

/// How a stream ends that was not settled, by what ended it, and whether its app had a part.
#[test]
fn what_is_not_complete_is_settled_so_and_broken_off() {
    let broke = || read(Then::Broke(Cause::Reset));
    let rows: [(&str, Event, bool, &[&str]); 5] = [
        (
            "broken before its first piece",
            broke(),
            false,
            &[
                "settle Broke(Reset) false",
                "Leave(GivenUp)",
                "Refuse(UpstreamBroken)",
            ],
        ),
        (
            "broken behind a piece",
            broke(),
            true,
            &[
                "settle Broke(Reset) false",
                "Leave(GivenUp)",
                "warn",
                "Break",
            ],
        ),
        (
            "ended without its end mark and its price",
            ended(false),
            true,
            &[
                "settle Broke(Closed) false",
                "Leave(GivenUp)",
                "warn",
                "Break",
            ],
        ),
        (
            "stopped",
            read(Then::Stopped),
            true,
            &[
                "settle Stopped(Shutdown) false",
                "Leave(GivenUp)",
                "warn",
                "Break",
            ],
        ),
        (
            "ended without its end mark, with its price",
            ended(true),
            true,
            &[
                "settle Complete false",
                "FreePlace",
                "write",
                "Leave(Released)",
            ],
        ),
    ];
    for (what, last, has_part, wanted) in rows {
        let bench = Bench::new();
        let mut answer = bench.answer(AnswerForm::Chat);
        if has_part {
            play(&mut answer, Presence::Here, vec![piece(), OUT]);
        }
        let mut said = play(&mut answer, Presence::Here, vec![last]);
        while said.len() < wanted.len() {
            let event = match said.last().map(String::as_str) {
                Some("write" | "warn") => OUT,
                _ => Event::Did,
            };
            said.extend(play(&mut answer, Presence::Here, vec![event]));
        }
        assert_eq!(said, wanted, "{what}");
    }
}

#[test]
fn an_app_that_had_nothing_loses_the_answer_to_its_repeat_and_one_with_a_part_does_not() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Stream);
    let lost = || Event::Lost(Loss::AppGone);
    let said = play(
        &mut answer,
        Presence::Gone,
        vec![piece(), lost(), Event::Did],
    );
    assert_eq!(said, ["write head", "keep", "Drain"]);
    let mut follower = bench.follow();
    assert!(bench.purchase.is_followed());
    let said = play(&mut answer, Presence::Gone, vec![Event::Did, piece()]);
    assert_eq!(said, ["read WhileFollowed", "keep"]);
    follower.received(Received::Answer);

    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Stream);
    let said = play(&mut answer, Presence::Here, vec![piece(), OUT, piece()]);
    assert_eq!(said[1..], ["read Long", "write"]);
    let said = play(&mut answer, Presence::Gone, vec![lost()]);
    assert_eq!(said, ["Drain"], "the rest is not kept");
}

#[test]
fn what_was_held_back_goes_to_the_follower_before_the_next_piece() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Stream);
    let held = Event::Wrote(Written::Held);
    play(&mut answer, Presence::Here, vec![piece(), held]);
    let _follower = bench.follow();
    let holding = AppView {
        held: Some(Bytes::from_static(b"first")),
        ..app(Presence::Suspect)
    };
    let Action::Keep(first) = answer.on(piece(), &holding) else {
        panic!("an equal request follows");
    };
    assert_eq!(&*first, b"first");
    let Action::Keep(second) = answer.on(Event::Did, &holding) else {
        panic!("the piece comes behind it");
    };
    assert_eq!(&*second, PIECE);
}

/// Neither of the two pieces was taken.
#[test]
fn what_was_held_back_of_a_write_that_failed_goes_to_the_follower_before_its_successor() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Stream);
    let held = Event::Wrote(Written::Held);
    play(&mut answer, Presence::Here, vec![piece(), held]);
    let holding = AppView {
        held: Some(Bytes::from_static(b"first")),
        ..app(Presence::Here)
    };
    assert_eq!(word(&answer.on(piece(), &holding)), "write");
    bench.purchase.app_left();
    let gone = app(Presence::Gone);
    let kept = [Event::Lost(Loss::AppGone), Event::Did].map(|event| answer.on(event, &gone));
    let [Action::Keep(first), Action::Keep(second)] = kept else {
        panic!("{kept:?}");
    };
    assert_eq!((&*first, &*second), (&b"first"[..], PIECE));
}

/// What follows when no app reads a stream, by what the configuration and bursar's room allow.
#[test]
fn a_stream_that_no_app_reads_is_drained_within_its_bounds_or_stopped() {
    let bench = Bench::new();
    let gone = |event| vec![piece(), OUT, event];
    let mut answer = bench.answer(AnswerForm::Stream);
    let said = play(&mut answer, Presence::Gone, gone(Event::Refused));
    assert_eq!(said[1..], ["Drain", "settle Stopped(NoRoom) true"]);

    let mut answer = bench.answer(AnswerForm::Stream);
    answer.terms.is_cancelled = true;
    let said = play(&mut answer, Presence::Gone, vec![piece(), OUT]);
    assert_eq!(said[1], "settle Stopped(Cancelled) true");

    let mut answer = bench.answer(AnswerForm::Stream);
    let said = play(&mut answer, Presence::Gone, gone(Event::Did));
    assert_eq!(said[1..], ["Drain", "read AtMost(120s)"]);
    let late = AppView {
        now: Duration::from_secs(130),
        ..app(Presence::Gone)
    };
    let action = answer.on(Event::TimeUp, &late);
    assert_eq!(word(&action), "settle Stopped(Bounds) true");

    let mut answer = bench.answer(AnswerForm::Stream);
    play(&mut answer, Presence::Gone, gone(Event::Did));
    let much = Event::Read(Read {
        bytes: STREAM_BYTES_MAX + 1,
        piece: None,
        end_mark: EndMark::None,
        then: Then::More,
    });
    let said = play(&mut answer, Presence::Gone, vec![much]);
    assert_eq!(said, ["settle Stopped(Bounds) true"]);

    let mut answer = bench.answer(AnswerForm::Stream);
    play(&mut answer, Presence::Gone, gone(Event::Did));
    let displaced = AppView {
        is_displaced: true,
        ..app(Presence::Gone)
    };
    let action = answer.on(Event::Changed, &displaced);
    assert_eq!(word(&action), "settle Stopped(Displaced) true");

    let mut free = AnswerFlow::flowing(
        Terms {
            is_metered: false,
            ..TERMS
        },
        head(),
        None,
    );
    let said = play(&mut free, Presence::Gone, vec![piece(), OUT]);
    assert_eq!(
        said[1], "settle Stopped(Unread) false",
        "it is worth nothing"
    );
}

#[test]
fn a_document_without_a_reader_is_read_on_although_streams_are_cancelled() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Document);
    answer.terms.is_cancelled = true;
    let said = play(&mut answer, Presence::Gone, vec![piece(), OUT]);
    assert_eq!(said, ["write head", "read AtMost(600s)"]);
}

/// A follower may leave between the machine's look at it and the wait: the wait itself has to end then, because
/// nothing else bounds it.
#[test]
fn what_is_read_for_a_follower_alone_is_awaited_while_it_follows() {
    for is_settled in [false, true] {
        let bench = Bench::new();
        let mut answer = bench.answer(AnswerForm::Chat);
        let lost = Event::Lost(Loss::AppGone);
        play(&mut answer, Presence::Gone, vec![piece(), lost]);
        let follower = bench.follow();
        let event = if is_settled { end_mark() } else { piece() };
        let mut said = play(&mut answer, Presence::Gone, vec![Event::Did, event]);
        assert_eq!(said[0], "read WhileFollowed");
        while said.len() < 5 && !said[said.len() - 1].starts_with("read") {
            said.extend(play(&mut answer, Presence::Gone, vec![Event::Did]));
        }
        assert_eq!(said[said.len() - 1], "read WhileFollowed", "{said:?}");
        drop(follower);
        let said = play(&mut answer, Presence::Gone, vec![Event::Changed]);
        let wanted = if is_settled {
            "read TheEnd(1s)"
        } else {
            "Drain"
        };
        assert_eq!(said, [wanted]);
    }
}

/// An app that closes its connection with the last byte of a document has not left it.
#[test]
fn an_app_is_looked_at_as_long_as_a_piece_of_a_document_is_to_come() {
    let bench = Bench::new();
    let mut answer = bench.answer(AnswerForm::Document);
    play(&mut answer, Presence::Here, vec![piece(), OUT]);
    assert!(answer.asks_for_app(), "it is read on");
    play(&mut answer, Presence::Here, vec![ended(false)]);
    assert!(
        answer.asks_for_app(),
        "its last chunk waits for the receipt"
    );
    let said = play(&mut answer, Presence::Here, vec![Event::Did, Event::Did]);
    assert_eq!(said, ["FreePlace", "write"]);
    assert!(!answer.asks_for_app(), "the app has it all");
    let said = play(&mut answer, Presence::Here, vec![OUT]);
    assert_eq!(said, ["Leave(Released)"]);
    assert!(!answer.asks_for_app());
}

/// The service's end behind an end mark, by whether the app is still there.
#[test]
fn behind_its_end_mark_a_stream_waits_a_moment_for_its_end() {
    let rows = [
        (Presence::Here, "read Long"),
        (Presence::Suspect, "read AtMost(1s)"),
        (Presence::Gone, "read TheEnd(1s)"),
    ];
    for (presence, wanted) in rows {
        let bench = Bench::new();
        let mut answer = bench.answer(AnswerForm::Chat);
        play(&mut answer, Presence::Here, vec![piece(), OUT, end_mark()]);
        let said = play(&mut answer, presence, vec![Event::Did, OUT]);
        assert_eq!(said, ["write", wanted], "{presence:?}");
        let said = play(&mut answer, presence, vec![Event::TimeUp, Event::Did]);
        assert_eq!(said, ["Leave(Abandoned)", "Finish"], "{presence:?}");
    }
}

#[test]
fn a_stop_that_cuts_a_write_leaves_the_answer_to_be_adopted() {
    for is_settled in [false, true] {
        let bench = Bench::new();
        let mut answer = bench.answer(AnswerForm::Chat);
        play(&mut answer, Presence::Here, vec![piece(), OUT]);
        let next = if is_settled { end_mark() } else { piece() };
        play(&mut answer, Presence::Here, vec![next]);
        if is_settled {
            play(&mut answer, Presence::Here, vec![Event::Did]);
        }
        let mut said = play(&mut answer, Presence::Gone, vec![Event::Lost(Loss::Cut)]);
        said.extend(play(&mut answer, Presence::Gone, vec![Event::Did]));
        let wanted = if is_settled {
            ["Leave(Abandoned)", "warn"]
        } else {
            ["settle Stopped(Shutdown) true", "Leave(GivenUp)"]
        };
        assert_eq!(said, wanted);
        let missed = crate::ledger::undelivered::Delivery::Missed;
        assert_eq!(bench.purchase.delivery_if_missed(), missed);
    }
}

/// A whole answer and a refusal: by whether the write succeeds.
#[test]
fn a_whole_answer_that_its_app_did_not_take_is_kept_for_its_repeat() {
    for is_answer in [true, false] {
        let bench = Bench::new();
        let purchase = Some(Arc::clone(&bench.purchase));
        let body = Bytes::from_static(b"{}");
        let mut answer = AnswerFlow::whole(is_answer, head(), body.clone(), purchase.clone());
        let here = app(Presence::Here);
        assert_eq!(word(&answer.begin(&here)), "write whole");
        let done = answer.on(Event::Did, &here);
        assert_eq!(word(&done), "done true None");
        assert_eq!(bench.purchase.is_delivered(), is_answer);
    }
    let bench = Bench::new();
    let purchase = Some(Arc::clone(&bench.purchase));
    let mut answer = AnswerFlow::whole(true, head(), Bytes::from_static(b"{}"), purchase);
    bench.purchase.app_left();
    assert_eq!(word(&answer.begin(&app(Presence::Suspect))), "write whole");
    let lost = Event::Lost(Loss::AppGone);
    let said = play(&mut answer, Presence::Gone, vec![lost, Event::Did]);
    assert_eq!(said, ["keep", "done false None"]);
    assert!(!bench.purchase.is_delivered());
    bench.follow();
}

/// Whatever came before: with its app gone, no follower, and a service that is silent, time alone brings an
/// answer to its end.
#[test]
fn an_answer_that_no_app_reads_ends_by_time_alone() {
    const FORMS: [AnswerForm; 4] = [
        AnswerForm::Document,
        AnswerForm::Stream,
        AnswerForm::Chat,
        AnswerForm::Translated,
    ];
    let mut state = 1_u32;
    let mut chance = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for run in 0..3_000_usize {
        let bench = Bench::new();
        let mut answer = bench.answer(FORMS[run % 4]);
        answer.terms.is_cancelled = chance(4) == 0;
        let mut view = app(Presence::Here);
        let mut event = piece();
        let silent_from = chance(20);
        let mut said = Vec::new();
        for step in 0.. {
            assert!(step < silent_from + 30, "{run} does not end: {said:?}");
            view.presence = match view.presence {
                _ if step >= silent_from => Presence::Gone,
                Presence::Here if chance(6) == 0 => Presence::Suspect,
                Presence::Suspect if chance(3) == 0 => Presence::Gone,
                presence => presence,
            };
            let is_gone = view.presence == Presence::Gone;
            let action = answer.on(event, &view);
            said.push(word(&action));
            event = match action {
                Action::Read(wait) if is_gone => match wait {
                    _ if step < silent_from && chance(3) > 0 => piece(),
                    Wait::AtMost(limit) | Wait::TheEnd(limit) => {
                        view.now += limit;
                        Event::TimeUp
                    }
                    Wait::Long | Wait::WhileFollowed => panic!("{run} waits: {said:?}"),
                },
                Action::Read(_) => match chance(8) {
                    0 => end_mark(),
                    1 => ended(true),
                    2 => ended(false),
                    3 => read(Then::Broke(Cause::Reset)),
                    4 => Event::Changed,
                    _ => piece(),
                },
                Action::Write { .. } | Action::Finish | Action::Warn(_) if is_gone => {
                    Event::Lost(Loss::AppGone)
                }
                Action::Write { .. } if chance(4) == 0 => Event::Wrote(Written::Held),
                Action::Write { .. } | Action::Warn(_) => OUT,
                Action::Settle { .. } if chance(9) == 0 => Event::Unwritten(Bytes::from("x")),
                Action::Drain | Action::Settle { .. } if chance(5) == 0 => Event::Refused,
                Action::WriteWhole(_) => panic!("it flows"),
                Action::Refuse(_) | Action::Done(_) => break,
                _ => Event::Did,
            };
        }
    }
}

#[test]
fn i2_no_paid_success_is_given_without_its_outcome() {
    for (is_success, is_metered, is_written, wanted) in [
        (true, true, true, true),
        (true, true, false, false),
        (false, true, false, true),
        (true, false, false, true),
    ] {
        let gives = may_give(is_success, is_metered, is_written);
        assert_eq!(gives, wanted, "{is_success} {is_metered} {is_written}");
    }
}
