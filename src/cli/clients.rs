//! The programs that spend through bursar, one row each: what is set for them, and what works then.
//!
//! Why one table: `bursar env CLIENT` prints a row, `bursar launch CLIENT` starts its program with it, docs/clients.md
//! lists all of them, and scripts/test-clients.sh runs the real programs with what the rows say.
//!
//! Promise: a row is variables and arguments alone, so no file of another program is touched; a token is in a
//! variable, never in an argument, where other users could read it.

use super::error::CliError;

/// Base URL of the inference lane, with its `/v1`: one request at a time, exact prices also in streams.
const CHAT: &str = "{chat}";
/// Base URL of the agent lane, with its `/v1`: turns of a conversation, with tools.
const AGENT: &str = "{agent}";
/// The same without `/v1`, as Anthropic's clients want it.
const AGENT_ROOT: &str = "{agent_root}";
/// The app's token.
const TOKEN: &str = "{token}";

/// One program.
#[derive(Debug)]
pub struct Client {
    pub name: &'static str,
    /// As its makers write it.
    pub title: &'static str,
    /// What `bursar launch` starts; `None`: a library, or a program with a window. Where neither variables nor arguments
    /// have the address, the program's file has to have its `lines` first.
    pub program: Option<&'static str>,
    /// Names, and values with their `{…}` places.
    variables: &'static [(&'static str, &'static str)],
    /// Put before the caller's own arguments.
    arguments: &'static [&'static str],
    /// What stands in the code, or in a file of the program, instead of or beside the above.
    pub lines: Option<Lines>,
    /// Route that it asks first.
    pub route: &'static str,
    /// What works, and what does not.
    pub works: &'static str,
    pub judged: Judged,
}

/// Lines that a person puts into a file.
#[derive(Debug)]
pub struct Lines {
    /// Language of the code, or the file.
    pub place: &'static str,
    text: &'static str,
}

/// What stands behind a row.
#[derive(Debug, PartialEq, Eq)]
pub enum Judged {
    /// The real package is run by scripts/test-clients.sh: its registry, `npm` or `PyPI`, and its name there.
    Run(&'static str, &'static str),
    /// What stands for a run of it, or why there is none.
    Not(&'static str),
}

/// What the places of a row are filled with.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// Of the proxy, without a path: `http://127.0.0.1:8327`.
    pub root: &'a str,
    pub token: &'a str,
}

const OPENAI_CHAT: &[(&str, &str)] = &[("OPENAI_BASE_URL", CHAT), ("OPENAI_API_KEY", TOKEN)];
const OPENAI_AGENT: &[(&str, &str)] = &[("OPENAI_BASE_URL", AGENT), ("OPENAI_API_KEY", TOKEN)];
/// The older name, which what is built on litellm reads.
const OPENAI_OLD: &[(&str, &str)] = &[("OPENAI_API_BASE", CHAT), ("OPENAI_API_KEY", TOKEN)];

