//! No number that stands in a file makes room for itself: each case is heard by a process that may take
//! [`ADDRESS_KIB`] of address space in all. One that asks for more is aborted, and the test with it.

use super::*;
use std::process::Command;

/// The test binary and its threads take about half of it; the largest file here is under 3 MiB.
const ADDRESS_KIB: u64 = 256 * 1024;
/// Set in the process that hears.
const INSIDE: &str = "BURSAR_LISTENS_IN_LITTLE_MEMORY";
const MOST: [u8; 4] = [0xff; 4];

/// Runs the test of this name once more, in a process of little memory, and there `hear_all`.
#[expect(
    clippy::disallowed_methods,
    reason = "the child process of a test has no other way to know that it is one"
)]
fn in_little_memory(test: &str, hear_all: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return hear_all();
    }
    let limited = format!("ulimit -v {ADDRESS_KIB} && exec \"$0\" \"$@\"");
    let (_, module) = module_path!().split_once("::").unwrap();
    let heard = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}")])
        .args(["--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        // An arena for each thread reserves 64 MiB of addresses.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&heard.stdout);
    assert!(
        heard.status.success() && printed.contains("1 passed"),
        "{}: {printed}{}",
        heard.status,
        String::from_utf8_lossy(&heard.stderr)
    );
}

/// What may stand in front of a file by mistake.
fn junk(count: usize) -> [Vec<u8>; 4] {
    let mut next = noise(count as u64);
    let noise = std::iter::repeat_with(|| next() as u8);
    [
        vec![0; count],
        vec![0xff; count],
        vec![b'\n'; count],
        noise.take(count).collect(),
    ]
}

fn every_fixture() -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> = TONES
        .iter()
        .map(|(name, bytes)| (*name, bytes.to_vec()))
        .collect();
    let adpcm = include_bytes!("../../../../tests/fixtures/tone-adpcm.wav");
    all.push(("tone-adpcm.wav", adpcm.to_vec()));
    let ours = wav::write(&[7; 6_000], 8_000, "words").unwrap();
    all.push(("ours.wav", ours));
    all
}

fn a_box(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes(), name.as_slice(), body].concat()
}

/// The file with another body in the first box at `path`, and true sizes around it.
fn with_body(file: &[u8], path: &[&[u8; 4]], body: &[u8]) -> Vec<u8> {
    let Some((name, inner)) = path.split_first() else {
        return body.to_vec();
    };
    let at = file.windows(4).position(|four| four == *name).unwrap();
    let size = u32::from_be_bytes(*file[at - 4..].first_chunk().unwrap()) as usize;
    let (before, rest) = file.split_at(at - 4);
    let (found, behind) = rest.split_at(size);
    let changed = a_box(name, &with_body(&found[8..], inner, body));
    [before, &changed, behind].concat()
}

const STBL: [&[u8; 4]; 5] = [b"moov", b"trak", b"mdia", b"minf", b"stbl"];

