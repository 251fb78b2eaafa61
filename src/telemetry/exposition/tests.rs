use super::*;

#[test]
fn a_time_keeps_its_milliseconds() {
    assert_eq!(MsAsSeconds(1_700_000_000_050).to_string(), "1700000000.050");
}

#[test]
fn a_family_has_its_head_once_and_its_labels_escaped() {
    let mut text = Exposition::after("earlier 1\n".to_owned());

    text.family(MetricType::Counter, "bursar_x_usd_total", "Money.")
        .sample(&[("app", "a\"b\\c\nd"), ("lane", "agent")], 1)
        .sample(&[], "0.000002");

    assert_eq!(
        text.into_text(),
        "earlier 1\n\
         # HELP bursar_x_usd_total Money.\n\
         # TYPE bursar_x_usd_total counter\n\
         bursar_x_usd_total{app=\"a\\\"b\\\\c\\nd\",lane=\"agent\"} 1\n\
         bursar_x_usd_total 0.000002\n"
    );
}
