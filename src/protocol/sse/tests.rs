use bytes::Bytes;

use super::*;

mod any_chunking;

/// An owned [`SseEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedEvent {
    Comment(String, String),
    Usage(Usage),
    Event(String),
}

/// The result of a stream fed in given chunks.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    events: Vec<OwnedEvent>,
    /// Bytes that flowed, and bytes held at the end.
    flowed: Vec<u8>,
    held: Vec<u8>,
    done: bool,
    clean_end: bool,
}

fn run<'a>(kind: StreamKind, chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut scanner = SseScanner::new(kind);
    let mut hold_back = HoldBack::new();
    let (mut events, mut flowed, mut done, mut fed) = (Vec::new(), Vec::new(), false, 0);
    for chunk in chunks {
        let scan = scanner.feed(chunk, &mut |event| {
            events.push(match event {
                SseEvent::Comment { name, value } => OwnedEvent::Comment(text(name), text(value)),
                SseEvent::Usage(usage) => OwnedEvent::Usage(usage),
                SseEvent::Event(name) => OwnedEvent::Event(name.to_owned()),
                SseEvent::Line(_) | SseEvent::LineLost => panic!("no line was asked for"),
            });
        });
        fed += chunk.len();
        assert!(scan.hold <= fed, "never more than there is");
        assert!(
            scan.done || scan.hold < 12,
            "never more than may begin the end mark"
        );
        assert!(!done || scan.done, "done stays done");
        done = scan.done;
        if let Some(out) = hold_back.push(Bytes::copy_from_slice(chunk), &scan) {
            flowed.extend_from_slice(&out);
        }
        assert_eq!(hold_back.len(), scan.hold);
    }
    Outcome {
        events,
        flowed,
        held: hold_back.take().unwrap_or_default().to_vec(),
        done,
        clean_end: scanner.is_clean_end(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn whole(kind: StreamKind, stream: &str) -> Outcome {
    run(kind, [stream.as_bytes()])
}

fn comment(name: &str, value: &str) -> OwnedEvent {
    OwnedEvent::Comment(name.to_owned(), value.to_owned())
}

fn usage(prompt: u64, completion: u64) -> OwnedEvent {
    OwnedEvent::Usage(Usage {
        prompt_tokens: Some(prompt),
        completion_tokens: Some(completion),
        total_tokens: Some(prompt + completion),
    })
}

/// A chat stream with everything the interface puts into one.
const CHAT: &str = "\
data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
: keep-alive\n\n\
data: {\"choices\":[{\"delta\":{\"content\":\": service-billed-micro-usd 1\"}}]}\n\n\
data: {\"choices\":[{\"delta\":{\"content\":\"data: [DONE]\"}}],\"usage\":null}\n\n\
data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}\n\n\
: service-billed-micro-usd 1234\n\
: service-frontier-would-have-cost-micro-usd 9000\n\
: service-served-by specialist\n\
: service-route-version 2026-05-01.3\n\n\
data: [DONE]\n\n";

fn chat_events() -> Vec<OwnedEvent> {
    vec![
        comment("keep-alive", ""),
        usage(7, 5),
        comment("service-billed-micro-usd", "1234"),
        comment("service-frontier-would-have-cost-micro-usd", "9000"),
        comment("service-served-by", "specialist"),
        comment("service-route-version", "2026-05-01.3"),
    ]
}

const DEPLOY: &str = "\
event: progress\ndata: {\"stage\":\"pull\",\"pct\":10}\n\n\
event: complete\ndata: {\"endpoint\":{\"id\":\"e\"}}\n\n";

fn crlf(stream: &str) -> String {
    stream.replace('\n', "\r\n")
}

#[test]
fn receipts_and_the_end_mark_are_found_at_every_chunk_border() {
    for stream in [
        CHAT.to_owned(),
        crlf(CHAT),
        CHAT.replace("data: [DONE]\n", "data:[DONE]\n"),
    ] {
        let bytes = stream.as_bytes();
        let one_chunk = run(StreamKind::Data, [bytes]);
        assert_eq!(one_chunk.events, chat_events());
        assert!(one_chunk.done && one_chunk.clean_end);
        assert!(one_chunk.held.starts_with(b"data:"));
        assert_eq!(
            [one_chunk.flowed.clone(), one_chunk.held.clone()].concat(),
            bytes
        );

        for border in 0..=bytes.len() {
            let (before, after) = bytes.split_at(border);
            assert_eq!(
                run(StreamKind::Data, [before, after]),
                one_chunk,
                "border {border}"
            );
        }
        for size in [1, 2, 3, 5, 7, 11, 12, 13, 64] {
            assert_eq!(
                run(StreamKind::Data, bytes.chunks(size)),
                one_chunk,
                "chunks of {size}"
            );
        }
    }
}

#[test]
fn named_events_are_found_at_every_chunk_border_and_nothing_is_held() {
    for stream in [DEPLOY.to_owned(), crlf(DEPLOY)] {
        let bytes = stream.as_bytes();
        for border in 0..=bytes.len() {
            let (before, after) = bytes.split_at(border);
            let outcome = run(StreamKind::NamedEvents, [before, after]);
            let names = ["progress", "complete"].map(|name| OwnedEvent::Event(name.to_owned()));
            assert_eq!(outcome.events, names);
            assert_eq!(outcome.held, b"");
            assert!(outcome.clean_end && !outcome.done);
        }
        assert!(run(StreamKind::NamedEvents, bytes.chunks(1)).clean_end);
    }
}

#[test]
fn a_named_stream_ends_cleanly_with_a_whole_terminal_event_only() {
    let table = [
        ("", false),
        ("event: progress\ndata: {}\n\n", false),
        ("event: complete\n", false),
        ("event: complete\ndata: {}\n", false),
        ("event: complete\ndata: {}\n\n", true),
        ("event:complete\ndata: {}\n\n", true),
        ("event: error\r\ndata: {\"message\":\"m\"}\r\n\r\n", true),
        ("event: completed\ndata: {}\n\n", false),
        ("data: complete\n\n", false),
        ("data: [DONE]\n\n", false),
        ("event: complete\nevent: progress\ndata: {}\n\n", false),
        ("event: complete\ndata: {}\n\n: bye\n\n", true),
    ];
    for (stream, clean) in table {
        assert_eq!(
            whole(StreamKind::NamedEvents, stream).clean_end,
            clean,
            "{stream:?}"
        );
        let bytes = run(StreamKind::NamedEvents, stream.as_bytes().chunks(1));
        assert_eq!(bytes.clean_end, clean, "{stream:?} by bytes");
    }
}

#[test]
fn what_may_begin_the_end_mark_waits_and_nothing_else_does() {
    // Stream so far; bytes held; done.
    let table: [(&str, usize, bool); 24] = [
        ("", 0, false),
        ("d", 1, false),
        ("data", 4, false),
        ("data:", 5, false),
        ("data: ", 6, false),
        ("data: [", 7, false),
        ("data:[", 6, false),
        ("data: [DONE", 11, false),
        ("data:[DONE", 10, false),
        ("data: [DONE]", 12, true),
        ("data:[DONE]", 11, true),
        ("data: [DONE]\r\n\r\n", 16, true),
        ("data:  ", 0, false),
        ("data: {", 0, false),
        ("data: [D]", 0, false),
        ("datd", 0, false),
        ("x", 0, false),
        ("xdata: [DONE]\n", 0, false),
        (" data: [DONE]\n", 0, false),
        ("data: {}\n", 0, false),
        ("data: {}\n\nda", 2, false),
        ("data: {}\r\n\r\ndata: [", 7, false),
        ("data: {}\rdata: [DONE]", 0, false),
        ("data: {\"a\":\"\\ndata: [DONE]\"}", 0, false),
    ];
    for (stream, hold, done) in table {
        for size in [1, 2, 100] {
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            assert_eq!(outcome.held.len(), hold, "{stream:?} by {size}");
            assert_eq!(outcome.done, done, "{stream:?} by {size}");
            assert_eq!(outcome.clean_end, done, "{stream:?} by {size}");
        }
    }
}

#[test]
fn the_end_mark_counts_without_its_line_end_and_with_anything_behind_it() {
    // SDK parsers treat `[DONE]` and anything that follows it on the line as the end.
    for stream in [
        "data: [DONE]",
        "data: [DONE]x\n\n",
        "data: [DONE] \n",
        "data:[DONE]\r\n",
    ] {
        for size in [1, 5, 100] {
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            assert!(outcome.done, "{stream:?}");
            assert_eq!(outcome.held, stream.as_bytes());
        }
    }
}

#[test]
fn nothing_is_read_behind_the_end_mark_and_its_bytes_are_held() {
    let stream = "data: {}\n\ndata: [DONE]\n\n: service-billed-micro-usd 9\n\ndata: {\"usage\":{\"prompt_tokens\":9}}\n\ndata: [DONE]\n\n";

    let outcome = whole(StreamKind::Data, stream);

    assert_eq!(outcome.events, []);
    assert_eq!(outcome.flowed, b"data: {}\n\n");
}

#[test]
fn a_receipt_counts_only_as_a_whole_line_at_its_beginning() {
    let none = [
        // Inside JSON text, with and without escapes.
        "data: {\"content\":\": service-billed-micro-usd 1\"}\n\n",
        "data: {\"content\":\"\\n: service-billed-micro-usd 1\\n\"}\n\n",
        "data: : service-billed-micro-usd 1\n\n",
        // Not at the line's beginning; no space; another field.
        " : service-billed-micro-usd 1\n\n",
        ":service-billed-micro-usd 1\n\n",
        "event: service-billed-micro-usd 1\n\n",
        // A lone CR ends no line.
        "data: {}\r: service-billed-micro-usd 1\n\n",
        // Cut: it may have been 1234.
        ": service-billed-micro-usd 1",
        ": service-billed-micro-usd 1\r",
    ];
    for stream in none {
        for size in [1, 4, 100] {
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            assert_eq!(outcome.events, [], "{stream:?} by {size}");
        }
    }
}

#[test]
fn comments_are_reported_as_they_stand() {
    let table = [
        (": n v\n", comment("n", "v")),
        (": n v\r\n", comment("n", "v")),
        (": n  v \n", comment("n", " v ")),
        (": n v w\n", comment("n", "v w")),
        (": n\n", comment("n", "")),
        (": n \n", comment("n", "")),
        (":  v\n", comment("", "v")),
        (": \n", comment("", "")),
        (": n v\r\r\n", comment("n", "v\r")),
        (": n \u{fffd}\n", comment("n", "\u{fffd}")),
    ];
    for (stream, expected) in table {
        for size in [1, 2, 100] {
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            assert_eq!(
                outcome.events,
                std::slice::from_ref(&expected),
                "{stream:?} by {size}"
            );
        }
    }
}

#[test]
fn a_comment_of_256_bytes_is_read_and_a_longer_one_is_not() {
    for (line_end, size) in [("\n", 1), ("\r\n", 1), ("\n", 1000), ("\r\n", 1000)] {
        for (length, read) in [(255, true), (256, true), (257, false), (300, false)] {
            let line = format!(": n {}", "v".repeat(length - 4));
            assert_eq!(line.len(), length);
            let stream = format!("{line}{line_end}: after it\n");
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            let after = comment("after", "it");
            assert!(outcome.events.contains(&after));
            assert_eq!(
                outcome.events.len(),
                if read { 2 } else { 1 },
                "{length} by {size}"
            );
        }
    }
}

#[test]
fn a_line_without_end_costs_no_memory() {
    for start in [
        ": service-billed-micro-usd ",
        "data: {\"usage\":{\"a\":\"",
        "event: ",
        "x",
        "",
    ] {
        for kind in [StreamKind::Data, StreamKind::NamedEvents] {
            let mut scanner = SseScanner::new(kind);
            scanner.feed(start.as_bytes(), &mut |_| panic!("there is no event"));
            let ten_megabytes = vec![b'1'; 16 * 1024];
            let mut most = 0;
            for _ in 0..640 {
                let scan = scanner.feed(&ten_megabytes, &mut |_| panic!("there is no event"));
                assert_eq!(scan, Scan::default());
                most = most.max(scanner.carry.capacity());
            }
            assert!(most <= 2 * DATA_LINE_BYTES_MAX, "{start:?}: {most}");
            assert!(scanner.carry.capacity() <= CARRY_KEPT_BYTES, "{start:?}");
        }
    }
}

#[test]
fn after_a_huge_line_the_next_ones_are_read() {
    let huge = format!(
        "data: {{\"content\":\"{}\",\"usage\":{{\"prompt_tokens\":1}}}}\n\n",
        "x".repeat(10 * 1024 * 1024)
    );
    let stream = format!("{huge}{CHAT}");
    for size in [1000, 65_536, usize::MAX] {
        let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
        assert_eq!(outcome.events, chat_events(), "by {size}");
        assert!(outcome.done);
    }
}

#[test]
fn a_line_that_lies_whole_in_a_chunk_is_not_copied() {
    let mut scanner = SseScanner::new(StreamKind::Data);

    scanner.feed(CHAT.as_bytes(), &mut |_| {});

    assert_eq!(scanner.carry.capacity(), 0);
}

#[test]
fn usage_is_read_from_the_top_level_of_a_data_line() {
    let table: [(&str, &[OwnedEvent]); 11] = [
        (
            "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}\n",
            &[usage(1, 2)],
        ),
        (
            "data:{ \"usage\" : { \"total_tokens\":3,\"completion_tokens\":2,\"prompt_tokens\":1 , \"x\":{}}}\r\n",
            &[usage(1, 2)],
        ),
        ("data: {\"usage\":null}\n", &[]),
        ("data: {\"usage\":{}}\n", &[]),
        ("data: {\"usage\":{\"prompt_tokens\":\"1\"}}\n", &[]),
        (
            "data: {\"choices\":[{\"usage\":{\"prompt_tokens\":1}}]}\n",
            &[],
        ),
        (
            "data: {\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":1}\"}\n",
            &[],
        ),
        ("data: {\"usage\":{\"prompt_tokens\":1}\n", &[]),
        (
            ": {\"usage\":{\"prompt_tokens\":1}}\n",
            &[comment("{\"usage\":{\"prompt_tokens\":1}}", "")],
        ),
        ("id: {\"usage\":{\"prompt_tokens\":1}}\n", &[]),
        ("data: {\"usage\":{\"prompt_tokens\":1}}", &[]),
    ];
    for (stream, expected) in table {
        for size in [1, 9, 1000] {
            let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
            assert_eq!(outcome.events, expected, "{stream:?} by {size}");
        }
    }
}

#[test]
fn a_data_line_of_64_kib_is_parsed_and_a_longer_one_is_not() {
    for (length, read) in [(DATA_LINE_BYTES_MAX, 1), (DATA_LINE_BYTES_MAX + 1, 0)] {
        let (start, end) = ("data: {\"usage\":{\"prompt_tokens\":1},\"x\":\"", "\"}");
        let filler = "x".repeat(length - start.len() - end.len());
        for line_end in ["\n", "\r\n"] {
            let stream = format!("{start}{filler}{end}{line_end}");
            for size in [1, 999, usize::MAX] {
                let outcome = run(StreamKind::Data, stream.as_bytes().chunks(size));
                assert_eq!(outcome.events.len(), read, "{length} by {size}");
            }
        }
    }
}

#[test]
fn event_names_are_bounded() {
    let (longest, longer) = ("e".repeat(64), "e".repeat(65));
    for size in [1, 1000] {
        for (name, read) in [(&longest, 1), (&longer, 0)] {
            let stream = format!("event: {name}\r\n\r\n");
            let outcome = run(StreamKind::NamedEvents, stream.as_bytes().chunks(size));
            assert_eq!(outcome.events.len(), read);
        }
    }
}

const HELD: &str =
    "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n";

/// What flowed, what is held, and whether that begins with a chunk that has `usage`.
fn holding(stream: &str, bytes: usize) -> (String, String, bool) {
    let mut scanner = SseScanner::new(StreamKind::Data).holding_usage();
    let mut hold_back = HoldBack::new();
    let mut flowed = Vec::new();
    for chunk in stream.as_bytes().chunks(bytes) {
        let scan = scanner.feed(chunk, &mut |_| {});
        if let Some(out) = hold_back.push(Bytes::copy_from_slice(chunk), &scan) {
            flowed.extend_from_slice(&out);
        }
        assert_eq!(hold_back.len(), scan.hold);
    }
    let held = hold_back.take().unwrap_or_default();
    (text(&flowed), text(&held), scanner.holds_usage())
}

#[test]
fn the_last_chunk_with_usage_waits_for_the_end_mark_in_any_chunking() {
    let event = "data: {\"choices\":[]}\n\n";
    let receipt = ": service-billed-micro-usd 7\n\n";
    let done = "data: [DONE]\n\n";
    let rows: [(&[&str], &[&str], bool); 6] = [
        (&[event], &[HELD, receipt, done], true),
        (&[event], &[HELD, receipt], true),
        (&[HELD, event], &[HELD, done], true),
        (&[HELD, receipt, event], &[done], false),
        (&[event, receipt], &[done], false),
        (&[event], &[HELD, "data: [DO"], true),
    ];
    for (flows, waits, is_usage) in rows {
        let stream = [flows.concat(), waits.concat()].concat();
        for bytes in [1, 2, 7, 30, 5_000] {
            let wanted = (flows.concat(), waits.concat(), is_usage);
            assert_eq!(holding(&stream, bytes), wanted, "{bytes}");
            let crlf = stream.replace('\n', "\r\n");
            let (flowed, held, holds) = holding(&crlf, bytes);
            let wanted = (flows.concat(), waits.concat(), is_usage);
            let lf = |text: String| text.replace("\r\n", "\n");
            assert_eq!((lf(flowed), lf(held), holds), wanted, "{bytes}, CRLF");
        }
    }
}

#[test]
fn a_chunk_with_usage_does_not_wait_for_ever_nor_does_a_line_without_end() {
    let comments = ": x\n\n".repeat(40_000);
    let (flowed, held, is_usage) = holding(&[HELD, &comments].concat(), 4_096);
    assert!(flowed.starts_with(HELD) && held.is_empty() && !is_usage);
    let endless = format!("data: {}", "x".repeat(200_000));
    let (flowed, held, _) = holding(&endless, 4_096);
    assert_eq!((flowed.len(), held.len()), (endless.len(), 0));
}
