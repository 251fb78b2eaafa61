"""Programs that write code: each is told by the sandbox which tools to use, and uses them.

Promise: what stands in docs/clients.md is enough; every turn is billed once, also when the connection is cut. What a
program asks behind a part that it has whole may be the next turn: then the rest of the turn that was cut is lost.
"""

import json

import pytest
from conftest import call, text

PATCH = "*** Begin Patch\n*** Add File: note.txt\n+hello from codex\n*** End Patch\n"
# More than a socket holds: what is cut off is known not to have been delivered. A short answer that was written whole
# counts as delivered, whatever its reader did with it.
LONG = "all work and no play " * 20_000
CODEX = "codex exec --skip-git-repo-check --sandbox workspace-write"
WRITES = "--allowedTools Write,Bash --permission-mode acceptEdits"


def sessions(place):
    """The conversations that the entries belong to, each once."""
    found = {json.dumps(entry["session"]) for entry in place.entries()}
    assert "null" not in found
    return found


def note(place):
    return (place.work / "note.txt").read_text()


def test_codex_edits_a_file_through_its_shell_and_each_turn_is_billed_once(place):
    place.story(call("exec_command", cmd="echo hello >note.txt"), text("The note is written."))

    said = place.with_lines("codex", f"{CODEX} 'write a note'")

    assert note(place) == "hello\n"
    assert "The note is written." in said
    assert len(place.debits()) == 2
    assert len(sessions(place)) == 1


class TestWithAnAlias:
    @pytest.fixture
    def config(self):
        return '[models]\naliases = { "gpt-5.5" = "auto" }\n'

    def test_codex_applies_a_patch_and_launch_prints_what_it_cost(self, place):
        place.story(call("apply_patch", input=PATCH), text("The note is written."))

        said = place.run(
            "bursar launch codex --app laptop --max-usd 1 -- "
            f"{CODEX.removeprefix('codex ')} -m gpt-5.5 'write a note'"
        )

        assert note(place) == "hello from codex\n", said
        assert "requests                2" in said
        assert len(place.debits()) == 2


