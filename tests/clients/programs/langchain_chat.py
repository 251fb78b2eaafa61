"""LangChain: a call, a tool call and a stream."""

from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="auto")
tool = {
    "name": "get_weather",
    "description": "Current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
answer = llm.bind_tools([tool]).invoke("What is the weather in Paris?")
assert answer.tool_calls[0]["name"] == "get_weather", answer
assert answer.usage_metadata["input_tokens"] > 0, answer
words = "".join(chunk.text for chunk in llm.stream("Say something."))
assert words
print(llm.invoke("What is 2 + 3?").text)
