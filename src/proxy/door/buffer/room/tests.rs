use super::*;

/// A body whose first bytes have come.
fn grown(spare: &SparePages, most: usize) -> BodyRoom {
    let mut room = BodyRoom::new(most, 16);
    let Memory::Heap(heap) = &mut room.memory else {
        panic!("it begins in the heap");
    };
    heap.extend_from_slice(b"a prompt");
    room.grow(most, spare).unwrap();
    room
}

/// Pieces in use, and those that are idle.
fn counts(spare: &SparePages) -> (usize, usize) {
    let pieces = spare.0.lock();
    (pieces.in_use, pieces.idle.len())
}

#[test]
fn pages_are_used_again_and_what_another_body_left_in_them_is_none_of_the_next() {
    let spare = SparePages::default();
    let first = grown(&spare, 1_000_000).freeze();
    let place = first.as_ptr();
    assert_eq!(first.as_ref(), b"a prompt");
    drop(first);

    let again = spare.piece(1_000_000).unwrap();
    assert_eq!(again.pages.as_ref().unwrap().as_ptr(), place);
    assert_eq!(again.as_ref(), b"");
}

/// Else bodies that hold little of their share could together hold what others filled.
#[test]
fn there_are_never_more_than_a_few_pieces_that_were_filled_in_use_or_not() {
    let spare = SparePages::default();
    for _ in 0..3 {
        let many: Vec<_> = (0..2 * PIECES_MAX)
            .map(|_| grown(&spare, 100_000))
            .collect();
        assert_eq!(counts(&spare), (PIECES_MAX, 0));
        let last = many.last().unwrap();
        let Memory::Pages(pages) = &last.memory else {
            panic!("it has pages");
        };
        assert_eq!((pages.room(), last.bytes()), (100_000, &b"a prompt"[..]));
        drop(many);
        assert_eq!(counts(&spare), (0, IDLE_PIECES_MAX));
    }
    let large = grown(&spare, PIECE_BYTES + 1);
    assert_eq!(large.bytes(), b"a prompt");
    drop(large);
    assert_eq!(counts(&spare), (0, IDLE_PIECES_MAX));
}

#[test]
fn a_body_moves_as_its_share_grows_and_stands_as_it_came() {
    let spare = SparePages::default();
    let mut room = BodyRoom::new(30_000_000, 16);
    let Memory::Heap(heap) = &mut room.memory else {
        panic!("it begins in the heap");
    };
    heap.extend_from_slice(b"a prompt");
    for (share, has_room) in [
        (40_000, 40_000),
        (HEAP_BYTES_MAX, HEAP_BYTES_MAX),
        (HEAP_BYTES_MAX + 1, PIECE_BYTES),
        (PIECE_BYTES, PIECE_BYTES),
        (PIECE_BYTES + 1, 30_000_000),
        (40_000_000, 30_000_000),
    ] {
        room.grow(share, &spare).unwrap();
        let given = match &room.memory {
            Memory::Heap(heap) => heap.capacity(),
            Memory::Pages(pages) => pages.room(),
        };
        assert_eq!((given, room.bytes()), (has_room, &b"a prompt"[..]));
    }
    assert_eq!(counts(&spare), (0, 1));
}
