//! Damage, loss and foreign lines: what is not known to be whole is not compacted, and what is lost of a
//! compacted ledger shows.

use super::*;
use crate::ledger::upkeep::verify::IndexCheck;

/// What befalls a ledger.
type Harm = fn(&Bench);

/// Flips a byte in the midst of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn on_a_full_disk_nothing_is_left_of_what_was_begun() {
    const ENOSPC: i32 = 28;
    let history = History::of(400);
    let state = history.state();
    let here = journal(&state);
    let wanted = history.wanted(200);
    let before = here.names().unwrap();
    let planned = plan(&here, &wanted, false, u64::MAX).unwrap();
    history.paper.bench.fail_next_write(10, ENOSPC);
    let built = build(&here, &planned, &wanted, &not_cancelled());
    assert!(built.is_err_and(|error| error.is_full()));
    assert_eq!(here.names().unwrap(), before);
}

#[test]
fn a_damaged_segment_stays_and_so_does_all_behind_it() {
    let history = History::of(400);
    let state = history.state();
    let bench = &history.paper.bench;
    flip(&bench.segment(4));
    let before = ask_all(&state, &history);
    let here = journal(&state);
    let wanted = history.wanted(200);

    let planned = plan(&here, &wanted, false, u64::MAX).unwrap();
    assert!(
        planned
            .stopped_by
            .as_ref()
            .is_some_and(|why| why.contains("00000004.jsonl is damaged")),
        "{planned:?}"
    );
    assert!(
        build(&here, &planned, &wanted, &not_cancelled())
            .unwrap()
            .is_some()
    );
    commit(&here).unwrap();
    clear(&here).unwrap();

    assert!(!bench.segment(3).exists());
    assert!(bench.segment(4).exists() && bench.segment(5).exists());
    assert_eq!(ask_all(&state, &history), before);
    let report = verify(&state).unwrap();
    assert_eq!((report.ok, report.journal.bad_count), (false, 1));
}

