use super::*;
use crate::config::TagValue;
use crate::ledger::totals::{LineKey, LineSums};
use crate::money::MicroUsd;
use crate::protocol::{Lane, Operation};

fn sum(amount: u64) -> MicroUsdSum {
    MicroUsd::new(amount).into()
}

#[test]
fn the_series_of_a_tag_add_up_to_what_its_app_was_billed() {
    let key: TagKey = "customer".parse().unwrap();
    let mut totals = Totals::default();
    for (app, billed) in [("agent", 100), ("other-app", 7)] {
        let line = LineKey {
            app: Arc::from(app),
            lane: Lane::Inference,
            operation: Operation::Chat,
            served_by: None,
        };
        let row = LineSums {
            billed: sum(billed),
            ..LineSums::default()
        };
        totals.extend([(&line, &row)]);
    }
    let values = [("acme", 30), ("beta", 20), ("gone", 1)];
    let values = values.map(|(value, billed)| (value.to_owned(), sum(billed)));
    let keys = BTreeMap::from([(key, BTreeMap::from(values))]);
    totals.globals.tagged.insert("agent".to_owned(), keys);
    let listed = ["acme", "new"].map(|value| TagValue {
        key,
        value: value.to_owned(),
    });
    let app = App {
        tags: vec![key],
        tag_metrics: listed.to_vec(),
        ..App::new("agent")
    };
    let unlisted = App {
        tags: vec![key],
        ..App::new("other-app")
    };
    let mut text = Exposition::default();
    let listed = ListedTag::of(&[app, unlisted]);
    write(&totals, &listed, &FirstSeen::new(8), &mut text);
    let text = text.into_text();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let series = |value: &str, usd: &str| {
        format!("bursar_tag_customer_billed_usd_total{{app=\"agent\",value=\"{value}\"}} {usd}")
    };
    let wanted = [
        series("acme", "0.000030"),
        series("new", "0.000000"),
        series("none", "0.000049"),
        series("other", "0.000021"),
    ];
    assert_eq!(samples, wanted);
}
