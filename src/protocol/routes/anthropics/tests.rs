use super::is_path;

#[test]
fn a_path_is_anthropics_where_messages_stand_behind_a_base_url() {
    for path in [
        "/messages",
        "/v1/messages",
        "/v1/messages/",
        "/agent/messages",
        "/agent/v1/messages",
        "/v1/v1/messages",
        "/v1/agent/v1/messages",
        "/anthropic/v1/messages",
        "/v1/messages/count_tokens",
        "/agent/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/messages/batches/msgbatch_1/results",
    ] {
        assert!(is_path(path), "{path}");
    }
    for path in [
        "",
        "/",
        "/v1/threads/thread_1/messages",
        "/v1/threads/thread_1/messages/msg_1",
        "/agent/v1/threads/thread_1/messages",
        "/v1/chat/completions/chatcmpl-1/messages",
        "/v1/messages/msg_1",
        "/v1/messagesx",
        "/v1/chat/completions",
    ] {
        assert!(!is_path(path), "{path}");
    }
}
