use http::{Method, StatusCode};

use super::*;
use crate::ledger::entry::Attempt;
use crate::protocol::routes::{Lookup, RouteTable};
use crate::proxy::purchase::backoff::Backoff;
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::purchase::retry::{Bounds, ErrorHead};

const PAUSE: Duration = Duration::from_secs(2);

/// What went before the event of a row.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// The attempt was not sent.
    Unsent,
    /// The attempt may have run.
    MayHaveRun,
    /// A pooled connection had been closed: the repeat need not wait.
    Stale,
}

fn view() -> AttemptView {
    AttemptView {
        now: Duration::ZERO,
        share: u32::MAX,
        may_repeat: true,
        wanted: WantedBy::ItsApp,
    }
}

/// A chat whose first attempt ended so, and the loop that waits for the next one.
fn waits(before: Before) -> (RetryLoop, Retries, AttemptAction) {
    let table = RouteTable::new(&[]);
    let Lookup::Found(route) = table.look_up(&Method::POST, "/v1/chat/completions") else {
        panic!("no route");
    };
    let backoff = Backoff {
        retries_max: 2,
        base: PAUSE,
        cap: PAUSE,
    };
    let deadline = Duration::from_secs(600);
    let mut retries = Retries::new(route, Bounds { backoff, deadline });
    let (mut attempts, first) = RetryLoop::begin(true, true);
    assert_eq!(first, AttemptAction::Send(None));
    let lost = match before {
        Before::Unsent => Lost::NotSent(Cause::Connect),
        Before::MayHaveRun => Lost::NoHead(Cause::Reset),
        Before::Stale => Lost::StaleConnection,
    };
    let ending = Ending::Lost(lost);
    retries.record(Attempt::new(retries.end_of(&ending), None));
    let action = attempts.on(AttemptEvent::Ended(ending), &retries, view());
    (attempts, retries, action)
}

fn ask() -> AttemptEvent {
    AttemptEvent::Leave {
        halt: None,
        limit: None,
    }
}

fn refusal(code: Code) -> Refusal {
    Refusal::new(code)
}

fn word(action: &AttemptAction) -> String {
    match action {
        AttemptAction::Send(None) => "send".to_owned(),
        AttemptAction::Send(Some(_)) => "send again".to_owned(),
        AttemptAction::Wait { beyond: false, .. } => "wait".to_owned(),
        AttemptAction::Wait { beyond: true, .. } => "wait all the same".to_owned(),
        AttemptAction::Queue { while_here: true } => "queue while here".to_owned(),
        AttemptAction::Queue { while_here: false } => "queue".to_owned(),
        AttemptAction::Ask => "ask".to_owned(),
        AttemptAction::EndAsLast { exhausted: false } => "as last".to_owned(),
        AttemptAction::EndAsLast { exhausted: true } => "exhausted".to_owned(),
        AttemptAction::Refuse(refusal) => refusal.code.as_str().to_owned(),
    }
}

