"""LlamaIndex: a call and a stream of `OpenAILike`."""

import os

from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(
    model="auto", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"], is_chat_model=True
)
assert "".join(part.delta or "" for part in llm.stream_complete("Say something."))
print(llm.complete("What is 2 + 3?").text)