/// All of them, in the order of docs/clients.md.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "codex",
        title: "Codex CLI",
        program: Some("codex"),
        variables: &[("OPENAI_API_KEY", TOKEN)],
        arguments: &[
            "-c",
            "model=\"auto\"",
            "-c",
            "model_provider=\"bursar\"",
            "-c",
            "model_providers.bursar={name=\"bursar\",base_url=\"{agent}\",env_key=\"OPENAI_API_KEY\",wire_api=\"responses\",\
             stream_idle_timeout_ms=900000}",
        ],
        lines: Some(Lines {
            place: "~/.codex/config.toml",
            text: "model = \"auto\"\n\
                   model_provider = \"bursar\"\n\
                   [model_providers.bursar]\n\
                   name = \"bursar\"\n\
                   base_url = \"{agent}\"\n\
                   env_key = \"OPENAI_API_KEY\"\n\
                   wire_api = \"responses\"\n\
                   stream_idle_timeout_ms = 900000",
        }),
        route: "`/agent/v1/responses`",
        works: "Commands, edits and patches. With the model name `auto` it edits through its shell tool; its `apply_patch` \
                tool comes with a name that it knows, such as `\"gpt-5.5\" = \"auto\"` in `[models] aliases`. Its web \
                search is left out",
        judged: Judged::Run("npm", "@openai/codex"),
    },
    Client {
        name: "claude",
        title: "Claude Code",
        program: Some("claude"),
        variables: &[
            ("ANTHROPIC_BASE_URL", AGENT_ROOT),
            ("ANTHROPIC_AUTH_TOKEN", TOKEN),
            // A second credential is refused when it is another one.
            ("ANTHROPIC_API_KEY", ""),
            ("ANTHROPIC_MODEL", "auto"),
            ("ANTHROPIC_DEFAULT_OPUS_MODEL", "auto"),
            ("ANTHROPIC_DEFAULT_SONNET_MODEL", "auto"),
            ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "auto"),
            ("CLAUDE_CODE_SUBAGENT_MODEL", "auto"),
            // The block varies, and the service pins a conversation by its system prompt.
            ("CLAUDE_CODE_ATTRIBUTION_HEADER", "0"),
            // A turn may be silent for longer than six minutes.
            ("API_TIMEOUT_MS", "900000"),
            ("API_FORCE_IDLE_TIMEOUT", "0"),
            // The service's window.
            ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "131072"),
        ],
        arguments: &[],
        lines: None,
        route: "`/agent/v1/messages`",
        works: "Tools in a loop. Token counting is its own estimate; web search and PDF files are not served",
        judged: Judged::Run("npm", "@anthropic-ai/claude-code"),
    },
    Client {
        name: "opencode",
        title: "opencode",
        program: Some("opencode"),
        variables: &[
            ("OPENAI_API_KEY", TOKEN),
            (
                "OPENCODE_CONFIG_CONTENT",
                "{\"model\":\"bursar/auto\",\"small_model\":\"bursar/auto\",\"provider\":{\"bursar\":{\
                 \"npm\":\"@ai-sdk/openai-compatible\",\"name\":\"bursar\",\"options\":{\"baseURL\":\"{agent}\",\
                 \"apiKey\":\"{env:OPENAI_API_KEY}\"},\"models\":{\"auto\":{\"limit\":{\"context\":131072,\
                 \"output\":32000}}}}}}",
            ),
        ],
        arguments: &[],
        lines: None,
        route: "`/agent/v1/chat/completions`",
        works: "Tools in a loop. A title for each conversation is a further call, billed as any",
        judged: Judged::Run("npm", "opencode-ai"),
    },
    Client {
        name: "aider",
        title: "aider",
        program: Some("aider"),
        variables: OPENAI_OLD,
        arguments: &["--model", "openai/auto"],
        lines: None,
        route: "`/v1/chat/completions`",
        works: "Chat and edits. Commit messages and summaries are further calls, billed as any",
        judged: Judged::Run("PyPI", "aider-chat"),
    },
    Client {
        name: "llm",
        title: "llm",
        program: Some("llm"),
        variables: &[("OPENAI_API_KEY", TOKEN)],
        arguments: &[],
        lines: Some(Lines {
            place: "extra-openai-models.yaml in the folder of `llm logs path`",
            text: "- model_id: auto\n  model_name: auto\n  api_base: {chat}\n  api_key_name: openai",
        }),
        route: "`/v1/chat/completions`",
        works: "Prompts and chats: `llm -m auto TEXT`",
        judged: Judged::Run("PyPI", "llm"),
    },
    Client {
        name: "continue",
        title: "Continue (cn)",
        program: Some("cn"),
        variables: &[("OPENAI_API_KEY", TOKEN)],
        arguments: &[],
        lines: Some(Lines {
            place: "~/.continue/config.yaml",
            text: "name: bursar\n\
                   version: 1.0.0\n\
                   schema: v1\n\
                   models:\n\
                   \x20 - name: auto\n\
                   \x20   provider: openai\n\
                   \x20   model: auto\n\
                   \x20   apiBase: {agent}\n\
                   \x20   apiKey: ${{ secrets.OPENAI_API_KEY }}\n\
                   \x20   roles: [chat, edit, apply]",
        }),
        route: "`/agent/v1/chat/completions`",
        works: "Chat and agent. Autocompletion by `/v1/completions` is 404: the service has no such route",
        judged: Judged::Run("npm", "@continuedev/cli"),
    },
    Client {
        name: "openai",
        title: "OpenAI SDK (Python, Node)",
        program: None,
        variables: OPENAI_CHAT,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "OpenAI().chat.completions.create(model=\"auto\", messages=messages)",
        }),
        route: "as called",
        works: "Chat, responses, embeddings, images; also in streams",
        judged: Judged::Not("`make test` (tests/sdk)"),
    },
    Client {
        name: "openai-agents",
        title: "OpenAI Agents SDK",
        program: None,
        variables: &[
            ("OPENAI_BASE_URL", AGENT),
            ("OPENAI_API_KEY", TOKEN),
            ("OPENAI_DEFAULT_MODEL", "auto"),
            // Its traces go to its maker, with the key, whatever the base URL is.
            ("OPENAI_AGENTS_DISABLE_TRACING", "1"),
        ],
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "Agent(name=\"assistant\", tools=[get_weather])",
        }),
        route: "`/agent/v1/responses`",
        works: "Agents with tools. Its hosted tools are not served",
        judged: Judged::Run("PyPI", "openai-agents"),
    },
    Client {
        name: "pydantic-ai",
        title: "Pydantic AI",
        program: None,
        variables: OPENAI_AGENT,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "Agent(\"openai:auto\")",
        }),
        route: "`/agent/v1/responses`",
        works: "Agents with tools; `openai-chat:auto` asks for chat completions",
        judged: Judged::Run("PyPI", "pydantic-ai-slim"),
    },
    Client {
        name: "vercel",
        title: "Vercel AI SDK",
        program: None,
        variables: OPENAI_AGENT,
        arguments: &[],
        lines: Some(Lines {
            place: "TypeScript",
            text: "generateText({ model: openai(\"auto\"), messages })",
        }),
        route: "`/agent/v1/responses`",
        works: "Text, tools, streams, conversations. bursar remembers what the default `store: true` refers to for an \
                hour and not over a restart; `store: false` needs no memory. `openai.chat(\"auto\")` asks for chat \
                completions",
        judged: Judged::Run("npm", "@ai-sdk/openai"),
    },
    Client {
        name: "langchain",
        title: "LangChain",
        program: None,
        variables: OPENAI_CHAT,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "ChatOpenAI(model=\"auto\")",
        }),
        route: "`/v1/chat/completions`",
        works: "Chat, tools, streams",
        judged: Judged::Run("PyPI", "langchain-openai"),
    },
    Client {
        name: "llamaindex",
        title: "LlamaIndex",
        program: None,
        variables: OPENAI_CHAT,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "OpenAILike(model=\"auto\", api_base=os.environ[\"OPENAI_BASE_URL\"], \
                   api_key=os.environ[\"OPENAI_API_KEY\"], is_chat_model=True)",
        }),
        route: "`/v1/chat/completions`",
        works: "Chat and streams. Its `OpenAI` class knows OpenAI's model names alone and sends nothing for `auto`",
        judged: Judged::Run("PyPI", "llama-index-llms-openai-like"),
    },
    Client {
        name: "dspy",
        title: "DSPy",
        program: None,
        variables: OPENAI_OLD,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "dspy.configure(lm=dspy.LM(\"openai/auto\"))",
        }),
        route: "`/v1/chat/completions`",
        works: "Programs. Its own cache answers an equal call without asking",
        judged: Judged::Run("PyPI", "dspy"),
    },
    Client {
        name: "mem0",
        title: "mem0",
        program: None,
        variables: OPENAI_CHAT,
        arguments: &[],
        lines: Some(Lines {
            place: "Python",
            text: "Memory.from_config({\n\
                   \x20   \"llm\": {\"provider\": \"openai\", \"config\": {\"model\": \"auto\"}},\n\
                   \x20   \"embedder\": {\"provider\": \"openai\", \"config\": {\"embedding_dims\": 256}},\n\
                   \x20   \"vector_store\": {\"provider\": \"qdrant\", \"config\": {\"embedding_model_dims\": 256, \
                   \"path\": \"memories\"}},\n\
                   })",
        }),
        route: "`/v1/chat/completions`, `/v1/embeddings`",
        works: "Memories, with the length of the service's vectors in both places (256: the sandbox's)",
        judged: Judged::Run("PyPI", "mem0ai"),
    },
    Client {
        name: "open-webui",
        title: "Open WebUI",
        program: None,
        variables: &[("OPENAI_API_BASE_URLS", CHAT), ("OPENAI_API_KEYS", TOKEN)],
        arguments: &[],
        lines: None,
        route: "`/v1/chat/completions`",
        works: "Chat, from its server. Titles, tags and follow-ups are further calls, billed as any",
        judged: Judged::Not("not run, by its documentation: too large a package"),
    },
    Client {
        name: "n8n",
        title: "n8n",
        program: None,
        variables: &[],
        arguments: &[],
        lines: Some(Lines {
            place: "the credential “OpenAI”: Base URL, API Key",
            text: "{agent}",
        }),
        route: "`/agent/v1/responses`",
        works: "Chat and agents, with or without “Use Responses API”",
        judged: Judged::Not("not run, by its documentation: too large a package"),
    },
    Client {
        name: "zed",
        title: "Zed",
        program: None,
        variables: &[("LOCAL_BURSAR_API_KEY", TOKEN)],
        arguments: &[],
        lines: Some(Lines {
            place: "settings.json",
            text: "{\"language_models\": {\"openai_compatible\": {\"local_bursar\": {\"api_url\": \"{agent}\", \
                   \"available_models\": [{\"name\": \"auto\", \"max_tokens\": 131072, \
                   \"capabilities\": {\"tools\": true, \"images\": true, \"parallel_tool_calls\": true, \
                   \"prompt_cache_key\": false, \"chat_completions\": true}}]}}}}",
        }),
        route: "`/agent/v1/chat/completions`",
        works: "The agent panel and inline edits",
        judged: Judged::Not("not run, by its documentation: a program with a window"),
    },
    Client {
        name: "cursor",
        title: "Cursor",
        program: None,
        variables: &[],
        arguments: &[],
        lines: None,
        route: "its makers' servers",
        works: "Nothing: the call comes from Cursor's own servers, which do not reach this machine",
        judged: Judged::Not("not run: a program with a window"),
    },
];

