//! Streams made of odd pieces, cut anywhere.

use proptest::prelude::*;

use super::*;

/// Pieces that streams are made of, and pieces that try to look like them.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let literal = |text: &'static str| Just(text.as_bytes().to_vec());
    prop_oneof![
        literal("\n"),
        literal("\r\n"),
        literal("\r"),
        literal(": service-billed-micro-usd 12"),
        literal(": service-served-by frontier\n"),
        literal("data: [DONE]"),
        literal("data:[DONE]\n"),
        literal("data: [DON"),
        literal("data: "),
        literal("event: complete\n"),
        literal("data: {\"usage\":{\"prompt_tokens\":3}}\n"),
        literal("data: {\"a\":\"\\u0000\"}\n\n"),
        proptest::collection::vec(any::<u8>(), 0..20),
        (0usize..400).prop_map(|length| vec![b'x'; length]),
        (0usize..400).prop_map(|length| [b": ", vec![b'y'; length].as_slice()].concat()),
    ]
}

/// The rule itself, written a second time and slowly: where the end mark's line begins.
fn done_at(stream: &[u8]) -> Option<usize> {
    let starts = std::iter::once(0)
        .chain((0..stream.len()).filter_map(|at| (stream[at] == b'\n').then_some(at + 1)));
    starts.into_iter().find(|start| {
        let line = &stream[*start..];
        line.starts_with(b"data: [DONE]") || line.starts_with(b"data:[DONE]")
    })
}

fn may_begin_done(line: &[u8]) -> bool {
    b"data: [DONE]".starts_with(line) || b"data:[DONE]".starts_with(line)
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events_and_the_same_bytes(
        pieces in proptest::collection::vec(piece(), 0..30),
        borders in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40),
        named in any::<bool>(),
    ) {
        let stream = pieces.concat();
        let kind = if named { StreamKind::NamedEvents } else { StreamKind::Data };
        let mut borders: Vec<usize> =
            borders.iter().map(|border| border.index(stream.len() + 1)).collect();
        borders.extend([0, stream.len()]);
        borders.sort_unstable();

        let once = run(kind, [stream.as_slice()]);
        let split = run(kind, borders.windows(2).map(|pair| &stream[pair[0]..pair[1]]));

        prop_assert_eq!(&split, &once);
        prop_assert_eq!([once.flowed, once.held].concat(), stream);
    }

    #[test]
    fn exactly_what_may_begin_the_end_mark_is_held(
        pieces in proptest::collection::vec(piece(), 0..12),
    ) {
        let stream = pieces.concat();
        let mut scanner = SseScanner::new(StreamKind::Data);
        for at in 0..stream.len() {
            let scan = scanner.feed(&stream[at..=at], &mut |_| {});
            let so_far = &stream[..=at];
            let line_start = so_far.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let expected = match done_at(so_far) {
                Some(start) => so_far.len() - start,
                None if may_begin_done(&so_far[line_start..]) => so_far.len() - line_start,
                None => 0,
            };
            prop_assert_eq!(scan.hold, expected, "after {:?}", text(so_far));
        }
    }
}
