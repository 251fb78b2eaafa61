use std::fs::File;
use std::panic::{self, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{FlockOperation, flock};

use super::{IndexError, LOCKED, LOOKS_MAX, guarded, hush, open_sled, until_closed};

#[test]
fn a_panic_behind_the_guard_prints_nothing_and_any_other_does() {
    let printed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&printed);
    panic::set_hook(Box::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    hush();

    let inside = guarded(|| -> Result<(), IndexError> { panic!("sled's words") });
    let after_inside = printed.load(Ordering::SeqCst);
    let outside = catch_unwind(|| panic!("ours"));
    let after_outside = printed.load(Ordering::SeqCst);
    drop(panic::take_hook());

    assert!(matches!(inside, Err(IndexError::Panicked)));
    assert!(outside.is_err());
    assert_eq!((after_inside, after_outside), (0, 1));
}

#[test]
fn an_index_that_is_being_closed_is_waited_for_and_one_that_stays_open_is_not_for_ever() {
    let place = tempfile::tempdir().unwrap();
    drop(open_sled(place.path()).unwrap());
    let lock = || {
        let file = File::open(place.path().join(LOCKED)).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        Some(file)
    };

    let mut held = lock();
    let mut pauses = 0;
    until_closed(place.path(), || {
        pauses += 1;
        held.take_if(|_| pauses == 3);
    });
    drop(open_sled(place.path()).unwrap());

    let _held = lock();
    let mut pauses_in_vain = 0;
    until_closed(place.path(), || pauses_in_vain += 1);

    assert_eq!((pauses, pauses_in_vain), (3, LOOKS_MAX));
}
