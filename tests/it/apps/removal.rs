//! A change of the apps is one change: caps exist before the door is open, and a waiting request whose
//! app is removed is refused instead of sent without a cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bursar::apps::AppAdd;
use bursar::apps::runs::Run;
use bursar::config::{App, Token};
use bursar::ledger::usage::RunSoFar;
use bursar::money::MicroUsd;

use super::{CHAT, add, bearer};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, eventually};

fn is_removed(answer: &Answer, name: &str) {
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert_eq!(answer.code(), Some("app_removed"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let text = answer.text();
    assert!(
        text.contains(name) && text.contains("Nothing was sent"),
        "{text}"
    );
}

async fn begin(bursar: &Bursar, token: &str, body: &str) -> Wire {
    let mut wire = bursar.connect().await;
    let shown = bearer(token);
    wire.send(request(
        "POST",
        CHAT,
        &[("Authorization", &shown)],
        &chat(body),
    ))
    .await;
    wire
}

async fn sent(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

async fn waiting(bursar: &Bursar, metric: &str) {
    eventually("it to wait", || async {
        (bursar.metric(metric, "") == 1.0).then_some(())
    })
    .await;
}

fn capped(name: &str, day: u64) -> AppAdd {
    AppAdd {
        name: name.to_owned(),
        cap_day_micro_usd: Some(MicroUsd::new(day)),
        request_floor_micro_usd: Some(MicroUsd::new(600)),
        ..AppAdd::default()
    }
}

#[tokio::test]
async fn a_request_below_the_cap_of_a_removed_app_stops_waiting_and_one_that_runs_finishes() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let token = bursar
        .apps
        .add(&capped("nightly", 1_000), 1)
        .expect("an app");
    let mut first = begin(&bursar, token.reveal(), "first").await;
    sent(&origin, 1).await;
    let mut waits = begin(&bursar, token.reveal(), "waits").await;
    waiting(&bursar, "bursar_cap_waiting_requests").await;

    bursar.apps.remove("nightly").expect("it is there");

    is_removed(&waits.answer().await, "nightly");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
    assert_eq!(bursar.settled(1).await.len(), 1);
    assert_eq!(bursar.billed(), 7);
}

#[tokio::test]
async fn a_request_that_waits_for_a_place_ends_with_its_app_and_others_wait_on() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)]), Step::Answer(billed(8))]).await;
    let bursar = Bursar::with(&origin.url(), "[shaping]\nin_flight = 1\n").await;
    let (gone, stays) = (add(&bursar, "gone"), add(&bursar, "stays"));
    let mut first = begin(&bursar, &gone, "first").await;
    sent(&origin, 1).await;
    let mut waits = begin(&bursar, &gone, "waits").await;
    waiting(&bursar, "bursar_queue_depth").await;
    let mut other = begin(&bursar, &stays, "other").await;

    bursar.apps.remove("gone").expect("it is there");

    is_removed(&waits.answer().await, "gone");
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(other.answer().await.status, 200);
    assert_eq!(origin.received().len(), 2);
}

#[tokio::test]
async fn a_request_that_waits_for_its_run_is_refused_when_the_app_is_removed() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    add(&bursar, "nightly");
    let run = Run::new(&App::new("nightly"), 1).expect("a run");
    let max = MicroUsd::new(1_000);
    let caps = bursar.gateway.caps();
    let limit = caps.open_run(&run.id, max, || Ok(RunSoFar::default()));
    let _limit = limit.expect("a limit");
    let token = Token::draw().expect("a token");
    let open = bursar.apps.open_run(run, token.hash());
    let _open = open.expect("the run is open");
    let mut first = begin(&bursar, token.reveal(), "first").await;
    sent(&origin, 1).await;
    let mut waits = begin(&bursar, token.reveal(), "waits").await;
    eventually("it to come in", || async {
        (bursar.gateway.in_flight() == 2).then_some(())
    })
    .await;

    bursar.apps.remove("nightly").expect("it is there");

    let answer = waits.answer().await;
    // It may not have come as far as the run: then its token is not known any more.
    if answer.code() != Some("token_refused") {
        is_removed(&answer, "nightly");
    }
    origin.go();
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(origin.received().len(), 1);
}

/// An app with a cap of 0 is added and removed while its user asks without a pause. If one request is
/// served, it passed the door before its cap was in force, or lost the cap on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_request_of_an_app_with_a_cap_of_nothing_is_served_while_it_comes_and_goes() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Arc::new(Bursar::with(&origin.url(), "[listen]\nanonymous = false\n").await);
    let (ends, served, refused) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let asking: Vec<_> = (0..4)
        .map(|asker| {
            let (ends, served, refused) = (ends.clone(), served.clone(), refused.clone());
            let socket = bursar.socket.clone();
            tokio::spawn(async move {
                let mut number = 0;
                while !ends.load(Ordering::Relaxed) {
                    number += 1;
                    let mut wire = Wire::unix(&socket).await;
                    let body = chat(&format!("{asker} {number}"));
                    wire.send(request("POST", CHAT, &[], &body)).await;
                    let answer = wire.answer().await;
                    match answer.code() {
                        None => served.fetch_add(1, Ordering::Relaxed),
                        Some("cap_reached") => refused.fetch_add(1, Ordering::Relaxed),
                        Some("token_missing" | "app_removed") => 0,
                        Some(other) => panic!("{other}: {}", answer.text()),
                    };
                }
            })
        })
        .collect();
    let new = AppAdd {
        uids: vec![rustix::process::geteuid().as_raw()],
        ..capped("nightly", 0)
    };
    for _ in 0..100 {
        let (bursar, new) = (Arc::clone(&bursar), new.clone());
        let change = tokio::task::spawn_blocking(move || {
            bursar.apps.add(&new, 1).expect("an app");
            bursar.apps.remove("nightly").expect("it is there");
        });
        change.await.expect("the changes are made");
    }
    let last = bursar.apps.add(&new, 1);
    last.expect("an app");
    eventually("a refusal", || async {
        (refused.load(Ordering::Relaxed) > 0).then_some(())
    })
    .await;
    ends.store(true, Ordering::Relaxed);
    for asker in asking {
        asker.await.expect("it asked to its end");
    }
    assert_eq!(served.load(Ordering::Relaxed), 0);
    assert!(origin.received().is_empty());
}

#[tokio::test]
async fn changes_at_the_same_time_leave_every_app_with_its_cap() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    std::thread::scope(|scope| {
        for number in 0..16_u64 {
            let apps = &bursar.apps;
            scope.spawn(move || {
                let name = format!("app-{number}");
                apps.add(&capped(&name, number + 1), 1).expect("an app");
                if number % 4 == 0 {
                    apps.remove(&name).expect("it is there");
                }
            });
        }
        let declared = bursar::apps::Declared::from(&*bursar.config);
        scope.spawn(|| bursar.apps.redeclare(declared).expect("the same again"));
    });
    let caps = bursar.gateway.caps().view().caps;
    let mut found: Vec<(String, u64)> = caps
        .into_iter()
        .map(|cap| (cap.scope, cap.limit.get()))
        .collect();
    found.sort();
    let wanted = (0..16).filter(|number| number % 4 != 0);
    let mut wanted: Vec<(String, u64)> = wanted
        .map(|number| (format!("app-{number}"), number + 1))
        .collect();
    wanted.sort();
    assert_eq!(found, wanted);
}
