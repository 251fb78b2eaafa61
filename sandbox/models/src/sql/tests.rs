//! Questions on two tables and the queries they become.

use super::*;

const TABLES: &str =
    "boats(id, name, harbour, length_m, built_on); trips(id, boat_id, started_at, price)";

fn sql(question: &str) -> String {
    let given = PromptParts {
        named: vec![
            ("tables".to_owned(), TABLES.to_owned()),
            ("question".to_owned(), question.to_owned()),
        ],
        ..PromptParts::default()
    };
    write(&given, Skills::frontier()).unwrap()
}

#[test]
fn a_question_becomes_one_query_on_the_tables_that_are_there() {
    let rows = [
        ("How many boats are there?", "SELECT COUNT(*) FROM boats"),
        (
            "Boats built before 2010",
            "SELECT name FROM boats WHERE built_on < DATE '2010-01-01'",
        ),
        (
            "Which boats never made trips?",
            "SELECT name FROM boats WHERE id NOT IN (SELECT boat_id FROM trips)",
        ),
        ("Average price of trips", "SELECT AVG(price) FROM trips"),
    ];
    for (question, expected) in rows {
        assert_eq!(sql(question), expected, "{question}");
    }
    assert!(write(&PromptParts::plain("no tables"), Skills::frontier()).is_none());
}
