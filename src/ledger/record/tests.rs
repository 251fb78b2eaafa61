use super::{EndedEntry, Evidence, How, Line, Record, SegmentHeader, Verdict};
use std::sync::Arc;

use crate::clock::BootId;
use crate::ledger::delivery::{Handover, Undelivered};
use crate::ledger::entry::Outcome;
use crate::ledger::entry::{Anomaly, AttemptEnd, Closed, InDoubt, Side, Stage, State};
use crate::ledger::entry::{Delivery, FirstSent, KeyUse};
use crate::ledger::fixtures::{START_MS, billed, ended, intent, labels};
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::{EntryKey, KeyOrigin};
use crate::money::MicroUsd;

fn id() -> EntryId {
    "0196b1a2-0000-7000-8000-000000000001".parse().unwrap()
}

fn samples() -> Vec<Record> {
    let state = State::InDoubt {
        reason: InDoubt::Crash,
    };
    vec![
        Record::Intent(Arc::new(intent(id(), START_MS, Some("k1")))),
        Record::Outcome(
            Arc::new(ended(id(), AttemptEnd::Answered, billed(1234))),
            labels(START_MS, Some("k1")),
            Verdict {
                state: State::Settled {
                    billed: MicroUsd::new(1234),
                },
                adds_micro_usd: MicroUsd::new(1234),
                anomalies: vec![Anomaly::Malformed],
            },
        ),
        Record::Crashed(
            EndedEntry {
                id: id(),
                at_ms: START_MS,
                state,
            },
            labels(START_MS, None),
        ),
        Record::Withdrawn(
            EndedEntry {
                id: id(),
                at_ms: START_MS,
                state: State::Failed,
            },
            labels(START_MS, None),
        ),
        Record::Reconciled(
            Evidence {
                id: id(),
                at_ms: START_MS,
                was: state,
                served_by: None,
                adds_micro_usd: MicroUsd::ZERO,
                how: How::Key { entry: id() },
            },
            labels(START_MS, None),
        ),
        Record::Delivery(
            Box::new(undelivered()),
            Handover {
                delivered: false,
                assumed: true,
            },
        ),
    ]
}

fn undelivered() -> Undelivered {
    let intent = intent(id(), START_MS, Some("k1"));
    Undelivered {
        id: id(),
        at_ms: START_MS,
        app: intent.app,
        fingerprint: intent.fingerprint,
        key: EntryKey {
            value: "k1".into(),
            origin: KeyOrigin::Adopted { from: id() },
        },
        key_use: KeyUse {
            first_sent: FirstSent {
                at_ms: START_MS,
                up_ms: 77,
                boot: Some(BootId(u32::MAX)),
            },
            adoptions: 2,
        },
    }
}

fn line_of(record: &Record, seq: u64) -> Vec<u8> {
    let mut line = Vec::new();
    record.encode(seq, &mut line).unwrap();
    assert_eq!(line.pop(), Some(b'\n'));
    line
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    for record in samples() {
        let line = line_of(&record, 42);

        let Some(Line::Record { seq, record: read }) = Line::decode(&line) else {
            panic!("{}", String::from_utf8_lossy(&line));
        };

        assert_eq!(seq, 42);
        assert_eq!(format!("{read:?}"), format!("{record:?}"));
    }
}

