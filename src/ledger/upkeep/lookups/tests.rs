use std::collections::BTreeMap;

use super::*;
use crate::ledger::fixtures::{Bench, billed, buy};
use crate::ledger::{Ledger, LedgerOptions};

const SEGMENT_BYTES: u64 = 3_000;

async fn bench_with_segments() -> Bench {
    let bench = Bench::new();
    let ledger = Ledger::open(small(&bench)).unwrap();
    for amount in 1..=20 {
        buy(&ledger, None, billed(amount)).await;
    }
    ledger.close().await;
    bench
}

fn small(bench: &Bench) -> LedgerOptions {
    LedgerOptions {
        segment_bytes_max: SEGMENT_BYTES,
        ..bench.options()
    }
}

/// What the job that was begun came to.
fn ended(upkeep: &mut LookupUpkeep) -> Option<Result<Refreshed, LedgerError>> {
    Some(upkeep.job.take()?.join().expect("no panic"))
}

#[tokio::test]
async fn files_are_made_after_the_start_and_whenever_a_segment_was_sealed() {
    let bench = bench_with_segments().await;
    let _ = std::fs::remove_dir_all(bench.state().join("lookup"));
    let mut upkeep = LookupUpkeep::new(bench.state());
    let now = Duration::from_secs(100);

    upkeep.step(now, (7, 10));
    let first = ended(&mut upkeep).expect("a look at the start").unwrap();
    upkeep.step(now, (7, 10));
    let idle = ended(&mut upkeep).is_none();
    upkeep.step(now, (8, 10));
    let sealed = ended(&mut upkeep)
        .expect("a look when one is sealed")
        .unwrap();
    upkeep.step(now, (8, 10 + UNSEALED_BYTES));
    let grown = ended(&mut upkeep);
    upkeep.look_again();
    upkeep.step(now, (8, 10));

    assert!(first.made >= 2, "{first:?}");
    assert!(idle && sealed.made == 0);
    assert!(grown.is_some(), "a look when the last one has grown");
    assert!(
        ended(&mut upkeep).is_some(),
        "a look when segments became others"
    );
}

#[tokio::test]
async fn a_failure_is_tried_again_an_hour_later_and_requests_are_served() {
    let bench = bench_with_segments().await;
    let _ = std::fs::remove_dir_all(bench.state().join("lookup"));
    std::fs::write(bench.state().join("lookup"), "in the way").unwrap();
    let mut upkeep = LookupUpkeep::new(bench.state());
    let now = Duration::from_secs(100);

    upkeep.step(now, (7, 10));
    let job = upkeep.job.take().expect("a look");
    upkeep.end(job, now);
    upkeep.step(now, (8, 10));
    assert!(upkeep.job.is_none(), "not at once");
    upkeep.step(now + RETRY_PAUSE, (8, 10));
    assert!(ended(&mut upkeep).expect("a look").is_err());

    let ledger = Ledger::open(small(&bench)).unwrap();
    for amount in 1..=10 {
        buy(&ledger, None, billed(amount)).await;
    }
    ledger.close().await;
    let report = crate::ledger::query::verify(&bench.state()).unwrap();
    assert!(report.ok && report.entries == 30, "{report:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_files_to_be_made() {
    let bench = bench_with_segments().await;
    let mut upkeep = LookupUpkeep::new(bench.state());

    upkeep.step(Duration::ZERO, (7, 10));
    upkeep.stop();

    assert!(upkeep.job.is_none() && upkeep.cancel.load(Ordering::Relaxed));
}

#[tokio::test]
async fn what_was_taken_of_a_segment_goes_into_the_file_that_stays_when_it_is_sealed() {
    let bench = bench_with_segments().await;
    let cancel = AtomicBool::new(false);
    let lookup_files = || {
        let files = std::fs::read_dir(bench.state().join("lookup")).unwrap();
        let read = |file: std::io::Result<std::fs::DirEntry>| {
            let path = file.unwrap().path();
            (path.clone(), std::fs::read(path).unwrap())
        };
        files.map(read).collect::<BTreeMap<_, _>>()
    };
    let to_the_end = Refresh {
        unsealed_bytes: 1,
        ..Refresh::default()
    };
    let mut growing = None;
    refresh(&bench.state(), &to_the_end, &mut growing, &cancel).unwrap();
    let taken = growing.as_ref().map(Growing::segment);

    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 1,
        ..bench.options()
    });
    buy(&ledger.unwrap(), None, billed(21)).await;
    refresh(&bench.state(), &Refresh::default(), &mut growing, &cancel).unwrap();
    let gone_on = lookup_files();
    let anew = Refresh {
        is_anew: true,
        ..Refresh::default()
    };
    refresh(&bench.state(), &anew, &mut None, &cancel).unwrap();

    assert!(taken.is_some());
    assert!(growing.is_none(), "{growing:?}");
    assert_eq!(gone_on, lookup_files());
}
