//! What becomes of the other members.

use super::*;

#[test]
fn what_the_service_takes_is_sent_and_nothing_else() {
    let tool = json!({"name": "t", "input_schema": {"type": "object"}});
    let function = json!({"name": "t", "parameters": {"type": "object"}});
    let tools = json!([{"type": "function", "function": function}]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = json!({"type": "json_schema",
        "json_schema": {"name": "answer", "strict": true, "schema": schema}});
    let cases = [
        ("nothing more", json!({}), json!({})),
        (
            "a temperature",
            json!({"temperature": 0.70}),
            json!({"temperature": 0.70}),
        ),
        ("top_p", json!({"top_p": 1}), json!({"top_p": 1})),
        (
            "absent is null",
            json!({"temperature": null, "stream": null, "tools": null}),
            json!({}),
        ),
        (
            "four stops",
            json!({"stop_sequences": ["a", "b", "c", "d"]}),
            json!({"stop": ["a", "b", "c", "d"]}),
        ),
        ("no stops", json!({"stop_sequences": []}), json!({})),
        ("no tools", json!({"tools": []}), json!({})),
        (
            "a limit above the window",
            json!({"max_tokens": 131_073}),
            json!({"max_tokens": 131_072}),
        ),
        (
            "a limit of the window",
            json!({"max_tokens": 131_072}),
            json!({"max_tokens": 131_072}),
        ),
        ("no servers", json!({"mcp_servers": []}), json!({})),
        ("anywhere", json!({"inference_geo": "global"}), json!({})),
        (
            "a form of the answer",
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
            json!({"response_format": format}),
        ),
        (
            "the same by its first name",
            json!({"output_format": {"type": "json_schema", "schema": schema}}),
            json!({"response_format": format}),
        ),
        ("tools", json!({"tools": [tool]}), json!({"tools": tools})),
        (
            "any of them",
            json!({"tools": [tool], "tool_choice": {"type": "any"}}),
            json!({"tools": tools, "tool_choice": "required"}),
        ),
        (
            "none of them",
            json!({"tools": [tool], "tool_choice": {"type": "none"}}),
            json!({"tools": tools, "tool_choice": "none"}),
        ),
        (
            "whichever, one at a time",
            json!({"tools": [tool], "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
            json!({"tools": tools, "tool_choice": "auto", "parallel_tool_calls": false}),
        ),
        (
            "whichever, many at a time",
            json!({"tools": [tool], "tool_choice": {"type": "auto", "disable_parallel_tool_use": false}}),
            json!({"tools": tools, "tool_choice": "auto"}),
        ),
        (
            "a named one",
            json!({"tools": [tool], "tool_choice": {"type": "tool", "name": "t"}}),
            json!({"tools": tools, "tool_choice": {"type": "function", "function": {"name": "t"}}}),
        ),
        (
            "a choice of nothing",
            json!({"tool_choice": {"type": "auto"}}),
            json!({}),
        ),
        (
            "a choice of nothing that is left",
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
            json!({}),
        ),
    ];
    for (what, more, expected) in cases {
        let mut sent = sent(&request(more.clone()));
        let sent = sent.as_object_mut().unwrap();
        assert_eq!(sent.remove("model").unwrap(), "claude-x", "{what}");
        assert!(sent.remove("messages").is_some(), "{what}");
        if expected.get("max_tokens").is_none() {
            assert_eq!(sent.remove("max_tokens").unwrap(), 10, "{what}");
        }
        assert_eq!(Value::from(sent.clone()), expected, "{what}");
    }
}

#[test]
fn tools_are_functions_and_those_of_servers_are_left_out() {
    let schema = json!({"type": "object"});
    let cases = [
        (
            "the least",
            json!({"name": "t", "input_schema": schema}),
            Some(json!({"name": "t", "parameters": schema})),
        ),
        (
            "described, of its type",
            json!({"type": "custom", "name": "t", "description": "d", "input_schema": schema}),
            Some(json!({"name": "t", "description": "d", "parameters": schema})),
        ),
        (
            "a type that is null",
            json!({"type": null, "name": "t", "input_schema": {}}),
            Some(json!({"name": "t", "parameters": {}})),
        ),
        (
            "a schema beside another type",
            json!({"type": "novel", "name": "t", "input_schema": {}}),
            Some(json!({"name": "t", "parameters": {}})),
        ),
        (
            "strict",
            json!({"name": "t", "input_schema": {}, "strict": true}),
            Some(json!({"name": "t", "parameters": {}, "strict": true})),
        ),
        (
            "not strict, loaded when it is asked for",
            json!({"name": "t", "input_schema": {}, "strict": false, "defer_loading": true}),
            Some(json!({"name": "t", "parameters": {}})),
        ),
        (
            "a search",
            json!({"type": "web_search_20260318", "name": "web_search"}),
            None,
        ),
        (
            "a fetch",
            json!({"type": "web_fetch_20250910", "name": "web_fetch"}),
            None,
        ),
        (
            "code",
            json!({"type": "code_execution_20250825", "name": "code_execution"}),
            None,
        ),
        (
            "a search of tools",
            json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search"}),
            None,
        ),
        (
            "a set of MCP",
            json!({"type": "mcp_toolset", "mcp_server_name": "m"}),
            None,
        ),
        (
            "an advisor",
            json!({"type": "advisor_20260301", "name": "advisor"}),
            None,
        ),
        (
            "one of tomorrow",
            json!({"type": "novel_20270101", "name": "novel"}),
            None,
        ),
    ];
    for (what, tool, expected) in cases {
        let sent = sent(&request(json!({"tools": [tool]})));
        let found = sent.get("tools").map(|tools| &tools[0]["function"]);
        assert_eq!(found, expected.as_ref(), "{what}");
    }
}

#[test]
fn a_conversation_changes_the_tools_and_what_holds_at_its_end_is_offered() {
    let addition = |tool: Value| json!({"type": "tool_addition", "tool": tool});
    let removal = |tool: Value| json!({"type": "tool_removal", "tool": tool});
    let named = |name: &str| json!({"type": "tool_reference", "name": name});
    let defined = |name: &str| {
        let definition = json!({"name": name, "input_schema": {"type": "object"}});
        json!({"type": "tool_definition", "definition": definition})
    };
    let cases: [(&str, Value, &[&str]); 10] = [
        (
            "another one of a name that is there",
            json!([addition(defined("a"))]),
            &["b", "a"],
        ),
        (
            "such a one, and away again",
            json!([addition(defined("a")), removal(named("a"))]),
            &["b"],
        ),
        ("nothing", json!([]), &["a", "b"]),
        (
            "one more",
            json!([addition(defined("c"))]),
            &["a", "b", "c"],
        ),
        ("one less", json!([removal(named("a"))]), &["b"]),
        (
            "one less and back again",
            json!([removal(named("a")), addition(named("a"))]),
            &["a", "b"],
        ),
        (
            "one more and away again",
            json!([addition(defined("c")), removal(named("c"))]),
            &["a", "b"],
        ),
        (
            "one that is there already",
            json!([addition(named("b"))]),
            &["a", "b"],
        ),
        (
            "one that servers run",
            json!([addition(named("web_search"))]),
            &["a", "b"],
        ),
        (
            "none",
            json!([removal(named("a")), removal(named("b"))]),
            &[],
        ),
    ];
    for (what, changes, expected) in cases {
        let messages = json!([
            {"role": "user", "content": "hi"},
            {"role": "system", "content": changes},
            {"role": "user", "content": "go on"},
        ]);
        let tools = json!([
            {"name": "a", "input_schema": {}},
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": "b", "input_schema": {}, "defer_loading": true},
        ]);
        let sent = sent(&request(json!({"messages": messages, "tools": tools})));
        let tools = sent["tools"].as_array().into_iter().flatten();
        let names: Vec<&str> = tools
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected, "{what}");
        assert_eq!(sent["messages"].as_array().unwrap().len(), 2, "{what}");
    }
}

#[test]
fn a_thread_that_is_continued_is_refused_so_that_claude_code_sends_it_whole() {
    // It has the new messages only; answered as it stands, the model would have lost all before.
    let thread = json!({"type": "continue", "previous_message_id": "msg_1"});
    let request = request(json!({"thread": thread})).to_string();
    let refusal = translate(request.as_bytes()).unwrap_err();
    let known = "capability_rejected: beta_header:message-threads-2026-08-12";
    assert!(refusal.message.contains(known), "{}", refusal.message);
}

#[test]
fn an_input_without_members_is_taken_where_the_schema_requires_none() {
    let cases = [
        (json!({}), true),
        (json!({"type": "object", "properties": {"a": {}}}), true),
        (json!({"required": []}), true),
        (json!({"required": ["a"]}), false),
        (json!({"required": "a"}), false),
        (json!({"anyOf": [{"required": ["a"]}]}), false),
        (json!({"$ref": "#/x"}), false),
    ];
    for (schema, expected) in cases {
        let tool = json!({"name": "t", "input_schema": schema});
        let turn = translated(&request(json!({"tools": [tool]}))).turn;
        assert_eq!(turn.needs_no_input("t"), expected, "{schema}");
        assert!(!turn.needs_no_input("another"));
    }
}

#[test]
fn what_only_tunes_is_left_out_and_counted() {
    let tools = json!([
        {"name": "t", "input_schema": {}, "cache_control": {"type": "ephemeral"}, "defer_loading": false,
         "input_examples": [{}], "eager_input_streaming": true, "allowed_callers": ["direct"]},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "novel_20270101", "name": "novel"},
    ]);
    let cases = [
        (json!({"top_k": 5}), vec!["top_k"]),
        (json!({"metadata": {"user_id": "u"}}), vec!["metadata"]),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            vec!["thinking"],
        ),
        (json!({"service_tier": "auto"}), vec!["service_tier"]),
        (
            json!({"context_management": {"edits": []}}),
            vec!["context_management"],
        ),
        (
            json!({"output_config": {"effort": "high", "task_budget": {}}}),
            vec!["output_config.effort", "output_config.task_budget"],
        ),
        (
            json!({"cache_control": {"type": "ephemeral"}}),
            vec!["cache_control"],
        ),
        (
            json!({"diagnostics": {}, "speed": "fast"}),
            vec!["diagnostics", "speed"],
        ),
        (
            json!({"betas": ["b"], "anthropic_version": "v"}),
            vec!["betas", "anthropic_version"],
        ),
        (json!({"novel": 1}), vec!["unknown"]),
        (json!({"thread": {"type": "create"}}), vec!["thread"]),
        (
            json!({"max_tokens": 200_000}),
            vec!["max_tokens above the window"],
        ),
        (
            json!({"tools": tools}),
            vec![
                "cache_control",
                "defer_loading",
                "input_examples",
                "eager_input_streaming",
                "allowed_callers",
                "tools.web_search",
                "tools.other",
            ],
        ),
        (json!({"top_k": null, "container": null}), vec![]),
    ];
    for (more, expected) in cases {
        let found = dropped(&request(more.clone()));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{more}");
        assert!(found.iter().all(|(_, count)| *count == 1), "{more}");
    }
}

