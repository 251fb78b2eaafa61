"""The programs that ask again by themselves, each with a connection that is cut, and with two.

Promise: a request whose connection is cut while it waits for its answer, or inside of an answer that is given whole, is
sent again by the program without a word to its user, and bursar knows it again: as many purchases as without the cut.
"""

import pytest
from conftest import CACHE, call, text
from test_agents import CODEX, LONG

WEATHER = call("get_weather", city="Paris")
# So long that the request waits when its connection is cut.
WAITS = {"delay_ms": 2_500}
LLAMAINDEX = CACHE / "clients-llamaindex/bin/python"


def codex(place, last, **more):
    place.story(text(last), **WAITS)
    return place.with_lines("codex", f"{CODEX} 'a question'", **more), 1


def claude(place, last, **more):
    place.story(text(last), **WAITS)
    return place.with_lines("claude", "claude -p 'a question'", **more), 1


def agents(place, last, **more):
    place.story(WEATHER, text(last), **WAITS)
    return place.python("openai-agents", "openai_agents.py", **more), 2


def pydantic_ai(place, last, **more):
    place.story(WEATHER, text(last), **WAITS)
    return place.python("pydantic-ai", "pydantic_ai_agent.py", **more), 2


def vercel(place, last, **more):
    place.rule({"turn": 1, "body_contains": '"get_weather"'}, WEATHER, **WAITS)
    place.rule({"turn": 2, "body_contains": '"get_weather"'}, text(last), **WAITS)
    place.rule({}, text("Seven."), **WAITS)
    return place.python("vercel", "vercel.mjs", "node", **more), 5


def langchain(place, last, **more):
    place.rule({"body_contains": '"get_weather"'}, WEATHER, **WAITS)
    place.rule({}, text(last), **WAITS)
    return place.python("langchain", "langchain_chat.py", **more), 3


def llamaindex(place, last, **more):
    place.rule({}, text(last), **WAITS)
    return place.python("llamaindex", "llamaindex_chat.py", LLAMAINDEX, **more), 2


def dspy(place, last, **more):
    place.rule({}, text(f"[[ ## answer ## ]]\n{last}\n\n[[ ## completed ## ]]"), **WAITS)
    return place.python("dspy", "dspy_program.py", **more), 1


def opencode(place, last, cut):
    place.story(text(last), **WAITS)
    # It asks for a title at the same time, without tools, and does not ask for that again.
    where, _, times = cut.partition("*")
    return place.with_lines("opencode", "opencode run 'a question'", cut=f'{where}:"tools"*{times}'), 2


def aider(place, last, **more):
    # Its prompt has turns that it makes up as examples.
    place.rule({}, text(last), **WAITS)
    asked = "aider --no-git --yes-always --no-show-model-warnings --chat-mode ask --message 'a question'"
    return place.with_lines("aider", asked, **more), 1


def continue_(place, last, **more):
    _, lines = place.lines("continue")
    (place.home / ".continue").mkdir()
    (place.home / ".continue/config.yaml").write_text(lines)
    place.story(text(last), **WAITS)
    return place.with_lines("continue", "cn --config ~/.continue/config.yaml -p 'a question'", **more), 1


def llm(place, last, **more):
    _, lines = place.lines("llm")
    place.story(text(last), **WAITS)
    script = (
        'file="$(dirname "$(llm logs path)")/extra-openai-models.yaml"\nmkdir -p "$(dirname "$file")"\n'
        f"cat >\"$file\" <<'END'\n{lines}\nEND\nllm -m auto 'a question'"
    )
    return place.with_lines("llm", script, **more), 1


PROGRAMS = [codex, claude, agents, pydantic_ai, vercel, langchain, llamaindex, dspy, opencode, aider, continue_, llm]
# Of a stream a part counts as delivered, and the Vercel SDK gives up an answer that it has in part.
READ_WHOLE = [agents, pydantic_ai, langchain, llamaindex, dspy]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_request_that_is_cut_while_it_waits_is_one_purchase(place, program, times):
    said, purchases = program(place, "The answer.", cut=f"waiting*{times}")

    assert place.cuts() == times
    assert "The answer." in said
    assert place.repeats() >= 1
    assert len(place.debits()) == purchases


@pytest.mark.parametrize("program", READ_WHOLE)
def test_a_whole_answer_that_is_cut_is_one_purchase(place, program):
    said, purchases = program(place, f"{LONG}The answer.", cut="answer")

    assert place.cuts() == 1
    assert "The answer." in said
    assert place.repeats() >= 1
    assert len(place.debits()) == purchases


def test_mem0_is_billed_once_for_what_it_asks_again(place):
    place.rule({"path": "/v1/embeddings"}, **WAITS)
    assert "river" in place.python("mem0", "mem0_memory.py", cut="waiting")
    assert place.cuts() == 1
    assert place.repeats() >= 1
    assert len(place.debits()) == 4
