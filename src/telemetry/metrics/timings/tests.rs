use prometheus::Registry;
use prometheus::core::Collector;

use super::*;

fn sets_of(family: &HistogramVec) -> usize {
    family
        .collect()
        .iter()
        .map(|of| of.get_metric().len())
        .sum()
}

/// Rule I11: more apps than there is room for are one app, and each request is counted.
#[test]
fn i11_histograms_have_a_most_of_label_sets_and_what_comes_after_is_other() {
    let metrics = TimingMetrics::new(&Families(Registry::new())).unwrap();
    let of = |operation, stream| TimedAs {
        lane: Lane::Inference,
        operation,
        stream,
    };
    let mut asked = 0;
    for app in 0..120 {
        for operation in Operation::ALL {
            for stream in [false, true] {
                let app = format!("app-{app}");
                metrics.observe(&app, of(*operation, stream), &RequestTimes::default());
                asked += 1;
            }
        }
    }

    for family in [&metrics.duration, &metrics.first_byte, &metrics.overhead] {
        assert!(sets_of(family) <= LABEL_SETS_MAX, "{}", sets_of(family));
        assert!(sets_of(family) > LABEL_SETS_MAX - OTHER_SETS_MAX);
    }
    let counted: u64 = metrics
        .duration
        .collect()
        .iter()
        .flat_map(|family| family.get_metric().to_vec())
        .map(|metric| metric.get_histogram().get_sample_count())
        .sum();
    assert_eq!(counted, asked);
    let other = metrics
        .find(OTHER, of(Operation::Chat, false))
        .expect("some were other");
    assert!(other.duration.get_sample_count() > 0);
}
