//! The bounds of what is kept, counted by memory. One test: the count is the process's.

use super::*;

const MEBIBYTE: usize = 1024 * 1024;

fn counted(app: &Arc<str>) -> (usize, usize) {
    let keep = KEEP.lock();
    (keep.apps.get(app).copied().unwrap_or(0), keep.all)
}

fn taken(kept: &mut Kept) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(first) = kept.first() {
        // Never as much as a block at once, never in step with one.
        let count = first.len().min(50_001);
        all.extend_from_slice(&first[..count]);
        kept.went(count);
    }
    all
}

#[test]
fn what_is_kept_is_bounded_by_connection_app_and_process_and_freed_as_it_goes() {
    let (one, two): (Arc<str>, Arc<str>) = (Arc::from("kept-one"), Arc::from("kept-two"));
    let much: Vec<u8> = (0..20 * MEBIBYTE).map(|at| (at % 251) as u8).collect();

    let mut first = Kept::of(&one);
    assert_eq!(first.take(&much), 16 * MEBIBYTE, "a connection's bound");
    assert_eq!((first.take(b"x"), first.len()), (0, 16 * MEBIBYTE));
    let mut second = Kept::of(&one);
    assert_eq!(second.take(&much), 16 * MEBIBYTE);
    let mut third = Kept::of(&one);
    assert_eq!(third.take(&much), 0, "an app's bound");
    assert_eq!(counted(&one).0, 32 * MEBIBYTE);

    // Another app has room still, up to what all may have.
    let mut others = [Kept::of(&two), Kept::of(&two)];
    assert!(others.iter_mut().all(|kept| kept.take(&much) > 0));
    let mut last = Kept::of(&Arc::from("kept-three"));
    assert_eq!(last.take(&much), 0, "the process's bound");
    drop(others);

    // Freed block by block, and whole.
    first.went(BLOCK_BYTES);
    assert_eq!(counted(&one).0, 32 * MEBIBYTE - BLOCK_BYTES);
    assert_eq!(first.take(b"end"), 3);
    let mut expected = much[BLOCK_BYTES..16 * MEBIBYTE].to_vec();
    expected.extend_from_slice(b"end");
    assert!(taken(&mut first) == expected, "in order, and all of it");
    assert_eq!((first.len(), first.blocks.len()), (0, 0));
    drop(second);
    assert_eq!(counted(&one), (0, 0));

    // By memory: a byte takes its block.
    assert_eq!(first.take(b"x"), 1);
    assert_eq!(counted(&one), (BLOCK_BYTES, BLOCK_BYTES));
    drop(first);
    assert_eq!(counted(&one), (0, 0));
}
