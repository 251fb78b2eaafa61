use super::*;

#[test]
fn a_name_is_one_word_that_a_path_and_a_body_can_hold() {
    for good in ["a", "My-endpoint_2.1", &"x".repeat(64)] {
        assert!(checked_name(good.to_owned()).is_ok(), "{good}");
    }
    for bad in ["-a", "a b", "a/b", "ä", ".", &"x".repeat(65)] {
        assert!(checked_name(bad.to_owned()).is_err(), "{bad}");
    }
}

#[test]
fn a_generated_name_is_one_that_could_be_given() {
    let mut task = catalog::task("contact-extraction").unwrap().clone();
    task.id = "t".repeat(100);

    let name = generated_name(&task, "0123456789abcdef");

    assert!(name.ends_with("-89abcdef"));
    assert!(checked_name(name).is_ok());
}

#[test]
fn extras_are_kept_as_they_came_and_nothing_else_is() {
    let fields =
        json!({"cost_per_request_micro_usd": 7, "quality": 0.9, "region": "eu", "provider": null});
    let Value::Object(fields) = fields else {
        unreachable!()
    };
    assert_eq!(
        Value::Object(extras(fields).unwrap()),
        json!({"cost_per_request_micro_usd": 7, "quality": 0.9, "region": "eu"})
    );
    for bad in [
        json!({"cost_per_request_micro_usd": -1}),
        json!({"cost_per_request_micro_usd": 1.5}),
        json!({"frontier_cost_per_request_micro_usd": AMOUNT_MAX + 1}),
        json!({"region": 5}),
        json!({"taskDisplay": "x".repeat(201)}),
        json!({"gpu": "large"}),
    ] {
        let Value::Object(fields) = bad else {
            unreachable!()
        };
        assert!(extras(fields).is_err_and(|error| error.status() == 400));
    }
}