/// The table in the head of the file.
#[test]
fn between_two_attempts_each_event_has_its_consequence() {
    use AttemptEvent::{AppLeft, Crowded, Halted, Leave, NoPlace, Placed, QueueClosed, Waited};
    let crowd = || Crowded(refusal(Code::QueueFull));
    let halt = || Halted(refusal(Code::Frozen));
    let halted = || Leave {
        halt: Some(refusal(Code::Frozen)),
        limit: None,
    };
    let limited = || Leave {
        halt: None,
        limit: Some(refusal(Code::CapReached)),
    };
    let to_queue = || vec![Waited];
    let to_ask = || vec![Waited, Placed];
    let rows: Vec<(Before, Vec<AttemptEvent>, AttemptEvent, &str)> = vec![
        (Before::Unsent, vec![], crowd(), "queue_full"),
        (Before::MayHaveRun, vec![], crowd(), "wait all the same"),
        (Before::Stale, vec![], crowd(), "wait all the same"),
        (
            Before::MayHaveRun,
            vec![crowd()],
            Waited,
            "queue while here",
        ),
        (Before::Unsent, vec![], Waited, "queue while here"),
        (Before::MayHaveRun, vec![], halt(), "frozen"),
        (Before::Unsent, to_queue(), Placed, "ask"),
        (Before::Unsent, to_queue(), NoPlace, "as last"),
        (Before::Unsent, to_queue(), AppLeft, "as last"),
        (Before::Unsent, to_queue(), QueueClosed, "shutting_down"),
        (Before::MayHaveRun, to_queue(), QueueClosed, "as last"),
        (Before::MayHaveRun, to_queue(), halt(), "frozen"),
        (Before::Unsent, to_ask(), ask(), "send again"),
        (Before::Unsent, to_ask(), limited(), "cap_reached"),
        (Before::MayHaveRun, to_ask(), limited(), "send again"),
        (Before::MayHaveRun, to_ask(), halted(), "frozen"),
    ];
    for (before, path, event, wanted) in rows {
        let (mut attempts, retries, first) = waits(before);
        assert_eq!(word(&first), "wait", "{before:?}");
        for step in &path {
            attempts.on(step.clone(), &retries, view());
        }
        let action = attempts.on(event.clone(), &retries, view());
        assert_eq!(word(&action), wanted, "{before:?} {path:?} {event:?}");
    }
}

#[test]
fn nothing_is_sent_for_no_app_or_under_a_key_that_may_be_too_old() {
    let unwanted = AttemptView {
        wanted: WantedBy::NoApp,
        ..view()
    };
    let too_old = AttemptView {
        may_repeat: false,
        ..view()
    };
    let path = [AttemptEvent::Waited, AttemptEvent::Placed, ask()];
    for (at, event) in path.iter().enumerate() {
        let (mut attempts, retries, _) = waits(Before::Unsent);
        for step in &path[..at] {
            attempts.on(step.clone(), &retries, view());
        }
        let action = attempts.on(event.clone(), &retries, unwanted);
        assert_eq!(word(&action), "as last", "{event:?}");
    }
    let (mut attempts, retries, _) = waits(Before::Unsent);
    let actions = path.map(|step| word(&attempts.on(step, &retries, too_old)));
    assert_eq!(actions, ["queue while here", "ask", "as last"]);
    let (_, first) = RetryLoop::begin(true, false);
    assert_eq!(word(&first), Code::OutcomeUnknown.as_str());
}

#[test]
fn a_place_is_waited_for_on_behalf_of_the_app_or_of_its_follower() {
    let followed = AttemptView {
        wanted: WantedBy::Follower,
        ..view()
    };
    let (mut attempts, retries, _) = waits(Before::Unsent);
    let action = attempts.on(AttemptEvent::Waited, &retries, followed);
    assert_eq!(word(&action), "queue", "the place is for the follower");
    let (mut free, first) = RetryLoop::begin(false, true);
    assert_eq!(word(&first), "send");
    let busy = Ending::Refused(ErrorHead {
        status: StatusCode::SERVICE_UNAVAILABLE,
        has_json: true,
        declines: false,
        asked: Some(PAUSE),
    });
    free.on(AttemptEvent::Ended(busy), &retries, view());
    let action = free.on(AttemptEvent::Waited, &retries, view());
    assert_eq!(word(&action), "ask", "this route needs no place");
}

#[test]
fn an_app_that_is_turned_away_between_attempts_is_asked_to_wait_as_long_as_the_service_asked() {
    let (mut attempts, retries, _) = waits(Before::Unsent);
    let crowd = refusal(Code::QueueFull).after(Duration::from_secs(1));
    let action = attempts.on(AttemptEvent::Crowded(crowd), &retries, view());
    let AttemptAction::Refuse(refusal) = action else {
        panic!("{action:?}");
    };
    assert_eq!(refusal.retry_after_s, Some(PAUSE.as_secs()));
}