/// Where the parts of a line begin is looked for by the names of members: a text with such a name in it is none,
/// and parts in another order lose nothing.
#[test]
fn the_parts_of_an_outcome_are_found_in_any_text_and_in_any_order() {
    let mut outcome = ended(id(), AttemptEnd::Answered, billed(5));
    outcome.request_id = Some(r#"a","started_ms":1,"id":2"#.to_owned());
    let mut labels = labels(START_MS, Some(r#"k","id":"x","started_ms":"#));
    labels.app = r#"b\","id":"#.into();
    let verdict = Verdict {
        state: State::Settled {
            billed: MicroUsd::new(5),
        },
        adds_micro_usd: MicroUsd::new(5),
        anomalies: vec![Anomaly::ConflictingAmounts],
    };
    let mut turned = br#"{"seq":3,"kind":"outcome""#.to_vec();
    super::members(&outcome, &mut turned).unwrap();
    super::members(&labels, &mut turned).unwrap();
    super::members(&verdict, &mut turned).unwrap();
    super::seal(0, &mut turned);
    turned.pop();
    // A member put before the first would be read with the part before, and lost.
    for (first, part) in [
        (super::LABELS_START, serde_json::to_string(&labels).unwrap()),
        (
            super::OUTCOME_START,
            serde_json::to_string(&outcome).unwrap(),
        ),
    ] {
        assert!(
            part.as_bytes().get(1..).unwrap().starts_with(&first[1..]),
            "{part}"
        );
    }
    let record = Record::Outcome(Arc::new(outcome), labels, verdict);
    let line = line_of(&record, 3);

    assert!(super::outcome(&line).is_some(), "each part is read once");
    for line in [line, turned] {
        let Some(Line::Record { record: read, .. }) = Line::decode(&line) else {
            panic!("{}", String::from_utf8_lossy(&line));
        };
        assert_eq!(format!("{read:?}"), format!("{record:?}"));
    }
}

/// The fields about deliveries came later: lines without them read as those of an older bursar, and the
/// common case costs few bytes.
#[test]
fn the_fields_about_deliveries_may_be_absent() {
    let outcome = |delivery| Outcome {
        delivery,
        ..ended(id(), AttemptEnd::Answered, billed(1))
    };
    let rows = [
        (Delivery::Given, None),
        (Delivery::Pending, Some(r#""delivery":"pending""#)),
        (Delivery::Missed, Some(r#""delivery":"missed""#)),
    ];
    for (delivery, wanted) in rows {
        let verdict = Verdict {
            state: State::Failed,
            adds_micro_usd: MicroUsd::ZERO,
            anomalies: Vec::new(),
        };
        let outcome = Arc::new(outcome(delivery));
        let line = line_of(
            &Record::Outcome(outcome, labels(START_MS, None), verdict),
            1,
        );
        let text = String::from_utf8(line.clone()).unwrap();
        assert_eq!(text.contains("delivery"), wanted.is_some(), "{text}");
        assert!(wanted.is_none_or(|wanted| text.contains(wanted)), "{text}");
        let Some(Line::Record { record, .. }) = Line::decode(&line) else {
            panic!("{text}");
        };
        assert!(matches!(record, Record::Outcome(read, ..) if read.delivery == delivery));
    }
    let mut intent = intent(id(), START_MS, Some("k1"));
    let old = line_of(&Record::Intent(Arc::new(intent.clone())), 1);
    assert!(!String::from_utf8(old).unwrap().contains("key_use"));
    intent.key_use = Some(undelivered().key_use);
    let new = line_of(&Record::Intent(Arc::new(intent)), 1);
    let Some(Line::Record {
        record: Record::Intent(read),
        ..
    }) = Line::decode(&new)
    else {
        panic!("an intent");
    };
    assert_eq!(read.key_use, Some(undelivered().key_use));
}

#[test]
fn a_line_is_flat_json_with_the_checksum_last() {
    let record = samples().remove(1);
    let line = String::from_utf8(line_of(&record, 7)).unwrap();

    let value: serde_json::Value = serde_json::from_str(&line).unwrap();

    assert!(line.starts_with(r#"{"seq":7,"kind":"outcome","state":{"settled":{"billed":1234}}"#));
    assert_eq!(value["adds_micro_usd"], 1234);
    assert_eq!(value["app"], "notes");
    assert_eq!(value["receipt"]["billed"]["value"], 1234);
    assert_eq!(
        value.as_object().unwrap().keys().next_back().unwrap(),
        "crc"
    );
}

#[test]
fn no_single_flipped_bit_goes_unnoticed() {
    for record in samples() {
        let line = line_of(&record, 7);
        for index in 0..line.len() * 8 {
            let mut damaged = line.clone();
            damaged[index / 8] ^= 1 << (index % 8);

            assert!(Line::decode(&damaged).is_none(), "bit {index}");
        }
    }
}

#[test]
fn a_sound_line_of_an_unknown_kind_is_kept() {
    let mut line = br#"{"seq":9,"kind":"from_the_future","x":1"#.to_vec();
    super::seal(0, &mut line);
    line.pop();

    let read = Line::decode(&line);

    assert!(matches!(
        read,
        Some(Line::Record {
            seq: 9,
            record: Record::Unknown
        })
    ));
}

#[test]
fn a_header_names_format_ledger_and_first_number() {
    let header = SegmentHeader::new(uuid::Uuid::nil(), 3, 900, START_MS);
    let mut line = Vec::new();
    header.encode(&mut line).unwrap();
    let text = String::from_utf8(line.clone()).unwrap();

    assert!(text.starts_with(
        r#"{"kind":"segment","format":1,"ledger":"00000000-0000-0000-0000-000000000000","#
    ));
    line.pop();
    assert!(matches!(Line::decode(&line), Some(Line::Header(read)) if read == header));
}

#[test]
fn what_explains_an_entry_costs_nothing_where_there_is_none_and_comes_back_whole() {
    let mut outcome = ended(id(), AttemptEnd::Answered, billed(42));
    let verdict = Verdict {
        state: State::Settled {
            billed: MicroUsd::new(42),
        },
        adds_micro_usd: MicroUsd::new(42),
        anomalies: Vec::new(),
    };
    let labels = labels(START_MS, None);
    let record = Record::Outcome(Arc::new(outcome.clone()), labels.clone(), verdict.clone());
    // The same line as before these fields were kept, so lines of that time decode, too.
    let bare = String::from_utf8(line_of(&record, 1)).unwrap();
    assert!(!bare.contains("receipt_lines") && !bare.contains("closed"));
    assert!(Line::decode(bare.as_bytes()).is_some());

    outcome.attempts[0].receipt_lines = vec!["x-service-billed: 42".to_owned()];
    outcome.closed = vec![Closed {
        by: Side::App,
        stage: Stage::Waiting,
        after_ms: 512,
        why: None,
    }];
    let record = Record::Outcome(Arc::new(outcome.clone()), labels, verdict);
    let Some(Line::Record {
        record: Record::Outcome(read, ..),
        ..
    }) = Line::decode(&line_of(&record, 1))
    else {
        panic!("no outcome");
    };
    assert_eq!(read.attempts, outcome.attempts);
    assert_eq!(read.closed, outcome.closed);
}
