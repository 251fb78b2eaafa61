use std::time::Duration;

use super::KeepAlive;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_comment_is_due_between_two_events_however_their_bytes_are_cut() {
    for (pieces, is_due) in [
        (&[][..], false),
        (&["data: x\n\n"][..], true),
        (&["data: x\n", "\n"], true),
        (&["data: x\r\n\r", "\n"], true),
        (&["data: x\r\n", "\r\n"], true),
        (&["data: x\r\r"], true),
        (&["data: x\n"], false),
        (&["data: x\r\n"], false),
        (&["data: x\n\n", "data: y"], false),
        (&["data: x\n\n", ": service-billed 5\n"], false),
        (&["data: x\n\n", "", "d"], false),
        (&["\n", "\n"], true),
    ] {
        let mut keep_alive = KeepAlive::after(Some(SECOND));
        pieces
            .iter()
            .for_each(|piece| keep_alive.gave(piece.as_bytes()));
        assert_eq!(keep_alive.due().is_some(), is_due, "{pieces:?}");
    }
    let mut off = KeepAlive::after(None);
    off.gave(b"data: x\n\n");
    assert_eq!(off.due(), None);
}

/// What the service sends and the app is not given does not count.
#[tokio::test(start_paused = true)]
async fn a_silence_is_counted_from_what_the_app_was_given_last() {
    let mut keep_alive = KeepAlive::after(Some(SECOND));
    keep_alive.gave(b"data: x\n\n");
    for (passed_ms, left_ms) in [(0, 1000), (400, 600), (500, 100), (500, 0)] {
        tokio::time::advance(Duration::from_millis(passed_ms)).await;
        assert_eq!(keep_alive.due(), Some(Duration::from_millis(left_ms)));
    }
    keep_alive.gave(b": keepalive\n\n");
    assert_eq!(keep_alive.due(), Some(SECOND));
}
