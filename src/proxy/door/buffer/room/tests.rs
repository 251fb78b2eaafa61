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

#[test]
fn pages_are_used_again_without_what_they_held() {
    let spare = SparePages::default();
    let first = grown(&spare, 1_000_000).freeze();
    let place = first.as_ptr();
    assert_eq!(first.as_ref(), b"a prompt");
    drop(first);

    let again = spare.used_again().unwrap();
    assert_eq!(again.as_ptr(), place);
    assert!(again.iter().all(|byte| *byte == 0));
}

#[test]
fn few_pages_are_kept_and_none_of_a_large_body() {
    let spare = SparePages::default();
    let many: Vec<_> = (0..10).map(|_| grown(&spare, 1_000_000)).collect();
    drop(many);
    assert_eq!(spare.0.lock().len(), SPARES_MAX);

    let spare = SparePages::default();
    let large = grown(&spare, SPARE_BYTES + 1);
    assert_eq!(large.bytes(), b"a prompt");
    drop(large);
    assert_eq!(spare.0.lock().len(), 0);
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
        (HEAP_BYTES_MAX + 1, SPARE_BYTES),
        (SPARE_BYTES, SPARE_BYTES),
        (SPARE_BYTES + 1, 30_000_000),
        (40_000_000, 30_000_000),
    ] {
        room.grow(share, &spare).unwrap();
        let given = match &room.memory {
            Memory::Heap(heap) => heap.capacity(),
            Memory::Pages(pages) => pages.room(),
        };
        assert_eq!((given, room.bytes()), (has_room, &b"a prompt"[..]));
    }
    let kept = spare.0.lock().pop().unwrap();
    assert!(kept.iter().all(|byte| *byte == 0), "what it left is wiped");
}

#[test]
fn a_body_that_is_given_up_leaves_nothing_in_its_pages() {
    let spare = SparePages::default();
    drop(grown(&spare, 1_000_000));
    let kept = spare.0.lock().pop().unwrap();
    assert!(kept.iter().all(|byte| *byte == 0));
}
