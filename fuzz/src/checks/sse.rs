//! The scanner of event streams and the hold before `data: [DONE]`, for any bytes in any chunks.
//!
//! Promise: what goes out and what is held are what came in; no byte of an end mark's line goes out;
//! chunks make no difference; comments are those that a plain reading line by line finds.

use bursar::protocol::sse::{COMMENT_BYTES_MAX, HoldBack, SseEvent, SseScanner, StreamKind};
use bytes::Bytes;

/// An event with its own bytes.
#[derive(Debug, PartialEq, Eq)]
enum OwnedEvent {
    Comment(Vec<u8>, Vec<u8>),
    Usage(String),
    Event(String),
}

/// The first byte says how the rest is cut into chunks, and which kind of stream it is.
pub fn check(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else {
        return;
    };
    let kind = if cut & 0x80 == 0 {
        StreamKind::Data
    } else {
        StreamKind::NamedEvents
    };
    let whole = read(kind, &[stream]);
    let step = usize::from(cut & 0x7f).max(1);
    let chunks: Vec<&[u8]> = stream.chunks(step).collect();
    let chunked = read(kind, &chunks);
    assert_eq!(
        whole.events, chunked.events,
        "chunks of {step} give other events"
    );
    assert_eq!(whole.done, chunked.done, "chunks of {step} end elsewhere");
    assert_eq!(
        whole.flowed, chunked.flowed,
        "chunks of {step} hold something else"
    );
    let comments: Vec<&OwnedEvent> = whole
        .events
        .iter()
        .filter(|events| matches!(events, OwnedEvent::Comment(..)))
        .collect();
    // After the end mark no event follows any more.
    let end = match kind {
        StreamKind::Data => plain_end(stream),
        StreamKind::NamedEvents => None,
    };
    let plain = plain_comments(end.map_or(stream, |end| &stream[..end]));
    assert_eq!(comments, plain.iter().collect::<Vec<_>>());
    if kind == StreamKind::Data {
        assert_eq!(whole.done, plain_end(stream).is_some());
    }
}

struct Reading {
    events: Vec<OwnedEvent>,
    flowed: Vec<u8>,
    done: bool,
}

fn read(kind: StreamKind, chunks: &[&[u8]]) -> Reading {
    let mut scanner = SseScanner::new(kind);
    let mut hold = HoldBack::new();
    let (mut events, mut flowed, mut fed, mut done) = (Vec::new(), Vec::new(), Vec::new(), false);
    for chunk in chunks {
        let scan = scanner.feed(chunk, &mut |event| {
            events.push(match event {
                SseEvent::Comment { name, value } => {
                    OwnedEvent::Comment(name.to_vec(), value.to_vec())
                }
                SseEvent::Usage(usage) => OwnedEvent::Usage(format!("{usage:?}")),
                SseEvent::Event(name) => OwnedEvent::Event(name.to_owned()),
                SseEvent::Line(_) | SseEvent::LineLost => panic!("no line was asked for"),
            });
        });
        fed.extend_from_slice(chunk);
        done = scan.done;
        assert!(scan.hold <= fed.len());
        assert!(
            done || scan.hold <= b"data: [DONE]".len(),
            "{} bytes are held",
            scan.hold
        );
        if let Some(flows) = hold.push(Bytes::copy_from_slice(chunk), &scan) {
            flowed.extend_from_slice(&flows);
        }
        assert_eq!(hold.len(), scan.hold);
        if kind == StreamKind::Data
            && let Some(end) = plain_end(&fed)
        {
            assert!(
                flowed.len() <= end,
                "a byte of the end mark's line went out"
            );
        }
    }
    // With what is held it is what came in.
    let mut all = flowed.clone();
    all.extend_from_slice(&hold.take().unwrap_or_default());
    assert_eq!(all, fed);
    Reading {
        events,
        flowed,
        done,
    }
}

/// Lines that begin with `: `, read plainly: whole lines only, without their line end.
fn plain_comments(stream: &[u8]) -> Vec<OwnedEvent> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    // What follows the last line feed is not a whole line.
    lines.pop();
    lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| line.len() <= COMMENT_BYTES_MAX)
        .filter_map(|line| line.strip_prefix(b": "))
        .map(|text| match text.iter().position(|byte| *byte == b' ') {
            Some(at) => OwnedEvent::Comment(text[..at].to_vec(), text[at + 1..].to_vec()),
            None => OwnedEvent::Comment(text.to_vec(), Vec::new()),
        })
        .collect()
}

/// Where the line of the first end mark begins.
fn plain_end(stream: &[u8]) -> Option<usize> {
    let mut start = 0;
    for line in stream.split(|byte| *byte == b'\n') {
        if line.starts_with(b"data: [DONE]") || line.starts_with(b"data:[DONE]") {
            return Some(start);
        }
        start += line.len() + 1;
    }
    None
}
