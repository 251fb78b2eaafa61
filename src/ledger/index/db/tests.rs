use std::panic::{self, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{IndexError, guarded, hush};

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
