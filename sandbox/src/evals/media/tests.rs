use super::*;
use serde_json::json;

#[test]
fn a_row_has_its_document_when_there_are_bytes_of_a_kind_that_is_read() {
    for there in [
        "data:application/pdf;base64,JVBERg==",
        "data:image/png;base64,AA==",
        "data:audio/webm;codecs=opus;base64,AA==",
    ] {
        assert!(is_document(&json!(there)), "{there}");
    }
    for absent in [
        json!(null),
        json!(5),
        json!(""),
        json!({}),
        json!(["data:image/png;base64,AA=="]),
        json!("not a data url"),
        json!("https://example.org/scan.pdf"),
        json!("data:application/pdf;base64,"),
        json!("data:application/pdf;base64,?"),
        json!("data:application/zip;base64,AA=="),
        json!("data:image/png,AA=="),
    ] {
        assert!(!is_document(&absent), "{absent}");
    }
}
