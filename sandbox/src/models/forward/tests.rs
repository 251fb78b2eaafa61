use super::*;
use serde_json::json;

#[test]
fn the_agent_lane_forwards_what_the_interface_names_and_ignores_the_rest() {
    let sent = json!({"model": "auto", "messages": [], "made_up": 1, "user": "u", "stream": true,
        "stream_options": {}, "seed": 7, "logprobs": true, "tools": [{"x": 1}]});
    let Value::Object(sent) = sent else {
        unreachable!()
    };

    let agent = Value::Object(fields(sent.clone(), Lane::Agent));
    let inference = Value::Object(fields(sent.clone(), Lane::Inference));

    assert_eq!(
        agent,
        json!({"seed": 7, "logprobs": true, "tools": [{"x": 1}], "max_tokens": 8192})
    );
    assert_eq!(
        inference,
        json!({"made_up": 1, "user": "u", "seed": 7, "logprobs": true, "tools": [{"x": 1}]})
    );
}

#[test]
fn a_limit_of_either_name_keeps_the_default_out() {
    for name in ["max_tokens", "max_completion_tokens"] {
        let sent = Map::from_iter([(name.to_owned(), json!(5))]);
        assert_eq!(fields(sent.clone(), Lane::Agent), sent);
    }
}
