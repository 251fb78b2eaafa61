"""Libraries and small programs, each with the lines of docs/clients.md.

Promise: a conversation, a tool and a stream work as the library's own documentation shows them.
"""

import pytest
from conftest import CACHE, HERE, call, text

WEATHER = call("get_weather", city="Paris")


def test_the_agents_sdk_runs_an_agent_with_a_tool(place):
    place.story(WEATHER, text("Sunny."))

    assert "Sunny." in place.python("openai-agents", "openai_agents.py")
    assert len(place.debits()) == 2


def test_pydantic_ai_runs_an_agent_with_a_tool(place):
    place.story(WEATHER, text("Sunny."))

    assert "Sunny." in place.python("pydantic-ai", "pydantic_ai_agent.py")
    assert len(place.debits()) == 2


def test_the_vercel_sdk_holds_a_conversation_with_its_default_store(place):
    place.rule({"turn": 1, "body_contains": '"get_weather"'}, WEATHER)
    place.rule({"turn": 2, "body_contains": '"get_weather"'}, text("Sunny."))

    assert "Sunny." in place.python("vercel", "vercel.mjs", "node")
    assert len(place.debits()) == 5
    first, second, *_ = place.asked("/agent/v1/responses")
    assert '"item_reference"' not in first
    assert '"item_reference"' in second


def test_langchain_answers_calls_and_streams(place):
    place.rule({"body_contains": '"get_weather"'}, WEATHER)
    place.rule({}, text("5"))

    place.python("langchain", "langchain_chat.py")

    assert place.last_line() == "5"
    assert len(place.debits()) == 3


def test_llamaindex_answers_and_streams(place):
    place.rule({}, text("5"))

    place.python("llamaindex", "llamaindex_chat.py", CACHE / "clients-llamaindex/bin/python")

    assert place.last_line() == "5"
    assert len(place.debits()) == 2


def test_dspy_runs_a_program(place):
    place.rule({}, text("[[ ## answer ## ]]\n5\n\n[[ ## completed ## ]]"))

    place.python("dspy", "dspy_program.py")

    assert place.last_line() == "5"
    assert len(place.debits()) == 1


def test_mem0_remembers(place):
    assert "river" in place.python("mem0", "mem0_memory.py")
    assert len(place.debits()) == 4


def test_llm_answers(place):
    place.story(text("The answer."))
    _, lines = place.lines("llm")
    shell, _ = place.lines("llm")

    said = place.run(
        f"{shell}\nmkdir -p \"$(dirname \"$(llm logs path)\")\"\n"
        f"cat >\"$(dirname \"$(llm logs path)\")/extra-openai-models.yaml\" <<'END'\n{lines}\nEND\n"
        "llm -m auto 'a question'"
    )

    assert "The answer." in said
    assert len(place.debits()) == 1


@pytest.mark.parametrize("program", sorted(path.name for path in (HERE / "programs").iterdir() if path.is_file()))
def test_every_program_is_run_by_a_test(program):
    assert f'"{program}"' in (HERE / "test_libraries.py").read_text()
