use super::*;

fn scan(hold: usize) -> Scan {
    Scan { hold, done: false }
}

#[test]
fn a_chunk_passes_without_being_copied() {
    let chunk = Bytes::from_static(b"data: {}\n\n");

    let out = HoldBack::new().push(chunk.clone(), &scan(0)).unwrap();

    assert_eq!(out.as_ptr(), chunk.as_ptr());
    assert_eq!(out, chunk);
}

#[test]
fn what_is_held_flows_before_what_comes_later() {
    let mut held = HoldBack::new();

    assert_eq!(
        held.push(Bytes::from_static(b"a\nda"), &scan(2)).unwrap(),
        "a\n"
    );
    assert_eq!(held.len(), 2);
    assert_eq!(held.push(Bytes::from_static(b"ta: "), &scan(6)), None);
    assert_eq!(
        held.push(Bytes::from_static(b"{}\nd"), &scan(1)).unwrap(),
        "data: {}\n"
    );
    assert_eq!(held.push(Bytes::new(), &scan(1)), None);
    assert_eq!(held.push(Bytes::new(), &scan(0)).unwrap(), "d");
    assert_eq!(held.take(), None);
    assert!(held.is_empty());
}

#[test]
fn the_end_mark_and_all_behind_it_wait_until_taken() {
    let mut held = HoldBack::new();

    assert_eq!(
        held.push(Bytes::from_static(b"x\ndata: [DONE]"), &scan(12))
            .unwrap(),
        "x\n"
    );
    assert_eq!(held.push(Bytes::from_static(b"\n\n"), &scan(14)), None);
    assert_eq!(held.take().unwrap(), "data: [DONE]\n\n");
    assert_eq!(held.take(), None);
}

#[test]
fn a_hold_larger_than_all_bytes_holds_all_bytes() {
    let mut held = HoldBack::new();

    assert_eq!(held.push(Bytes::from_static(b"abc"), &scan(99)), None);
    assert_eq!(held.take().unwrap(), "abc");
}
