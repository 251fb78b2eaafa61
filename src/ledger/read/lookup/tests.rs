//! Whatever is asked of whatever ledger: the answer with lookup files is the answer without.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::ledger::delivery::{Handover, Undelivered};
use crate::ledger::entry::{
    FirstSent, InDoubt, Intent, KeyOrigin, KeyUse, Labels, State, StateWord,
};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::fixtures::paper::{Paper, crashes, ends, evidence};
use crate::ledger::fixtures::{Bench, billed, buy, intent, minted};
use crate::ledger::kept_key::{EntryKey, KeptKey, KeyForm, Organization};
use crate::ledger::query::{entries, find, list};
use crate::ledger::read::filter::Listing;
use crate::ledger::record::Record;
use crate::ledger::upkeep::compact::{Wanted, build, clear, commit, plan};
use crate::ledger::{Ledger, LedgerOptions};
use crate::money::MicroUsd;

mod harm;

const MINUTE_MS: u64 = 60 * 1000;

const NO_STRINGS: Vec<String> = Vec::new();

fn wanted() -> AtomicBool {
    AtomicBool::new(false)
}

fn refreshed(state: &Path) -> Refreshed {
    let thorough = Refresh {
        is_thorough: true,
        ..Refresh::default()
    };
    refresh(state, &thorough, &mut None, &wanted()).unwrap()
}

/// Makes the block of the segment that is being written, too, or goes on with it.
fn refreshed_to_the_end(state: &Path, growing: &mut Option<Growing>) -> Refreshed {
    let all = Refresh {
        unsealed_bytes: 1,
        ..Refresh::default()
    };
    refresh(state, &all, growing, &wanted()).unwrap()
}

/// The last segment.
fn last_segment(state: &Path) -> PathBuf {
    let reader = JournalReader::open(state).unwrap();
    let number = reader.segments.last().unwrap().number;
    state.join(format!("journal/{number:08}.jsonl"))
}

