use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;

fn names() -> ServiceNames {
    ServiceNames::new("service").unwrap()
}

fn of(pairs: &[(&'static str, &[u8])]) -> Vec<String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_bytes(value).unwrap();
        headers.append(HeaderName::from_static(name), value);
    }
    ReceiptLines::of_headers(&names(), &headers).into_vec()
}

#[test]
fn receipt_headers_are_kept_as_they_came_and_no_others() {
    let lines = of(&[
        ("content-type", b"application/json"),
        ("x-service-billed", b"42"),
        ("x-service-billed", b"4x2"),
        ("set-cookie", b"a=b"),
        ("idempotent-replayed", b"true"),
    ]);

    assert_eq!(
        lines,
        [
            "x-service-billed: 42",
            "x-service-billed: 4x2",
            "idempotent-replayed: true"
        ]
    );
}

#[test]
fn what_is_not_printable_is_written_out_and_what_is_long_is_cut() {
    let long = [b'7'; 10_000];

    assert_eq!(
        of(&[("x-service-billed", b"4\xff2\t")]),
        [r"x-service-billed: 4\xff2\x09"]
    );
    let lines = of(&[("x-service-billed", &long)]);
    assert_eq!(lines[0].len(), LINE_CHARS_MAX);
    assert!(lines[0].ends_with("777[cut]"), "{}", lines[0]);
}

#[test]
fn the_number_of_lines_is_bounded_and_that_there_were_more_is_said() {
    let pair: (&'static str, &[u8]) = ("x-service-billed", b"1");
    let headers = of(&[pair; 40]);
    assert_eq!(headers.len(), LINES_MAX + 1);
    assert_eq!(headers[LINES_MAX], MORE);

    let mut comments = ReceiptLines::default();
    for _ in 0..40 {
        comments.take_comment(&names(), b"service-billed-micro-usd", b"1");
    }
    let mut kept = of(&[pair; 10]);
    comments.append_to(&mut kept);
    assert_eq!(kept.len(), LINES_MAX + 1);
    assert_eq!(kept[LINES_MAX - 1], ": service-billed-micro-usd 1");
    assert_eq!(kept[LINES_MAX], MORE);
}

#[test]
fn comments_that_are_no_receipt_are_not_kept() {
    let mut lines = ReceiptLines::default();

    lines.take_comment(&names(), b"keep-alive", b"the prompt was ...");
    lines.take_comment(&names(), b"service-served-by", b"frontier");

    assert_eq!(lines.into_vec(), [": service-served-by frontier"]);
}
