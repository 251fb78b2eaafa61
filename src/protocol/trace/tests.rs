use http::HeaderValue;

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn of(values: &[&str]) -> Option<String> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
    }
    TraceId::of(&headers).map(|id| id.to_string())
}

#[test]
fn only_the_form_of_the_w3c_names_a_trace() {
    let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let table = [
        (good.clone(), true),
        (format!("00-{TRACE}-00f067aa0ba902b7-ff"), true),
        (format!("cc-{TRACE}-00f067aa0ba902b7-01"), true),
        (format!("cc-{TRACE}-00f067aa0ba902b7-01-what-comes"), true),
        (format!("cc-{TRACE}-00f067aa0ba902b7-01."), false),
        (format!("00-{TRACE}-00f067aa0ba902b7-01-more"), false),
        (format!("ff-{TRACE}-00f067aa0ba902b7-01"), false),
        (format!("00-{TRACE}-0000000000000000-01"), false),
        (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), false),
        (
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            false,
        ),
        (format!("00-{}-00f067aa0ba902b7-01", "g".repeat(32)), false),
        (format!("00-+{}-00f067aa0ba902b7-01", &TRACE[1..]), false),
        (format!("00_{TRACE}_00f067aa0ba902b7_01"), false),
        (format!("00-{TRACE}-00f067aa0ba902b7"), false),
        (format!(" {good}").trim().to_owned(), true),
        (String::new(), false),
        ("x".repeat(60_000), false),
    ];
    for (value, is_named) in table {
        let wanted = is_named.then(|| TRACE.to_owned());
        assert_eq!(of(&[&value]), wanted, "{value}");
    }
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[&good, &good]), None);
}

#[test]
fn a_trace_is_kept_as_its_32_digits() {
    let id: TraceId = serde_json::from_str(&format!("\"{TRACE}\"")).unwrap();
    assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{TRACE}\""));
    for text in ["\"\"", "\"0\"", "5", "\"4BF92F3577B34DA6A3CE929D0E0E4736\""] {
        assert!(serde_json::from_str::<TraceId>(text).is_err(), "{text}");
    }
}