fn blocks(state: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(state.join(DIRECTORY)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A file that another program changed a while later.
fn rewrite(path: &Path, bytes: &[u8]) {
    let before = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(before + Duration::from_secs(1)).unwrap();
}

// --- histories ---

/// What happens next: the kind, which entry or word, minutes since the step before, and what becomes of the
/// line: 0 damages it, 1 writes an earlier line once more behind it.
type Step = (u8, u8, u16, u8);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![6 => 0..20u16, 3 => 20..600u16, 1 => 600..3000u16];
    let fate = prop_oneof![30 => Just(9u8), 1 => Just(0u8), 1 => Just(1u8)];
    prop::collection::vec((0..14u8, any::<u8>(), pause, fate), 10..70)
}

/// An id as bursar makes them: its time, then what looks random.
fn entry_id(number: usize, at_ms: u64) -> EntryId {
    let random = blake3::hash(&number.to_le_bytes());
    let bytes = random.as_bytes().first_chunk::<10>().unwrap();
    EntryId(uuid::Builder::from_unix_timestamp_millis(at_ms, bytes).into_uuid())
}

/// Keys of every form, some of them of several entries.
fn key(which: usize) -> Option<KeptKey> {
    let origin = match which % 3 {
        0 => KeyOrigin::App,
        _ => KeyOrigin::Minted,
    };
    let text = match which % 8 {
        0 => return None,
        1 => "k".repeat(257 + which % 2),
        2 => format!("{:064x}", which % 5),
        3 => format!("h:{:064x}", which % 5),
        4 => "with \"marks\" \\ and\nlines".to_owned(),
        5 => "shared".to_owned(),
        6 => format!("req-{}", which % 7),
        _ => format!("own-{}", which % 11),
    };
    Some(KeptKey {
        form: KeyForm::of(&[0; 32], &text),
        origin,
        organization: (!which.is_multiple_of(7))
            .then(|| Organization(u64::from(which.is_multiple_of(5)))),
        ..minted("")
    })
}

/// A journal, and what may be asked of it.
struct History {
    paper: Paper,
    texts: Vec<String>,
}

// === impl History ===

impl History {
    fn write(steps: &[Step], segment_bytes_max: usize) -> Self {
        let mut history = Self {
            paper: Paper::new(segment_bytes_max),
            texts: vec![
                "nothing".to_owned(),
                "ffffffff".to_owned(),
                "shared".to_owned(),
            ],
        };
        let mut open: Vec<Intent> = Vec::new();
        let mut unresolved: Vec<(EntryId, Labels, State)> = Vec::new();
        let mut ended: Vec<Intent> = Vec::new();
        for (at, (kind, which, minutes, fate)) in steps.iter().enumerate() {
            let which = usize::from(*which);
            history.paper.now_ms += u64::from(*minutes) * MINUTE_MS + 7;
            let record = if *kind >= 12 && !ended.is_empty() {
                let of = &ended[which % ended.len()];
                let Some(row) = undelivered(of) else { continue };
                let handover = Handover {
                    delivered: which.is_multiple_of(2),
                    assumed: false,
                };
                Record::Delivery(Box::new(row), handover)
            } else if *kind >= 10 && !unresolved.is_empty() {
                let (id, labels, was) = unresolved.remove(which % unresolved.len());
                evidence(id, labels, was)
            } else if *kind >= 4 && !open.is_empty() {
                let begun = open.remove(which % open.len());
                let record = history.end(*kind, which, at, &begun, &mut unresolved);
                ended.push(begun);
                record
            } else {
                let begun = history.begin(at, which);
                open.push(begun.clone());
                Record::Intent(Arc::new(begun))
            };
            history.paper.write(&record, *fate != 0);
            if *fate == 1 {
                history.paper.repeat(which);
            }
        }
        history.paper.finish();
        history.paper.bench.clock.set_wall_ms(history.paper.now_ms);
        history.texts.sort();
        history.texts.dedup();
        history
    }

    fn begin(&mut self, at: usize, which: usize) -> Intent {
        let id = entry_id(at, self.paper.now_ms);
        let mut begun = intent(id, self.paper.now_ms, None);
        begun.key = key(which);
        begun.app = Arc::from(["notes", "agent", "batch"][which % 3]);
        begun.operation = Operation::ALL[which / 3 % 4];
        begun.model = [Some("auto"), Some("large"), None][which / 7 % 3].map(str::to_owned);
        let text = id.to_string();
        let parts = [&text[..8], &text[28..], &text[24..], &text];
        self.texts.push(parts[at % 4].to_owned());
        if let Some(key) = &begun.key
            && let Some(text) = key.form.text()
        {
            self.texts.push(text.to_string());
        }
        begun
    }

    fn end(
        &mut self,
        kind: u8,
        which: usize,
        at: usize,
        begun: &Intent,
        unresolved: &mut Vec<(EntryId, Labels, State)>,
    ) -> Record {
        let labels = Labels::of_intent(begun);
        let reason = InDoubt::ALL[which % InDoubt::ALL.len()];
        let state = match kind {
            4 | 5 => State::Settled {
                billed: MicroUsd::new(u64::try_from(at).unwrap()),
            },
            6 => State::Failed,
            7 => State::Unreported,
            8 => State::InDoubt { reason },
            _ => {
                let state = State::InDoubt {
                    reason: InDoubt::Crash,
                };
                unresolved.push((begun.id, labels.clone(), state));
                return crashes(begun.id, labels);
            }
        };
        if state.is_unresolved() {
            unresolved.push((begun.id, labels.clone(), state));
        }
        let mut record = ends(begun.id, labels, state);
        if let Record::Outcome(outcome, ..) = &mut record {
            let outcome = Arc::make_mut(outcome);
            self.texts.push(format!("req-{}", which % 9));
            outcome.request_id = self.texts.last().cloned();
            if which.is_multiple_of(2) {
                outcome.receipt.billed = crate::protocol::Reported::Malformed;
            }
        }
        record
    }

    fn state(&self) -> PathBuf {
        self.paper.state()
    }
}

fn undelivered(of: &Intent) -> Option<Undelivered> {
    let key = of.key.as_ref()?.form.text()?;
    Some(Undelivered {
        id: of.id,
        at_ms: of.at_ms + 1,
        app: Arc::clone(&of.app),
        fingerprint: Fingerprint([1; 32]),
        key: EntryKey {
            value: Arc::clone(key),
            origin: KeyOrigin::Minted,
        },
        key_use: KeyUse {
            first_sent: FirstSent {
                at_ms: of.at_ms,
                up_ms: 1,
                boot: None,
            },
            adoptions: 0,
        },
    })
}

// --- questions ---

fn filters(history: &History) -> Vec<Filter> {
    let first = crate::ledger::fixtures::START_MS;
    let length = history.paper.now_ms - first;
    let state = |state| Filter {
        state: Some(state),
        ..Filter::default()
    };
    let mut filters: Vec<Filter> = StateWord::ALL.iter().map(|word| state(*word)).collect();
    filters.extend([
        Filter::default(),
        Filter {
            since_ms: Some(first + length / 3),
            until_ms: Some(first + length / 3 * 2),
            ..Filter::default()
        },
        Filter {
            app: Some("agent".to_owned()),
            ..Filter::default()
        },
        Filter {
            operation: Some(Operation::ALL[1]),
            ..Filter::default()
        },
        Filter {
            model: Some("large".to_owned()),
            ..Filter::default()
        },
        Filter {
            model: Some("auto".to_owned()),
            app: Some("notes".to_owned()),
            state: Some(StateWord::Settled),
            ..Filter::default()
        },
        Filter {
            reason: Some(InDoubt::Crash),
            ..Filter::default()
        },
        Filter {
            app: Some("nobody".to_owned()),
            ..Filter::default()
        },
    ]);
    let ids = history.texts.iter().filter_map(|text| text.parse().ok());
    filters.extend(ids.take(3).map(|id: EntryId| Filter {
        id: Some(id),
        ..Filter::default()
    }));
    filters
}

fn views<'a>(views: impl IntoIterator<Item = &'a crate::ledger::query::EntryView>) -> Value {
    let views = views.into_iter();
    views
        .map(|view| serde_json::to_value(view).unwrap())
        .collect()
}