/// The row of this name; an error of usage lists all of them.
pub fn known_client(name: &str) -> Result<&'static Client, CliError> {
    let client = CLIENTS.iter().find(|client| client.name == name);
    client.ok_or_else(|| {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        CliError::usage(format_args!(
            "no client is known by the name {name}; known are {}. For any other: `bursar env` and `bursar exec`",
            names.join(", ")
        ))
    })
}

// === impl Client ===

impl Client {
    /// What its environment gets.
    pub fn environment(&self, filling: Filling<'_>) -> Vec<(&'static str, String)> {
        let variables = self.variables.iter();
        variables
            .map(|(name, value)| (*name, filling.fill(value)))
            .collect()
    }

    /// The same where the token is still to come: `None` stands for it.
    pub fn settings(&self, root: &str) -> Vec<(&'static str, Option<String>)> {
        let variables = self.variables.iter();
        variables
            .map(|(name, value)| match *value {
                TOKEN => (*name, None),
                value => (*name, Some(Filling { root, token: "" }.fill(value))),
            })
            .collect()
    }

    /// What is put before the caller's own arguments. No token is in them.
    pub fn arguments(&self, root: &str) -> Vec<String> {
        let filling = Filling { root, token: TOKEN };
        let arguments = self.arguments.iter();
        arguments.map(|value| filling.fill(value)).collect()
    }

