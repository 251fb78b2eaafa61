use super::*;
use crate::fleet::schema;

#[test]
fn an_amount_beyond_what_the_schema_takes_is_refused_with_the_largest() {
    let too_much = "it takes $1000000000.000000 at most";
    let cases = [
        ("0", Ok(MicroUsd::ZERO)),
        ("1000000000", Ok(LARGEST)),
        ("1000000000.000001", Err(too_much.to_owned())),
        ("2000000000", Err(too_much.to_owned())),
    ];
    for (typed, wanted) in cases {
        assert_eq!(cap_usd(typed), wanted, "{typed}");
    }
    for column in ["limit_micro_usd", "largest_micro_usd", "ahead_micro_usd"] {
        let rule = format!("CHECK ({column} BETWEEN 0 AND {})", LARGEST.get());
        assert!(schema::SQL.contains(&rule), "{rule}");
    }
}
