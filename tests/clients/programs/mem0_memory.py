"""mem0: a memory is made of what was said, and found again. It asks chat and embeddings."""

from mem0 import Memory

memory = Memory.from_config({
    "llm": {"provider": "openai", "config": {"model": "auto"}},
    "embedder": {"provider": "openai", "config": {"embedding_dims": 256}},
    "vector_store": {"provider": "qdrant", "config": {"embedding_model_dims": 256, "path": "memories"}},
})
added = memory.add("I like the river in winter.", user_id="ada", infer=False)
assert added["results"], added
found = memory.search("Who likes the river in winter?", filters={"user_id": "ada"}, threshold=0.0)
print(found["results"][0]["memory"])
memory.add("I moved to Lisbon.", user_id="ada")