#[test]
fn what_cannot_be_honored_is_refused_by_name() {
    let tool = json!({"name": "t", "input_schema": {}});
    let searched = json!({"type": "web_search_20250305", "name": "web_search"});
    let cases = [
        (json!({"model": "REMOVED"}), "model"),
        (json!({"model": 1}), "model"),
        (json!({"messages": "REMOVED"}), "messages"),
        (json!({"max_tokens": "REMOVED"}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (json!({"max_tokens": "10"}), "max_tokens"),
        (
            json!({"stop_sequences": ["a", "b", "c", "d", "e"]}),
            "stop_sequences",
        ),
        (json!({"stop_sequences": [1]}), "stop_sequences[0]"),
        (json!({"stop_sequences": "a"}), "stop_sequences"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": true}), "top_p"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"system": 1}), "system"),
        (json!({"system": [{"type": "image"}]}), "system[0].type"),
        (json!({"container": "c"}), "container"),
        (json!({"mcp_servers": [{"type": "url"}]}), "mcp_servers"),
        (
            json!({"thread": {"type": "continue", "previous_message_id": "msg_1"}}),
            "thread",
        ),
        (json!({"inference_geo": "us"}), "inference_geo"),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [{"name": "t"}]}), "tools[0].input_schema"),
        (
            json!({"tools": [{"name": "t", "input_schema": true}]}),
            "tools[0].input_schema",
        ),
        (json!({"tools": [{"input_schema": {}}]}), "tools[0].name"),
        (
            json!({"tools": [{"name": "t", "input_schema": {}, "strict": 1}]}),
            "tools[0].strict",
        ),
        (
            json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "text_editor_20250728", "name": "e"}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "computer_20251124", "name": "c"}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "memory_20250818", "name": "m"}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            "tools[0].type",
        ),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
        (
            json!({"tools": [searched], "tool_choice": {"type": "any"}}),
            "tool_choice",
        ),
        (
            json!({"tools": [tool], "tool_choice": {"type": "tool", "name": "u"}}),
            "tool_choice.name",
        ),
        (
            json!({"tools": [searched], "tool_choice": {"type": "tool", "name": "web_search"}}),
            "tool_choice.name",
        ),
        (
            json!({"tools": [tool], "tool_choice": {"type": "required"}}),
            "tool_choice.type",
        ),
        (
            json!({"tools": [tool], "tool_choice": "auto"}),
            "tool_choice",
        ),
        (
            json!({"output_config": {"format": {"type": "grammar"}}}),
            "output_config.format.type",
        ),
        (
            json!({"output_format": {"type": "json_schema"}}),
            "output_format.schema",
        ),
        (
            json!({"output_format": {"type": "json_schema", "schema": {}},
                "output_config": {"format": {"type": "json_schema", "schema": {}}}}),
            "output_format",
        ),
    ];
    for (more, param) in cases {
        let request = request(more.clone()).to_string();
        let refusal = translate(request.as_bytes()).expect_err(&more.to_string());
        assert_eq!(refusal.param, param, "{more}");
    }
}

