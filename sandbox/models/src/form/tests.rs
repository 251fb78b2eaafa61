//! A bill read field by field, and what is not there.

use super::*;
use serde_json::json;

const BILL: &str = "Varde Steel\nInvoice VS-77 of 3 May 2026, net 14\n2 x Beam at 40.00 = 80.00\nVAT 25%  20.00\nTotal EUR 100.00";

#[test]
fn a_bill_is_read_field_by_field() {
    let given = PromptParts::plain(BILL);
    let form = Extractor::new(given, Skills::frontier());
    let text = |field: &str| form.string(field, &json!({}));

    assert_eq!(text("vendor").as_deref(), Some("Varde Steel"));
    assert_eq!(text("invoice_number").as_deref(), Some("VS-77"));
    assert_eq!(text("invoice_date").as_deref(), Some("2026-05-03"));
    assert_eq!(text("due_date").as_deref(), Some("2026-05-17"));
    assert_eq!(text("currency").as_deref(), Some("EUR"));
    assert_eq!(
        (form.amount("total"), form.amount("tax")),
        (Some(100.0), Some(20.0))
    );
}

#[test]
fn what_is_not_there_is_not_made_up() {
    let given = PromptParts::plain("A walk by the river, nothing else.");
    let form = Extractor::new(given, Skills::frontier());

    for field in [
        "email",
        "phone",
        "due_date",
        "currency",
        "order_number",
        "company",
        "colour",
    ] {
        assert_eq!(form.string(field, &json!({})), None, "{field}");
    }
    assert_eq!(form.amount("tax"), None);
}

#[test]
fn a_due_date_that_follows_from_terms_takes_inference() {
    let given = PromptParts::plain(BILL);
    let form = Extractor::new(given, Skills::without(&[Skill::Inference]));

    assert_eq!(form.string("due_date", &json!({})), None);
}