#[test]
fn a_line_of_a_newer_bursar_is_not_thrown_away() {
    let history = History::of(400);
    let state = history.state();
    let path = history.paper.bench.segment(2);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let newer = lines[2].replacen(r#""kind":""#, r#""kind":"un"#, 1);
    let (body, _) = newer.rsplit_once(r#","crc":"#).unwrap();
    let crc = crc32c::crc32c(body.as_bytes());
    lines[2] = format!("{body}{}{crc:08x}\"}}", r#","crc":""#);
    fs::write(&path, lines.join("\n") + "\n").unwrap();

    let planned = plan(&journal(&state), &history.wanted(200), false, u64::MAX).unwrap();

    assert_eq!(planned.segments.len(), 1);
    assert_eq!(
        planned.stopped_by.as_deref(),
        Some("a newer bursar wrote 00000002.jsonl; compact it with that")
    );
}

#[test]
fn whatever_is_lost_of_a_compacted_ledger_shows() {
    let harms: [(&str, Harm); 6] = [
        ("the compacted segment", |bench| {
            fs::remove_file(bench.segment(0)).unwrap();
        }),
        ("its end", |bench| {
            let text = fs::read_to_string(bench.segment(0)).unwrap();
            let kept = text.trim_end().rsplit_once('\n').unwrap().0;
            fs::write(bench.segment(0), format!("{kept}\n")).unwrap();
        }),
        ("its first rollup", |bench| {
            let text = fs::read_to_string(bench.segment(0)).unwrap();
            let (header, rest) = text.split_once('\n').unwrap();
            let rest = rest.split_once('\n').unwrap().1;
            fs::write(bench.segment(0), format!("{header}\n{rest}")).unwrap();
        }),
        ("a byte of it", |bench| flip(&bench.segment(0))),
        ("the segment behind it", |bench| {
            let names = names(&bench.state());
            fs::remove_file(bench.state().join("journal").join(&names[1])).unwrap();
        }),
        ("one in the midst", |bench| {
            let names = names(&bench.state());
            fs::remove_file(bench.state().join("journal").join(&names[3])).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let history = History::of(400);
        let state = history.state();
        assert!(compact(&state, &history.wanted(120)));
        sound(&state);
        harm(&history.paper.bench);

        let report = verify(&state).unwrap();
        assert!(!report.ok, "{what}: {report:?}");
        assert_ne!(
            report.journal.bad_count + report.journal.gap_count,
            0,
            "{what}"
        );
        // And nothing more is compacted on top of it.
        let wanted = history.wanted(255);
        let planned = plan(&journal(&state), &wanted, false, u64::MAX).unwrap();
        assert!(planned.stopped_by.is_some(), "{what}: {planned:?}");
    }
}

#[test]
fn new_records_never_go_where_a_compacted_segment_hides_them() {
    let history = History::of(400);
    let state = history.state();
    let bench = &history.paper.bench;
    assert!(compact(&state, &history.wanted(250)));
    for name in names(&state).iter().skip(1) {
        fs::remove_file(state.join("journal").join(name)).unwrap();
    }
    let rolled = fs::read(bench.segment(0)).unwrap();
    let before = verify(&state).unwrap().billed_micro_usd;

    let runtime = tokio::runtime::Runtime::new().unwrap();
    for _ in 0..2 {
        runtime.block_on(async {
            let ledger = bench.open();
            let receipt = crate::ledger::fixtures::billed(5);
            crate::ledger::fixtures::buy(&ledger, None, receipt).await;
            ledger.close().await;
        });
    }

    let report = verify(&state).unwrap();
    assert_eq!(
        report.billed_micro_usd.get(),
        before.get() + 10,
        "{report:?}"
    );
    assert_eq!(fs::read(bench.segment(0)).unwrap(), rolled);
}

#[test]
fn an_index_from_before_a_compaction_never_counts_twice() {
    let history = History::of(400);
    let bench = &history.paper.bench;
    let state = history.state();
    let totals = {
        let ledger = bench.open();
        let totals = (*ledger.totals()).clone();
        drop(ledger);
        totals
    };
    assert!(matches!(verify(&state).unwrap().index, IndexCheck::Agrees));
    assert!(compact(&state, &history.wanted(120)));

    let ledger = bench.open();
    assert_eq!(ledger.health().index_rebuilds, 0);
    assert_eq!(*ledger.totals(), totals);
    drop(ledger);
    sound(&state);

    // All of the index is lost.
    fs::remove_dir_all(state.join("index")).unwrap();
    let ledger = bench.open();
    assert_eq!(*ledger.totals(), totals);
    drop(ledger);
    sound(&state);
}

#[test]
fn an_index_that_fell_behind_what_was_compacted_is_rebuilt() {
    let history = History::of(400);
    let bench = &history.paper.bench;
    let state = history.state();
    // A power cut may take the index back to any earlier state: here to the second segment.
    let mut later = names(&state).split_off(2);
    later.push("mark".to_owned());
    let aside = bench.root.path().join("aside");
    fs::create_dir(&aside).unwrap();
    for name in &later {
        fs::rename(state.join("journal").join(name), aside.join(name)).unwrap();
    }
    let second = fs::read(bench.segment(2)).unwrap();
    drop(bench.open());
    fs::write(bench.segment(2), second).unwrap();
    for name in &later {
        let to = state.join("journal").join(name);
        if to.exists() {
            fs::remove_file(&to).unwrap();
        }
        fs::rename(aside.join(name), to).unwrap();
    }
    // The start without a mark noted that it did not know the journal's end.
    fs::remove_dir_all(state.join("quarantine")).unwrap();
    assert!(compact(&state, &history.wanted(200)));
    let billed = verify(&state).unwrap().billed_micro_usd;

    let ledger = bench.open();

    assert_eq!(ledger.health().index_rebuilds, 1);
    assert_eq!(ledger.totals().billed(), billed);
    drop(ledger);
    sound(&state);
}