#[test]
fn what_is_no_one_object_is_refused() {
    let many: Vec<String> = (0..65).map(|index| format!("\"m{index}\":0")).collect();
    let many = format!("{{{}}}", many.join(","));
    let twice =
        r#"{"model":"a","model":"b","max_tokens":1,"messages":[{"role":"user","content":"a"}]}"#;
    let bodies: [&[u8]; 8] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{} {}",
        b"\xff",
        twice.as_bytes(),
        many.as_bytes(),
    ];
    for body in bodies {
        assert_eq!(translate(body).unwrap_err().param, "");
    }
}

#[test]
fn two_tools_of_one_name_in_a_list_are_refused() {
    let tool = || json!({"name": "f", "input_schema": {}});
    let messages = json!([{"role": "user", "content": "hi"}]);
    let two = request(json!({"messages": messages, "tools": [tool(), tool()]})).to_string();
    let refusal = translate(two.as_bytes()).expect_err("one of them could not be called");
    assert_eq!(refusal.param, "tools[1].name");
}

#[test]
fn a_tool_that_was_replaced_does_not_say_what_its_successor_needs() {
    let defined = |schema: Value| json!({"name": "f", "input_schema": schema});
    let (bare, needy) = (json!({}), json!({"required": ["path"]}));
    for (first, second, expected) in [(&bare, &needy, false), (&needy, &bare, true)] {
        let definition = json!({"type": "tool_definition", "definition": defined(second.clone())});
        let messages = json!([
            {"role": "user", "content": "hi"},
            {"role": "system", "content": [{"type": "tool_addition", "tool": definition}]},
            {"role": "user", "content": "go on"},
        ]);
        let body = request(json!({"messages": messages, "tools": [defined(first.clone())]}));
        let turn = translate(body.to_string().as_bytes()).expect("a turn").turn;
        assert_eq!(turn.needs_no_input("f"), expected, "{first} {second}");
    }
}
