"""An agent of the Agents SDK with a tool: two turns of `/agent/v1/responses`."""

from agents import Agent, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Current weather of a city."""
    return f"sunny in {city}"


agent = Agent(name="assistant", tools=[get_weather])
result = Runner.run_sync(agent, "What is the weather in Paris?")
calls = [item.raw_item.arguments for item in result.new_items if item.type == "tool_call_item"]
outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
assert calls == ['{"city":"Paris"}'], calls
assert outputs == ["sunny in Paris"], outputs
print(result.final_output)
