//! Files and segments that are not as the daemon leaves them: the answer is the journal's, and lookup files are used
//! wherever they can be.

use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::query::verify;

/// A bursar of a later version lists entries whose lines this one does not know: no file may hide them from it.
#[test]
fn a_segment_with_lines_of_a_newer_bursar_has_no_file() {
    let changes = [
        ("", "", 1),
        (r#""operation":"chat""#, r#""operation":"telepathy""#, 0),
        (r#""kind":"intent""#, r#""kind":"vision""#, 0),
    ];

    for (word, newer, made) in changes {
        let mut paper = Paper::new(2 << 20);
        let begun = intent(entry_id(1, paper.now_ms), paper.now_ms, None);
        let record = Record::Intent(Arc::new(begun));
        paper.write(&record, true);
        let mut line = Vec::new();
        record.encode(2, &mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        let (rest, _) = line.rsplit_once(r#","crc":"#).unwrap();
        let rest = rest.replacen(word, newer, 1);
        let crc = crc32c::crc32c(rest.as_bytes());
        paper.append(format!("{rest},\"crc\":\"{crc:08x}\"}}\n").as_bytes());
        paper.finish();

        assert_eq!(
            refreshed_to_the_end(&paper.state(), &mut None).made,
            made,
            "{rest}"
        );
    }
}

/// The journal's mark is written behind its lines, and a power cut may take it back further.
#[tokio::test]
async fn a_mark_that_is_behind_the_journal_has_no_journal_read() {
    let bench = bought(200).await;
    let state = bench.state();
    refreshed_to_the_end(&state, &mut None);
    let journal = Directory::open(&state.join("journal")).unwrap();
    HighWater::write(&journal, 390).unwrap();
    let asked = Filter {
        until_ms: Some(crate::ledger::fixtures::START_MS + 3_600_000 * 3),
        limit: Some(50),
        ..Filter::default()
    };

    let reader = JournalReader::open(&state).unwrap();
    let (listing, work) = crate::ledger::read::listing::list_on(reader, &asked).unwrap();

    assert_eq!((listing.entries.len(), listing.last_seq), (3, Some(400)));
    assert!(work.lines < 30, "{work:?}");
}

#[tokio::test]
async fn segments_that_took_each_others_names_are_read_in_the_order_of_their_numbers() {
    let bench = bought(60).await;
    let state = bench.state();
    let ask = |after_seq| {
        let asked = Filter {
            after_seq,
            limit: Some(2),
            ..Filter::default()
        };
        listed(&list(&state, &asked).unwrap())
    };
    let marks = [None, Some(0), Some(60), Some(116)];
    let sound = marks.map(ask);
    let count = JournalReader::open(&state).unwrap().segments.len();
    let number = |back: usize| u32::try_from(count - back).unwrap();
    let aside = state.join("aside");

    for (one, other) in [(0, 1), (0, 4), (1, 2)] {
        let (one, other) = (bench.segment(number(one)), bench.segment(number(other)));
        let swap = || {
            fs::rename(&one, &aside).unwrap();
            fs::rename(&other, &one).unwrap();
            fs::rename(&aside, &other).unwrap();
        };
        for with_files in [false, true] {
            if with_files {
                refreshed_to_the_end(&state, &mut None);
            }
            swap();
            assert_eq!(marks.map(ask), sound, "{one:?} and {other:?}, {with_files}");
            swap();
        }
        fs::remove_dir_all(state.join(DIRECTORY)).unwrap();
    }
}

#[tokio::test]
async fn a_rebuild_makes_the_damaged_file_of_the_last_segment_anew() {
    let bench = bought(10).await;
    let state = bench.state();
    refreshed_to_the_end(&state, &mut None);
    let path = blocks(&state).pop().unwrap();
    let mut damaged = fs::read(&path).unwrap();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&path, damaged).unwrap();
    assert_eq!(verify(&state).unwrap().unfit_lookups.len(), 1);

    Ledger::rebuild(bench.options(), Arc::new(|_, _| {})).unwrap();

    assert_eq!(verify(&state).unwrap().unfit_lookups, NO_STRINGS);
}

#[tokio::test]
async fn each_kind_of_unfit_file_is_named_by_verify_and_made_anew() {
    let bench = bought(80).await;
    let state = bench.state();
    refreshed(&state);
    let paths = blocks(&state);
    assert!(paths.len() >= 5, "{paths:?}");
    let sound = fs::read(&paths[4]).unwrap();
    let mut damaged = fs::read(&paths[0]).unwrap();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&paths[0], &damaged).unwrap();
    fs::write(&paths[1], &fs::read(&paths[1]).unwrap()[..100]).unwrap();
    fs::write(&paths[2], &sound).unwrap();
    let mut other = fs::read(&paths[3]).unwrap();
    other[7] = b'9';
    fs::write(&paths[3], other).unwrap();
    let segment = bench.segment(5);
    let file = fs::File::options().write(true).open(&segment).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();

    let reader = JournalReader::open(&state).unwrap();
    let unfit = check(&reader);
    let said = verify(&state).unwrap();
    let made = refreshed(&state).made;

    let wanted = [
        (1, Unfit::Damaged),
        (2, Unfit::Damaged),
        (3, Unfit::Foreign),
        (4, Unfit::OtherFormat),
        (5, Unfit::Stale),
    ];
    assert_eq!(unfit, wanted);
    assert_eq!(said.unfit_lookups.len(), 5);
    assert!(said.ok, "the journal is sound: {said:?}");
    assert_eq!(made, 5);
    assert!(check(&JournalReader::open(&state).unwrap()).is_empty());
}

#[tokio::test]
async fn the_block_of_a_segment_that_was_cut_and_written_anew_is_not_asked() {
    let bench = bought(3).await;
    let state = bench.state();
    let path = last_segment(&state);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(refreshed_to_the_end(&state, &mut None).made, 1);
    let reader = JournalReader::open(&state).unwrap();
    let of_all = Lookups::beside(&reader).of(&reader, 0).expect("a block");
    assert_eq!(of_all.ends_at(), Some(reader.segments[0].bytes));
    assert_eq!(of_all.summary().rows, 3);

    // Lines that were never synced are lost, and others take their place.
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = lines[..lines.len() - 1].concat();
    crashes(entry_id(9, 7), crate::ledger::fixtures::labels(7, None))
        .encode(6, &mut text)
        .unwrap();
    text.extend_from_slice(&bytes);
    fs::write(&path, text).unwrap();

    let reader = JournalReader::open(&state).unwrap();
    assert!(Lookups::beside(&reader).of(&reader, 0).is_none());
}

/// Beside a daemon a file may be renewed between the listing of the segments and the look at it.
#[tokio::test]
async fn a_file_that_is_newer_than_the_listing_is_not_asked_and_not_unfit() {
    let bench = bought(3).await;
    let state = bench.state();
    let path = last_segment(&state);
    let bytes = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(&path, lines[..lines.len() - 2].concat()).unwrap();
    let before = JournalReader::open(&state).unwrap();
    fs::write(&path, &bytes).unwrap();
    refreshed_to_the_end(&state, &mut None);

    assert_eq!(check(&before), []);
    assert!(Lookups::beside(&before).of(&before, 0).is_none());
    let after = JournalReader::open(&state).unwrap();
    assert!(Lookups::beside(&after).of(&after, 0).is_some());
}
