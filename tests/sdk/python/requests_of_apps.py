"""What the apps of these tests ask for."""

# An app behind bursar needs no key; the SDK insists on some text.
NO_KEY = "unused"

CHAT = "/v1/chat/completions"
AGENT_CHAT = "/agent/v1/chat/completions"
PROMPT = [{"role": "user", "content": "Name three rivers of Europe."}]

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
