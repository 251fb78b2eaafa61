//! The pure rules of request bodies: how their share of memory grows, and that they are kept once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::{RequestBody, share_step};

const MIB: usize = 1024 * 1024;

#[test]
fn a_share_grows_with_the_bytes_that_came_and_not_with_what_was_announced() {
    let all = Some(30_000_000);
    let small = 8 * 1024;
    assert_eq!(share_step(0, small, Some(small)), 0, "small ones are free");
    assert_eq!(share_step(0, small - 1, all), 0);
    assert_eq!(share_step(0, small, all), MIB, "before more is read");
    assert_eq!(share_step(MIB, MIB - 1, all), 0);
    assert_eq!(share_step(MIB, MIB, all), MIB);
    let little_more = share_step(MIB, MIB, Some(MIB + 5));
    assert_eq!(little_more, 5, "never more than announced");
    assert_eq!(share_step(MIB, MIB, Some(MIB)), 0, "it is whole");
    assert_eq!(share_step(MIB, MIB, None), MIB, "a chunked body");
    assert_eq!(share_step(0, small, None), 64 * 1024, "a small one");
}

/// Bytes that note when they are freed.
struct NoticesDrop(Arc<AtomicBool>);

impl AsRef<[u8]> for NoticesDrop {
    fn as_ref(&self) -> &[u8] {
        b"as it came"
    }
}

impl Drop for NoticesDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_edited_body_is_kept_once() {
    let freed = Arc::new(AtomicBool::new(false));
    let mut body = RequestBody {
        bytes: Bytes::from_owner(NoticesDrop(Arc::clone(&freed))),
        hash: None,
        skeleton: None,
        app_took: Duration::ZERO,
        _share: None,
        _grown: None,
    };
    body.becomes(body.bytes().clone());
    assert!(!freed.load(Ordering::Relaxed), "nothing was edited");
    body.becomes(Bytes::from_static(b"as it is sent"));
    assert!(freed.load(Ordering::Relaxed), "the budget covers one copy");
    assert_eq!(body.bytes().as_ref(), b"as it is sent");
}