fn listed(listing: &Listing) -> Value {
    json!({"entries": views(&listing.entries), "last_seq": listing.last_seq})
}

/// The first questions that are answered differently.
fn differing(some: &[(String, Value)], others: &[(String, Value)]) -> Vec<String> {
    let both = some.iter().zip(others);
    let differing = both.filter(|(one, other)| one != other).take(2);
    differing
        .map(|((asked, one), (_, other))| format!("{asked}:\n{one}\n{other}"))
        .collect()
}

/// Every answer, with its question.
fn answers(history: &History) -> Vec<(String, Value)> {
    let state = history.state();
    let mut answers = Vec::new();
    for filter in filters(history) {
        for limit in [1, 4, 50] {
            let asked = Filter {
                limit: Some(limit),
                ..filter.clone()
            };
            let answer = listed(&list(&state, &asked).unwrap());
            answers.push((format!("{asked:?}"), answer));
        }
    }
    for text in &history.texts {
        let found = find(&state, text).unwrap();
        let answer = json!({
            "by": found.by,
            "entries": views(&found.entries),
            "family": views(&found.family),
            "candidates": views(&found.candidates),
            "more": found.more,
        });
        answers.push((text.clone(), answer));
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_with_lookup_files_is_the_answer_without(
        steps in steps(),
        segment_bytes_max in 600..6_000usize,
        compacted in prop::option::of(0..255u64),
        harmed in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8),
    ) {
        let history = History::write(&steps, segment_bytes_max);
        let state = history.state();
        if let Some(place) = compacted {
            let length = history.paper.now_ms - crate::ledger::fixtures::START_MS;
            compact(&state, crate::ledger::fixtures::START_MS + length * place / 255);
        }
        let without = answers(&history);

        let made = refreshed(&state).made;
        prop_assert_eq!(differing(&answers(&history), &without), NO_STRINGS);
        prop_assert_eq!(refreshed(&state), Refreshed::default(), "nothing is made twice");
        let paths = blocks(&state);
        prop_assert_eq!(paths.len(), usize::try_from(made).unwrap());

        // The last segment's block was made some lines ago.
        let path = last_segment(&state);
        let bytes = fs::read(&path).unwrap();
        let ends = memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1);
        let ends: Vec<usize> = ends.collect();
        let mut growing = None;
        if !ends.is_empty() {
            fs::write(&path, &bytes[..*harmed.1.get(&ends)]).unwrap();
            refreshed_to_the_end(&state, &mut growing);
            fs::write(&path, &bytes).unwrap();
            prop_assert_eq!(differing(&answers(&history), &without), NO_STRINGS);
            refreshed_to_the_end(&state, &mut growing);
            prop_assert_eq!(differing(&answers(&history), &without), NO_STRINGS);
        }

        if !paths.is_empty() {
            let (which, place, how) = harmed;
            let path = which.get(&paths);
            let mut bytes = fs::read(path).unwrap();
            match how {
                0 => *place.get_mut(&mut bytes) ^= 4,
                1 => bytes.truncate(place.index(bytes.len())),
                2 => bytes = fs::read(place.get(&paths)).unwrap(),
                _ => bytes[7] += 1,
            }
            fs::write(path, bytes).unwrap();
            prop_assert_eq!(differing(&answers(&history), &without), NO_STRINGS);
            refreshed(&state);
            prop_assert_eq!(differing(&answers(&history), &without), NO_STRINGS);

            // A line of a sealed segment changes: the block made before is not asked.
            let number = path.file_stem().unwrap().to_str().unwrap();
            let segment = state.join("journal").join(format!("{number}.jsonl"));
            let mut bytes = fs::read(&segment).unwrap();
            *place.get_mut(&mut bytes) ^= 2;
            rewrite(&segment, &bytes);
            let changed = answers(&history);
            fs::remove_dir_all(state.join(DIRECTORY)).unwrap();
            prop_assert_eq!(differing(&changed, &answers(&history)), NO_STRINGS);
        }
    }
}