/// Where a table of the index is.
fn table_at(table: &'static [u8; 4]) -> Vec<&'static [u8; 4]> {
    [&STBL[..], &[table]].concat()
}

/// The sample description with this one entry.
fn described(kind: &[u8; 4], fields: &[u8]) -> Vec<u8> {
    let entry = a_box(kind, fields);
    let body = [&[0, 0, 0, 0, 0, 0, 0, 1], &entry[..]].concat();
    with_body(tone("tone.m4a"), &table_at(b"stsd"), &body)
}

/// Files of m4a that say 2^32 - 1 where they have nothing of the kind.
fn overstated() -> Vec<(String, Vec<u8>)> {
    let whole = tone("tone.m4a");
    let rows = [&[0; 4], &MOST[..], &[0; 24]].concat();
    let mut files = Vec::new();
    for table in [b"stts", b"stsc", b"stco"] {
        let file = with_body(whole, &table_at(table), &rows);
        files.push((String::from_utf8_lossy(table).into_owned(), file));
    }
    // Behind the table that it stands for: the reader goes through all of them.
    for table in [b"co64", b"ctts", b"stss"] {
        let stbl = whole.windows(4).position(|four| four == b"stsd").unwrap() - 4;
        let end = whole.windows(4).position(|four| four == b"udta").unwrap() - 4;
        let tables = [&whole[stbl..end], &a_box(table, &rows)].concat();
        let file = with_body(whole, &STBL, &tables);
        files.push((String::from_utf8_lossy(table).into_owned(), file));
    }
    for (name, size) in [("stsz", [0; 4]), ("stsz of one size", MOST)] {
        let sizes = [&[0; 4], &size[..], &MOST, &[0; 24]].concat();
        let file = with_body(whole, &table_at(b"stsz"), &sizes);
        files.push((name.to_owned(), file));
    }
    let edits = with_body(whole, &[b"moov", b"trak", b"edts", b"elst"], &rows);
    files.push(("elst".to_owned(), edits));
    let parts = tone("tone-fragmented.m4a");
    for flags in [0x000_u32, 0x001, 0x100, 0x200, 0x301, 0xf01] {
        let run = [&flags.to_be_bytes(), &MOST[..], &[0; 24]].concat();
        let file = with_body(parts, &[b"moof", b"traf", b"trun"], &run);
        files.push((format!("trun {flags:x}"), file));
    }
    let packets = [&[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8][..], &MOST, &[0; 4]].concat();
    let file = with_body(parts, &[b"moov", b"mvex", b"trex"], &packets);
    files.push(("trex".to_owned(), file));
    // Plain samples of the second version: so many in a packet.
    let mut plain = vec![0; 28];
    plain[9] = 2;
    plain.extend(72_u32.to_be_bytes());
    plain.extend(16_000_f64.to_be_bytes());
    for number in [2, 0x7f00_0000, 16, 4, 4, u32::MAX] {
        plain.extend(u32::to_be_bytes(number));
    }
    files.push(("lpcm".to_owned(), described(b"lpcm", &plain)));
    // What a decoder needs: 2^28 - 1 bytes of it.
    let specific = [5, 0xff, 0xff, 0xff, 0x7f, 0x14, 0x08];
    let config = [&[4, 20, 0x40, 0x15][..], &[0; 11], &specific].concat();
    let stream = [&[3, 28, 0, 1, 0][..], &config, &[6, 1, 2]].concat();
    let esds = a_box(b"esds", &[&[0; 4], &stream[..]].concat());
    let file = described(b"mp4a", &[&[0; 28], &esds[..]].concat());
    files.push(("esds".to_owned(), file));
    let picture = [&[0x7f; 4], b"data".as_slice(), &[0; 8]].concat();
    let tags = a_box(b"ilst", &a_box(b"covr", &picture));
    let tags = [&[0; 4], &tags[..]].concat();
    let file = with_body(whole, &[b"moov", b"udta", b"meta"], &tags);
    files.push(("covr".to_owned(), file));
    files
}

/// Any number of junk bytes up to 16 in front of a file makes it none of its kind.
fn is_unknown_behind_junk(name: &str, file: &[u8]) {
    for junk in (1..=16).flat_map(junk) {
        let heard = hear(&[&junk, file].concat());
        assert_eq!(
            heard,
            Err(ListenError::UnknownContainer),
            "{name} behind {junk:?}"
        );
    }
}

#[test]
fn a_fixture_behind_junk_is_heard_right_or_not_at_all() {
    in_little_memory("a_fixture_behind_junk_is_heard_right_or_not_at_all", || {
        for (name, file) in every_fixture() {
            if !name.ends_with(".mp3") {
                is_unknown_behind_junk(name, &file);
                continue;
            }
            // An mp3 may begin anywhere.
            let clean = hear(&file);
            assert!(clean.is_ok());
            for junk in (1..=16).flat_map(junk) {
                let heard = hear(&[&junk, &file[..]].concat());
                assert_eq!(heard, clean, "{name} behind {junk:?}");
            }
        }
    });
}

#[test]
fn a_table_of_all_the_rows_there_could_be_makes_no_room_for_them() {
    in_little_memory(
        "a_table_of_all_the_rows_there_could_be_makes_no_room_for_them",
        || {
            for (name, file) in overstated() {
                // Plain samples are not decoded: they last as long as their packets say.
                assert_eq!(hear(&file).is_ok(), name == "lpcm", "{name}");
                is_unknown_behind_junk(&name, &file);
            }
        },
    );
}

#[test]
fn no_other_container_makes_room_for_what_a_file_says() {
    in_little_memory("no_other_container_makes_room_for_what_a_file_says", || {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mp3 = tone("tone-bare.mp3");
        for size in [[0x7f; 4], [0x0f, 0x7f, 0x7f, 0x7f]] {
            let tag = [b"ID3".as_slice(), &[4, 0, 0], &size, b"APIC", &MOST].concat();
            files.push((format!("mp3 {size:?}"), [&tag[..], mp3].concat()));
        }
        let ours = wav::write(&[7; 100], 8_000, "").unwrap();
        for at in [16, 40] {
            let mut file = ours.clone();
            file[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7e]);
            files.push((format!("wav {at}"), file));
        }
        let webm = tone("tone.webm");
        for id in [&[0x16, 0x54, 0xae, 0x6b][..], &[0x1f, 0x43, 0xb6, 0x75]] {
            let at = webm.windows(id.len()).position(|some| some == id).unwrap();
            let size = [0x01, 0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
            let (before, behind) = webm.split_at(at + id.len());
            files.push((format!("webm {id:x?}"), [before, &size, behind].concat()));
        }
        let tracks = [webm, &[0xae, 0x80].repeat(1024 * 1024)].concat();
        files.push(("webm tracks".to_owned(), tracks));
        for (name, file) in files {
            assert!(hear(&file).is_err(), "{name}");
        }
    });
}
