"""An agent of Pydantic AI with a tool: two turns of `/agent/v1/responses`."""

from pydantic_ai import Agent

agent = Agent("openai:auto")
asked = []


@agent.tool_plain
def get_weather(city: str) -> str:
    """Current weather of a city."""
    asked.append(city)
    return f"sunny in {city}"


result = agent.run_sync("What is the weather in Paris?")
assert asked == ["Paris"], asked
assert result.usage.input_tokens > 0
print(result.output)
