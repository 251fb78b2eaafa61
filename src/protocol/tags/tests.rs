use super::*;

fn declared() -> Vec<TagKey> {
    ["customer", "feature", "id", "env", "team"]
        .map(|key| key.parse().unwrap())
        .to_vec()
}

#[test]
fn tags_are_kept_as_they_were_sent() {
    for (sent, kept) in [
        ("customer=acme,feature=rag", "customer=acme,feature=rag"),
        (
            " feature = rag , customer=acme ",
            "customer=acme,feature=rag",
        ),
        ("customer=a=b", "customer=a=b"),
        ("customer=Acme Inc. (EU)", "customer=Acme Inc. (EU)"),
        (",customer=acme,,", "customer=acme"),
        ("", ""),
    ] {
        let tags = Tags::parse(sent, &declared()).unwrap();
        assert_eq!(tags.to_string(), kept, "{sent}");
        let json = serde_json::to_string(&tags).unwrap();
        assert_eq!(serde_json::from_str::<Tags>(&json).unwrap(), tags);
    }
    let longest = "x".repeat(VALUE_BYTES_MAX);
    assert!(Tags::parse(&format!("customer={longest}"), &declared()).is_ok());
}

#[test]
fn what_is_no_tag_is_refused_by_name_and_repeats_no_value() {
    let key = |text: &str| text.parse::<TagKey>().unwrap();
    let long = format!("customer={}", "x".repeat(VALUE_BYTES_MAX + 1));
    for (sent, error) in [
        ("customer", TagsError::NoPair(1)),
        ("customer=a,Feature=b", TagsError::Key(2)),
        ("=a", TagsError::Key(1)),
        ("customer=", TagsError::Value(key("customer"))),
        (long.as_str(), TagsError::Value(key("customer"))),
        ("customer=a,customer=b", TagsError::Twice(key("customer"))),
        ("color=red", TagsError::Undeclared(key("color"))),
        ("customer=a,feature=b,id=c,env=d,team=e", TagsError::TooMany),
    ] {
        let found = Tags::parse(sent, &declared()).unwrap_err();
        assert_eq!(found, error, "{sent}");
        assert!(!found.to_string().contains("red"), "{found}");
    }
}

#[test]
fn a_key_is_fit_for_the_name_of_a_metric() {
    let longest = "a".repeat(KEY_BYTES_MAX);
    let longer = format!("{longest}a");
    for (text, is_key) in [
        ("a", true),
        ("customer_2", true),
        (longest.as_str(), true),
        (longer.as_str(), false),
        ("", false),
        ("2a", false),
        ("_a", false),
        ("A", false),
        ("a-b", false),
        ("a.b", false),
        ("\u{e4}", false),
    ] {
        assert_eq!(text.parse::<TagKey>().is_ok(), is_key, "{text}");
    }
}
