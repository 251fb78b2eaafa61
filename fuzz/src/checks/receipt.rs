//! The receipt grammar, in headers and in comment lines: `[0-9]{1,15}`, nothing else is an amount.
//!
//! Promise: absent, malformed and zero stay three things; the first amount counts that is not 0, readable or not, and 0
//! where there is no other; an equal one behind it changes nothing and another one is a conflict.

use bursar::protocol::Reported;
use bursar::protocol::names::ServiceNames;
use bursar::protocol::receipt::Receipt;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Lines `name: value` become headers; lines that begin with `: ` become comments.
pub fn check(bytes: &[u8]) {
    let Ok(names) = ServiceNames::new("service") else {
        panic!("the default name is a name");
    };
    let mut headers = HeaderMap::new();
    let mut comments: Vec<(&[u8], &[u8])> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').take(64) {
        if let Some(comment) = line.strip_prefix(b": ") {
            let at = comment.iter().position(|byte| *byte == b' ');
            comments.push(at.map_or((comment, &[]), |at| (&comment[..at], &comment[at + 1..])));
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':')
            && let Ok(name) = HeaderName::from_bytes(&line[..colon])
            && let Ok(value) = HeaderValue::from_bytes(&line[colon + 1..])
        {
            headers.append(name, value);
        }
    }
    let mut receipt = Receipt::from_headers(&names, &headers);
    let in_head: Vec<&[u8]> = headers
        .get_all("x-service-billed")
        .iter()
        .map(|value| value.as_bytes().trim_ascii())
        .collect();
    compare(&receipt, &in_head);
    for (name, value) in &comments {
        receipt = receipt.with_comment(&names, name, value);
    }
    let in_comments = comments
        .iter()
        .filter(|(name, _)| *name == b"service-billed-micro-usd")
        .map(|(_, value)| *value);
    let all: Vec<&[u8]> = in_head.iter().copied().chain(in_comments).collect();
    compare(&receipt, &all);
    if let Some(specialist) = &receipt.specialist {
        assert!(!specialist.is_empty() && specialist.is_ascii());
    }
    for text in [&receipt.route_version, &receipt.input_required]
        .into_iter()
        .flatten()
    {
        assert!(
            text.bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        );
    }
}

/// The same, read plainly.
fn compare(receipt: &Receipt, values: &[&[u8]]) {
    let amounts: Vec<Option<u64>> = values.iter().map(|text| plain_amount(text)).collect();
    let stands = amounts.iter().position(|amount| *amount != Some(0));
    let stands = stands.unwrap_or(0);
    match (&receipt.billed, amounts.get(stands)) {
        (Reported::Absent, None) | (Reported::Malformed, Some(None)) => {}
        (Reported::Value(billed), Some(Some(plain))) => assert_eq!(billed.get(), *plain),
        (billed, plain) => panic!("{billed:?} was read where {plain:?} stands"),
    }
    let behind = amounts.iter().skip(stands);
    let others = behind.filter(|amount| Some(*amount) != amounts.get(stands));
    assert_eq!(
        usize::try_from(receipt.conflicting_amounts).ok(),
        Some(others.count())
    );
}

fn plain_amount(text: &[u8]) -> Option<u64> {
    let is_plain = (1..=15).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let digits = text.iter().filter(|_| is_plain);
    is_plain.then(|| digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}