fn compact(state: &Path, before_ms: u64) {
    let journal = Directory::open_to_read(&state.join("journal")).unwrap();
    let wanted = Wanted {
        before_ms,
        before_seq: u64::MAX,
        ..Wanted::default()
    };
    let planned = plan(&journal, &wanted, false, u64::MAX).unwrap();
    if let Ok(Some(_)) = build(&journal, &planned, &wanted, &AtomicBool::new(false)) {
        commit(&journal).unwrap();
    }
    clear(&journal).unwrap();
}

// --- one by one ---

/// So many answers, one an hour, in segments of a few entries.
async fn bought(count: u64) -> Bench {
    let bench = Bench::new();
    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 6_000,
        ..bench.options()
    })
    .unwrap();
    for amount in 1..=count {
        buy(&ledger, Some(&format!("k{amount}")), billed(amount)).await;
        bench.clock.advance(Duration::from_secs(3600));
    }
    ledger.close().await;
    bench
}

#[tokio::test]
async fn few_lines_are_read_where_lookup_files_say_which() {
    let bench = bought(200).await;
    let state = bench.state();
    refreshed(&state);
    let asked = Filter {
        until_ms: Some(crate::ledger::fixtures::START_MS + 3_600_000 * 3),
        limit: Some(50),
        ..Filter::default()
    };

    let reader = JournalReader::open(&state).unwrap();
    let (listing, work) = crate::ledger::read::listing::list_on(reader, &asked).unwrap();

    assert_eq!(listing.entries.len(), 3);
    // The segment that is being written, and the three.
    assert!(work.lines < 30, "{work:?}");
}

