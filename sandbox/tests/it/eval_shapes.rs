//! The task under which a set of rows is filed, or the reason why the set is refused. An accepted set can be
//! run, or says what is missing.

use crate::{eval_support::*, model_server::*, own_models::sandbox_with, support::*};
use serde_json::{Value, json};

const PDF: &str = "data:application/pdf;base64,JVBERi0xLjcgbGFtcA==";
const ASK: &str = "Answer the question about the document.";
const LONG: &str = "We are sorry that the order came late and will send you another one at once.";

/// What becomes of a set.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    /// The task and its scorer; a run of it ends.
    Task(&'static str, &'static str),
    /// As `Task`, when the documents are attached; until then a run is refused.
    Waits(&'static str, &'static str),
    Refused(&'static str),
}
use Becomes::{Refused, Task, Waits};

fn row(input: Value, expected: Value) -> Value {
    json!({"input": input, "expected_output": expected})
}

fn shapes() -> Vec<(
    &'static str,
    Option<&'static str>,
    &'static str,
    Value,
    Becomes,
)> {
    let lease = "The notice period is three months.";
    let question = "How long is the notice period?";
    let answer = json!({"answer": "three months"});
    let invoice = json!({"vendor": "Kite Works", "invoice_number": "A-1", "invoice_date": "2026-05-01",
        "due_date": null, "currency": "EUR", "line_items": [{"description": "String", "quantity": 1, "amount": 7}], "total": 7});
    let answers = Task("general-answers", "token_f1");
    let fields = Task("general-extraction", "field_f1");
    let labels = Task("general-classification", "exact_match");
    let open = Task("general", "judge");
    let of_documents = "document-questions";
    vec![
        (
            "a text and a question",
            None,
            ASK,
            row(json!({"text": lease, "question": question}), answer.clone()),
            answers,
        ),
        (
            "a document of plain text",
            None,
            ASK,
            row(
                json!({"document": lease, "question": question}),
                answer.clone(),
            ),
            answers,
        ),
        (
            "a document",
            None,
            ASK,
            row(
                json!({"document": PDF, "question": question}),
                answer.clone(),
            ),
            Task(of_documents, "token_f1"),
        ),
        (
            "a question, its document to come",
            None,
            ASK,
            row(json!({"question": question}), answer.clone()),
            Waits(of_documents, "token_f1"),
        ),
        (
            "an answer, its document to come",
            None,
            ASK,
            json!({"expected_output": answer}),
            Waits(of_documents, "token_f1"),
        ),
        (
            "a text and a question under a pinned document task",
            Some(of_documents),
            ASK,
            row(json!({"text": lease, "question": question}), answer.clone()),
            Waits(of_documents, "token_f1"),
        ),
        (
            "an invoice as text",
            None,
            "Extract the invoice.",
            row(json!({"text": "Kite Works, A-1"}), invoice.clone()),
            fields,
        ),
        (
            "an invoice, its document to come",
            None,
            "Extract the invoice.",
            row(json!({}), invoice),
            Waits("invoice-extraction", "field_f1"),
        ),
        (
            "no input and no task of documents",
            None,
            "Extract the part and the bin.",
            json!({"expected_output": {"part": "A-1", "bin": "7"}}),
            Refused("items: line 1: input is missing"),
        ),
        (
            "a contact",
            None,
            "Extract the contact details.",
            row(
                json!({"text": "Bo Reed, 555-0102"}),
                json!({"name": "Bo Reed", "company": null, "email": null, "phone": "555-0102"}),
            ),
            Task("contact-extraction", "field_f1"),
        ),
        (
            "fields of one's own",
            None,
            "Extract the part and the bin from the note.",
            row(
                json!({"note": "Part A-1 lies in bin 7."}),
                json!({"part": "A-1", "bin": "7"}),
            ),
            fields,
        ),
        (
            "fields of one's own, other words",
            None,
            "What do the note's part and bin say?",
            row(
                json!({"note": "Part A-1 lies in bin 7."}),
                json!({"part": "A-1", "bin": "7"}),
            ),
            fields,
        ),
        (
            "a number",
            None,
            "How many stars does the review give?",
            row(json!({"review": "Four of five."}), json!({"stars": 4})),
            fields,
        ),
        (
            "a list",
            None,
            "Which parts does the note name?",
            row(
                json!({"note": "A-1 and B-2."}),
                json!({"parts": ["A-1", "B-2"]}),
            ),
            fields,
        ),
        (
            "a label of one's own",
            None,
            "Classify the ticket as hardware or software.",
            row(
                json!({"ticket": "The screen is dark."}),
                json!({"team": "hardware"}),
            ),
            labels,
        ),
        (
            "a sentiment",
            None,
            "Classify the sentiment of the review.",
            row(json!({"text": "Lovely."}), json!({"label": "positive"})),
            Task("sentiment", "exact_match"),
        ),
        (
            "open text",
            None,
            "Write a polite reply to the message.",
            row(json!({"message": "It came late."}), json!({"reply": LONG})),
            open,
        ),
        (
            "open text in several fields",
            None,
            "Write a subject and a reply to the message.",
            row(
                json!({"message": "It came late."}),
                json!({"subject": "Late", "reply": LONG}),
            ),
            open,
        ),
        (
            "fields under the pinned general task",
            Some("general"),
            "Extract the part and the bin.",
            row(
                json!({"note": "Part A-1 lies in bin 7."}),
                json!({"part": "A-1", "bin": "7"}),
            ),
            open,
        ),
        (
            "text under the pinned task of fields",
            Some("general-extraction"),
            "Extract the part.",
            row(json!({"note": "Part A-1."}), json!({"part": "A-1"})),
            fields,
        ),
        (
            "nothing that could be right",
            None,
            "Extract the part and the bin.",
            row(
                json!({"note": "Part A-1."}),
                json!({"part": null, "bin": null}),
            ),
            Refused(
                "items: line 1: expected_output cannot be scored: the expected output holds nothing",
            ),
        ),
        (
            "no object",
            None,
            "Extract the part.",
            row(json!("Part A-1."), json!({"part": "A-1"})),
            Refused("items: line 1: input must be an object"),
        ),
    ]
}

