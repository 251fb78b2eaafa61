use super::*;
use crate::protocol::tags::Tags;

fn row(requests: u64) -> LineSums {
    LineSums {
        requests,
        ..LineSums::default()
    }
}

fn marks(user: &str, tags: &str) -> Marks {
    let keys = ["customer", "feature"].map(|key| key.parse().unwrap());
    Marks {
        user: Some(user.to_owned()).filter(|user| !user.is_empty()),
        tags: Tags::parse(tags, &keys).unwrap(),
        ..Marks::default()
    }
}

fn requests(tallies: &Tallies, dimension: Dimension) -> Vec<(&str, u64)> {
    let rows = tallies.get(dimension);
    rows.map(|(value, row)| (value, row.requests)).collect()
}

#[test]
fn each_dimension_has_the_entries_that_name_it() {
    let app: Arc<str> = Arc::from("a");
    let (mut all, mut values) = (Tallies::default(), DayValues::default());
    for marks in [
        marks("ann", "customer=acme,feature=rag"),
        marks("ann", "customer=beta"),
        marks("", "feature=rag"),
        marks("", ""),
    ] {
        all.merge(&Tallies::of(&marks, &app, 0, &row(1), &mut values));
    }
    let tag = |key: &str| Dimension::Tag(key.parse().unwrap());
    assert_eq!(requests(&all, Dimension::User), [("ann", 2)]);
    assert_eq!(requests(&all, tag("customer")), [("acme", 1), ("beta", 1)]);
    assert_eq!(requests(&all, tag("feature")), [("rag", 2)]);
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Tallies>(&text).unwrap(), all);
}

#[test]
fn two_hundred_values_a_day_have_a_name_and_none_is_lost_beyond() {
    let app: Arc<str> = Arc::from("a");
    let (mut all, mut values) = (Tallies::default(), DayValues::default());
    for number in 0..VALUES_MAX + 50 {
        let marks = marks(&number.to_string(), "");
        all.merge(&Tallies::of(&marks, &app, 0, &row(1), &mut values));
    }
    let found = requests(&all, Dimension::User);
    assert_eq!(found.len(), VALUES_MAX + 1);
    assert!(found.contains(&(OTHER, 50)), "{found:?}");
    assert_eq!(values.name(DAY_MS, &app, Dimension::User, "249"), "249");
    assert_eq!(values.name(0, &app, Dimension::User, "249"), OTHER);
    let other: Arc<str> = Arc::from("b");
    assert_eq!(values.name(0, &other, Dimension::User, "249"), "249");

    // What two passes named apart is bounded again where it is merged.
    let mut more = Tallies::default();
    let mut fresh = DayValues::default();
    for number in 0..VALUES_MAX {
        let marks = marks(&format!("more {number}"), "");
        more.merge(&Tallies::of(&marks, &app, 0, &row(1), &mut fresh));
    }
    all.merge(&more);
    let found = requests(&all, Dimension::User);
    assert_eq!(found.len(), VALUES_MAX + 1);
    let sum: u64 = found.iter().map(|(_, requests)| requests).sum();
    assert_eq!(sum, 2 * u64::try_from(VALUES_MAX).unwrap() + 50);
}