#[tokio::test]
async fn lookup_files_take_sixty_bytes_an_entry_beside_their_contents() {
    let bench = bought(400).await;
    let state = bench.state();
    refreshed(&state);

    let reader = JournalReader::open(&state).unwrap();
    let lookups = Lookups::beside(&reader);
    let (mut rows, mut bytes) = (0, 0);
    for segment in 0..reader.segments.len() - 1 {
        let lookup = lookups.of(&reader, segment).expect("a block");
        rows += u64::from(lookup.summary().rows);
        bytes += lookup.block.section_bytes();
    }

    assert!(rows > 300, "{rows}");
    assert!(bytes / rows <= 60, "{bytes} bytes of {rows} rows");
}

#[tokio::test]
async fn a_file_that_was_begun_is_removed_and_made_whole() {
    let bench = bought(40).await;
    let state = bench.state();
    refreshed(&state);
    let sound = blocks(&state);
    let begun = sound[0].with_extension("block.next");
    fs::rename(&sound[0], &begun).unwrap();
    fs::write(&begun, "half").unwrap();

    let refreshed = refreshed(&state);

    assert_eq!((refreshed.made, refreshed.removed), (1, 1));
    assert_eq!(blocks(&state), sound);
}

#[tokio::test]
async fn files_of_segments_that_are_gone_are_removed() {
    let bench = bought(60).await;
    let state = bench.state();
    refreshed(&state);
    let before = blocks(&state).len();
    compact(&state, crate::ledger::fixtures::START_MS + 3_600_000 * 40);

    let refreshed = refreshed(&state);

    assert!(refreshed.removed > 3, "{refreshed:?}");
    let after = blocks(&state);
    assert!(after.len() < before && after[0].ends_with("00000000.block"));
    let left = entries(&state, &Filter::default()).unwrap();
    fs::remove_dir_all(state.join(DIRECTORY)).unwrap();
    assert_eq!(
        views(&left),
        views(&entries(&state, &Filter::default()).unwrap())
    );
    assert!((10..40).contains(&left.len()), "{}", left.len());
}

/// An entry is listed once and as it is, wherever one of its lines lies once more.
#[tokio::test]
async fn an_entry_whose_line_lies_twice_is_listed_once() {
    let bench = Bench::new();
    let ledger = bench.open();
    for amount in 1..=6 {
        buy(&ledger, None, billed(amount)).await;
    }
    ledger.close().await;
    let bytes = fs::read(bench.segment(1)).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let ask = |limit| {
        let asked = Filter {
            limit,
            ..Filter::default()
        };
        views(&entries(&bench.state(), &asked).unwrap())
    };
    let limits = [None, Some(3), Some(50)];
    let sound = limits.map(ask);

    for twice in 1..lines.len() {
        for place in 1..=lines.len() {
            let mut all = lines.clone();
            all.insert(place, lines[twice]);
            fs::write(bench.segment(1), all.concat()).unwrap();

            assert_eq!(limits.map(ask), sound, "line {twice} before line {place}");
        }
    }
}

#[test]
fn words_beyond_a_dictionary_are_looked_up_in_their_lines() {
    let mut paper = Paper::new(2 << 20);
    for number in 0..1_200_usize {
        let mut begun = intent(entry_id(number, paper.now_ms), paper.now_ms, None);
        begun.model = Some(format!("model-{number}"));
        paper.write(&Record::Intent(Arc::new(begun)), true);
    }
    paper.finish();
    let state = paper.state();
    // The next segment seals it.
    let journal = state.join("journal");
    let header = crate::ledger::record::SegmentHeader::new(Uuid::nil(), 2, 1_201, paper.now_ms);
    let mut line = Vec::new();
    header.encode(&mut line).unwrap();
    fs::write(journal.join("00000002.jsonl"), line).unwrap();
    assert_eq!(refreshed(&state).made, 1);

    for number in [3, 1_150] {
        let asked = Filter {
            model: Some(format!("model-{number}")),
            limit: Some(50),
            ..Filter::default()
        };
        assert_eq!(list(&state, &asked).unwrap().entries.len(), 1, "{number}");
    }
}