#[tokio::test]
async fn each_shape_of_rows_is_filed_under_its_task_or_refused_with_the_reason() {
    let sandbox = Sandbox::start().await;
    for (name, task, prompt, row, becomes) in shapes() {
        let reply = post_set(&sandbox, task, prompt, std::slice::from_ref(&row)).await;
        let (id, scorer) = match becomes {
            Refused(detail) => {
                assert_eq!(reply.status, 422, "{name}: {}", reply.text());
                assert_eq!(reply.json(), json!({"detail": detail}), "{name}");
                continue;
            }
            Task(id, scorer) | Waits(id, scorer) => (id, scorer),
        };
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let set = reply.json()["eval_set"].clone();
        assert_eq!(set["task_id"], id, "{name}");
        let shown = sandbox.get(&format!("/v1/tasks/{id}")).await.json();
        assert_eq!(shown["default_scorer"], scorer, "{name}");
        assert_eq!(shown["scoring_strategy"], set["scoring_strategy"], "{name}");

        let set = set["id"].as_str().unwrap();
        if let Waits(..) = becomes {
            let refused = post_run(&sandbox, set, &["auto"]).await;
            assert_eq!(refused.status, 422, "{name}");
            assert_eq!(
                refused.json()["detail"],
                "eval_set_id: no document is attached to row 0",
                "{name}"
            );
            let form = Form::default()
                .field("idx", "0")
                .field("field_name", "document")
                .field("mime", "application/pdf")
                .file("file", b"%PDF-1.7 lamp");
            let path = format!("{SETS}/{set}/attach-blob");
            let attached = form.post(&sandbox, &path, "sandbox-key").await;
            assert_eq!(attached.status, 200, "{name}: {}", attached.text());
        }
        let run = start(&sandbox, set, &["auto"]).await;
        let ended = terminal(&sandbox, &run).await;
        assert_eq!(ended["run"]["status"], "completed", "{name}: {ended}");
        let result = &ended["results"][0];
        assert_eq!(result["n_succeeded"], 1, "{name}: {result}");
        let has_rate = !result["exact_match"].is_null();
        assert_eq!(has_rate, scorer == "exact_match", "{name}");
    }
    sandbox.stop().await;
}

// Interface, Task, default_scorer: "field-F1 for extraction": half of two values is a half.
#[tokio::test]
async fn fields_of_one_s_own_are_scored_value_by_value() {
    let server = ModelServer::start();
    let said = json!({"part": "A-1", "bin": "shelf eight"}).to_string();
    let sandbox = sandbox_with(&[server.model("specialist", "", says(&said))]).await;
    let note = json!({"note": "Part A-1 lies in shelf seven."});
    let row = row(note, json!({"part": "A-1", "bin": "shelf seven"}));
    let prompt = "Extract the part and the bin from the note.";
    let set = set(&sandbox, None, prompt, &[row]).await;

    let run = start(&sandbox, &set, &["auto"]).await;
    let ended = terminal(&sandbox, &run).await;

    assert_eq!(ended["results"][0]["quality_mean"], 0.5, "{ended}");
    sandbox.stop().await;
}