# Every boundary of a turn that says something and then calls a tool, and one in the middle of its text: as long as no
# part of it is whole, and behind the text.
BEFORE_THE_MESSAGE_IS_WHOLE = [
    "created",
    "in_progress",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.delta#200",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]
BEFORE_THE_CALL_IS_WHOLE = [
    "output_item.added#2",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done#2",
]
# The same of a turn of two calls, the second of which is long, so that the first one's end is not the answer's.
BEFORE_THE_FIRST_IS_WHOLE = ["created", "in_progress", "output_item.added", "{}.delta", "{}.done", "output_item.done"]
BEHIND_THE_FIRST = ["output_item.added#2", "completed"]
# It is longer than a command may be, and fails.
FAILS = call("exec_command", cmd=f"true # {LONG}")


def both(first, second):
    """Two calls of one answer."""
    return {"tool_calls": first["tool_calls"] + second["tool_calls"]}


def written(place):
    """How often the command ran that writes a line of the note."""
    file = place.work / "note.txt"
    return file.read_text().count("hello\n") if file.exists() else 0


def no_call_is_run_that_was_not_bought(place, has_the_call):
    """Behind a cut that leaves a part of a turn whole. A repeat of the same words is known again, and brings the call.
    What names that part is the next turn: nothing brings a call that was not whole, unless it is bought again."""
    if place.repeats():
        assert written(place) == 1
    elif has_the_call:
        assert written(place) <= 1
    else:
        assert written(place) == 0


def codex_writes(place, event):
    """A turn of a text and a call, which is cut before this event."""
    told = {**call("exec_command", cmd="echo hello >>note.txt"), **text(LONG)}
    place.story(told, text("The note is written."))

    place.with_lines("codex", f"{CODEX} 'write a note'", cut=f"response.{event}")

    assert place.cuts() == 1


@pytest.mark.parametrize("event", BEFORE_THE_MESSAGE_IS_WHOLE)
def test_codex_is_billed_once_for_a_turn_that_is_cut_before_a_part_of_it_is_whole(place, event):
    codex_writes(place, event)

    assert len(place.debits()) == place.different_requests() == 2
    assert written(place) == 1
    assert place.repeats() >= 1


@pytest.mark.parametrize("event", [*BEFORE_THE_CALL_IS_WHOLE, "completed"])
def test_codex_goes_on_from_a_message_that_it_has_whole_and_buys_no_request_twice(place, event):
    codex_writes(place, event)

    assert len(place.debits()) == place.different_requests() == 2
    no_call_is_run_that_was_not_bought(place, event == "completed")


def codex_calls_twice(place, boundary):
    """A turn of two calls, which is cut there."""
    event = boundary.format("function_call_arguments")
    place.story(both(call("exec_command", cmd="echo hello >>note.txt"), FAILS), text("The note is written."))

    place.with_lines("codex", f"{CODEX} 'write a note'", cut=f"response.{event}")

    assert place.cuts() == 1


@pytest.mark.parametrize("boundary", BEFORE_THE_FIRST_IS_WHOLE)
def test_codex_is_billed_once_for_calls_that_are_cut_before_one_is_whole(place, boundary):
    codex_calls_twice(place, boundary)

    assert len(place.debits()) == place.different_requests() == 2
    assert written(place) == 1
    assert place.repeats() >= 1


# Of a call that it has whole it may say what came of it: then that is the next turn.
@pytest.mark.parametrize("boundary", BEHIND_THE_FIRST)
def test_codex_runs_a_call_that_it_has_whole_once_and_buys_no_request_twice(place, boundary):
    codex_calls_twice(place, boundary)

    assert len(place.debits()) == place.different_requests() == 2
    assert written(place) == 1


class TestAPatchThatIsCut:
    @pytest.fixture
    def config(self):
        return '[streams]\nagent_receipts = "exact"\n[models]\naliases = { "gpt-5.5" = "auto" }\n'

    @pytest.mark.parametrize("boundary", [*BEFORE_THE_FIRST_IS_WHOLE, *BEHIND_THE_FIRST])
    def test_codex_applies_it_once_and_buys_no_request_twice(self, place, boundary):
        event = boundary.format("custom_tool_call_input")
        patch = "*** Begin Patch\n*** Add File: note.txt\n+hello\n*** End Patch\n"
        place.story(both(call("apply_patch", input=patch), FAILS), text("The note is written."))

        place.with_lines("codex", f"{CODEX} -m gpt-5.5 'write a note'", cut=f"response.{event}")

        assert place.cuts() == 1
        assert len(place.debits()) == place.different_requests() == 2
        assert written(place) == 1
        if boundary in BEFORE_THE_FIRST_IS_WHOLE:
            assert place.repeats() >= 1


def test_claude_runs_a_loop_of_tools_and_each_turn_is_billed_once(place):
    place.story(
        call("Write", file_path=str(place.work / "note.txt"), content="hello\n"),
        call("Bash", command="cat note.txt note.txt >twice.txt", description="copies"),
        text("Both are written."),
    )

    said = place.with_lines(
        "claude", f"claude -p 'write a note, twice' {WRITES}"
    )

    assert "Both are written." in said
    assert (place.work / "twice.txt").read_text() == "hello\nhello\n"
    assert len(place.debits()) == 3
    assert len(sessions(place)) == 1


@pytest.mark.parametrize(
    "event", ["message_start", "content_block_start", "content_block_delta", "content_block_delta#200"]
)
def test_claude_is_billed_once_for_a_turn_that_is_cut_and_asked_for_again(place, event):
    place.story(text(LONG + "The answer."))

    said = place.with_lines("claude", "claude -p 'a question'", cut=event)

    assert place.cuts() == 1
    assert "The answer." in said
    assert len(place.debits()) == 1
    # Behind the text so few bytes come that a cut there finds the answer written whole, which counts as delivered:
    # docs/clients.md.
    assert place.repeats() >= 1
    # This version asks again for a stream. Earlier ones asked for a document: tests/it/dialects/repeats.rs.
    assert len(place.asked("/agent/v1/messages?beta=true")) >= 2


def claude_writes(place, event):
    """A turn of a text and a call, which is cut before this event."""
    file = place.work / "note.txt"
    told = {**text("I write it."), **call("Write", file_path=str(file), content=f"hello\n{LONG}")}
    place.story(told, text("The note is written."))

    said = place.with_lines("claude", f"claude -p 'write a note' {WRITES}", cut=event)

    assert place.cuts() == 1
    assert "The note is written." in said


@pytest.mark.parametrize("event", ["message_start", "content_block_start", "content_block_delta", "content_block_stop"])
def test_claude_is_billed_once_for_a_turn_that_is_cut_before_its_text_is_whole(place, event):
    claude_writes(place, event)

    assert len(place.debits()) == place.different_requests() == 2
    assert written(place) == 1
    assert place.repeats() >= 1


BEFORE_THE_INPUT_IS_WHOLE = ["content_block_start#2", "content_block_delta#2", "content_block_delta#200"]


@pytest.mark.parametrize("event", [*BEFORE_THE_INPUT_IS_WHOLE, "content_block_stop#2", "message_delta", "message_stop"])
def test_claude_goes_on_from_a_text_that_it_has_whole_and_buys_no_request_twice(place, event):
    claude_writes(place, event)

    assert len(place.debits()) == place.different_requests() == 2
    no_call_is_run_that_was_not_bought(place, event not in BEFORE_THE_INPUT_IS_WHOLE)


def test_launch_of_claude_prints_what_it_cost(place):
    place.story(text("The answer."))

    said = place.run("bursar launch claude --app laptop -- -p question")

    assert "The answer." in said and "requests                1" in said


def test_launch_of_opencode_prints_what_it_cost(place):
    place.story(text("The answer."))

    said = place.run("bursar launch opencode --app laptop -- run 'a question'")

    assert "The answer." in said and "requests                " in said


def test_launch_of_aider_prints_what_it_cost(place):
    place.rule({}, text("The answer."))

    said = place.run(
        "bursar launch aider --app laptop -- "
        "--no-git --yes-always --no-show-model-warnings --chat-mode ask --message 'a question'"
    )

    assert "The answer." in said and "requests                1" in said


def test_launch_of_llm_prints_what_it_cost(place):
    _, lines = place.lines("llm")
    place.story(text("The answer."))

    said = place.run(
        'file="$(dirname "$(llm logs path)")/extra-openai-models.yaml"\nmkdir -p "$(dirname "$file")"\n'
        f"cat >\"$file\" <<'END'\n{lines}\nEND\n"
        "bursar launch llm --app laptop -- -m auto 'a question'"
    )

    assert "The answer." in said and "requests                1" in said


def test_launch_of_continue_prints_what_it_cost(place):
    _, lines = place.lines("continue")
    folder = place.home / ".continue"
    folder.mkdir()
    (folder / "config.yaml").write_text(lines)
    place.story(text("The answer."))

    said = place.run("bursar launch continue --app laptop -- --config ~/.continue/config.yaml -p 'a question'")

    assert "The answer." in said and "requests                1" in said


def test_opencode_edits_a_file(place):
    place.rule({"turn": 1, "body_contains": '"write"'}, call("write", filePath=str(place.work / "note.txt"), content="hello\n"))
    place.rule({"turn": 2}, text("The note is written."))

    said = place.with_lines("opencode", "opencode run 'write a note'")

    assert note(place) == "hello\n", said
    assert "The note is written." in said
    assert len(place.debits()) == place.different_requests() >= 2


def test_aider_edits_a_file(place):
    answer = "note.txt\n```\n<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE\n```\n"
    place.rule({}, text(answer))

    said = place.with_lines(
        "aider",
        "aider --no-git --yes-always --no-show-model-warnings --edit-format diff --message 'write a note' note.txt",
    )

    assert note(place) == "hello\n", said
    assert len(place.debits()) == place.different_requests() >= 1


def test_continue_answers(place):
    _, lines = place.lines("continue")
    folder = place.home / ".continue"
    folder.mkdir()
    (folder / "config.yaml").write_text(lines)
    place.story(text("The answer."))

    said = place.with_lines("continue", "cn --config ~/.continue/config.yaml -p 'a question'")

    assert "The answer." in said
    assert len(place.debits()) == 1
