//! Event sequences, written by hand from the dialect's own reference.

use super::super::tests::samples::{completion, facts};
use super::super::{answer, request};
use super::of;

/// A message, as a document and as its events.
const MESSAGE: (&str, &str) = (
    r#"{"id":"resp_1","object":"response","created_at":7,"status":"completed","completed_at":null,"error":null,"incomplete_details":null,"output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi \"you\"\n","annotations":[],"logprobs":[]}]}],"usage":{"total_tokens":3},"store":true}"#,
    r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"output":[],"usage":null,"store":true}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"output":[],"usage":null,"store":true}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi \"you\"\n","logprobs":[]}

event: response.output_text.done
data: {"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi \"you\"\n","logprobs":[]}

event: response.content_part.done
data: {"type":"response.content_part.done","sequence_number":6,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hi \"you\"\n","annotations":[],"logprobs":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi \"you\"\n","annotations":[],"logprobs":[]}]}}

event: response.completed
data: {"type":"response.completed","sequence_number":8,"response":{"id":"resp_1","object":"response","created_at":7,"status":"completed","completed_at":null,"error":null,"incomplete_details":null,"output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi \"you\"\n","annotations":[],"logprobs":[]}]}],"usage":{"total_tokens":3},"store":true}}

"#,
);

/// A call of each form, in an answer that was cut short.
const CALLS: (&str, &str) = (
    r#"{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{\"n\":1}"},{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"b","name":"p","input":"*** Begin"}]}"#,
    r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","incomplete_details":null,"output":[]}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","incomplete_details":null,"output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"a","name":"f","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":3,"item_id":"fc_1","output_index":0,"delta":"{\"n\":1}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","sequence_number":4,"item_id":"fc_1","output_index":0,"name":"f","arguments":"{\"n\":1}"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{\"n\":1}"}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":6,"output_index":1,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"b","name":"p","input":""}}

event: response.custom_tool_call_input.delta
data: {"type":"response.custom_tool_call_input.delta","sequence_number":7,"item_id":"ctc_1","output_index":1,"delta":"*** Begin"}

event: response.custom_tool_call_input.done
data: {"type":"response.custom_tool_call_input.done","sequence_number":8,"item_id":"ctc_1","output_index":1,"input":"*** Begin"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":9,"output_index":1,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"b","name":"p","input":"*** Begin"}}

event: response.incomplete
data: {"type":"response.incomplete","sequence_number":10,"response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{\"n\":1}"},{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"b","name":"p","input":"*** Begin"}]}}

"#,
);

/// A refusal, of which the first and last two events are as above.
const REFUSAL: (&str, &str) = (
    r#"{"id":"r","status":"completed","output":[{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]}"#,
    r#"event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","sequence_number":3,"item_id":"m","output_index":0,"content_index":0,"part":{"type":"refusal","refusal":""}}

event: response.refusal.delta
data: {"type":"response.refusal.delta","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":"No."}

event: response.refusal.done
data: {"type":"response.refusal.done","sequence_number":5,"item_id":"m","output_index":0,"content_index":0,"refusal":"No."}

event: response.content_part.done
data: {"type":"response.content_part.done","sequence_number":6,"item_id":"m","output_index":0,"content_index":0,"part":{"type":"refusal","refusal":"No."}}

"#,
);

#[test]
fn arguments_that_are_an_object_come_with_their_item() {
    let item = r#"{"id":"tsc_1","type":"tool_search_call","status":"completed","call_id":"a","execution":"client","arguments":{"q":1}}"#;
    let events = events(&format!(
        r#"{{"id":"r","status":"completed","output":[{item}]}}"#
    ));
    let kinds = kinds(&events);
    assert_eq!(
        kinds[2..],
        [
            "response.output_item.added",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert!(
        events.contains(&format!(r#""output_index":0,"item":{item}}}"#)),
        "{events}"
    );
}

fn events(document: &str) -> String {
    let events = of(document.as_bytes()).expect("a document");
    String::from_utf8(events).expect("UTF-8")
}

#[test]
fn documents_become_the_sequences_that_were_written_by_hand() {
    for (document, sequence) in [MESSAGE, CALLS] {
        assert_eq!(events(document), sequence);
    }
    let (document, middle) = REFUSAL;
    assert!(events(document).contains(middle), "{}", events(document));
}

#[test]
fn an_answer_without_items_is_begun_and_ended() {
    let document = r#"{"id":"r","status":"incomplete","output":[]}"#;
    let kinds: Vec<String> = kinds(&events(document));
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.incomplete"
        ]
    );
}

#[test]
fn what_is_no_response_has_no_events() {
    for document in [
        "",
        "{}",
        r#"{"status":"queued","output":[]}"#,
        r#"{"status":"completed","output":[{}]}"#,
    ] {
        assert!(of(document.as_bytes()).is_err(), "{document}");
    }
}

#[test]
fn no_answer_ends_with_the_mark_of_chat_completions() {
    let translated = request::translate(br#"{"input":"x"}"#, &|_| None).expect("a request");
    let body = completion("stop", r#"{"content":"Hi"}"#);
    let document =
        answer::translate(&translated.turn, body.as_bytes(), facts()).expect("a document");
    let events = of(&document).expect("events");
    assert!(!events.windows(6).any(|bytes| bytes == b"[DONE]"));
    assert!(events.ends_with(b"}}\n\n"));
}

fn kinds(events: &str) -> Vec<String> {
    let kinds = events
        .lines()
        .filter_map(|line| line.strip_prefix("event: "));
    kinds.map(str::to_owned).collect()
}