    /// What a shell runs: an `export` a variable, and a function where there are arguments. `token` is a shell word,
    /// or `None`: there is none to name.
    pub fn shell(&self, root: &str, token: Option<&str>) -> String {
        let mut lines = Vec::new();
        for (name, value) in self.settings(root) {
            match (value, token) {
                (None, None) => {}
                (None, Some(word)) => lines.push(format!("export {name}={word}")),
                (Some(value), _) => lines.push(format!("export {name}={}", word(&value))),
            }
        }
        if let (Some(program), [_, ..]) = (self.program, self.arguments) {
            let arguments = self.arguments(root);
            let words: Vec<String> = arguments.iter().map(|argument| word(argument)).collect();
            let words = words.join(" ");
            lines.push(format!(
                "{program}() {{ command {program} {words} \"$@\"; }}"
            ));
        }
        if let Some(its) = &self.lines {
            lines.push(format!("# {}:", its.place));
            let text = its.filled(root);
            lines.extend(text.lines().map(|line| format!("#   {line}")));
        }
        lines.join("\n")
    }
}

// === impl Lines ===

impl Lines {
    /// As they stand in the file.
    pub fn filled(&self, root: &str) -> String {
        Filling { root, token: TOKEN }.fill(self.text)
    }
}

// === impl Filling ===

impl Filling<'_> {
    fn fill(self, value: &str) -> String {
        let root = self.root;
        value
            .replace(AGENT_ROOT, &format!("{root}/agent"))
            .replace(AGENT, &format!("{root}/agent/v1"))
            .replace(CHAT, &format!("{root}/v1"))
            .replace(TOKEN, self.token)
    }
}

/// One word of a shell.
pub fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests;
