"""Programs that write code: each is told by the sandbox which tools to use, and uses them.

Promise: what stands in docs/clients.md is enough; every turn is billed once, also when the connection is cut.
"""

import pytest
from conftest import call, text

PATCH = "*** Begin Patch\n*** Add File: note.txt\n+hello from codex\n*** End Patch\n"
# More than a socket holds: what is cut off is known not to have been delivered. A short answer that was written whole
# counts as delivered, whatever its reader did with it.
LONG = "all work and no play " * 20_000
CODEX = "codex exec --skip-git-repo-check --sandbox workspace-write"


def note(place):
    return (place.work / "note.txt").read_text()


def test_codex_edits_a_file_through_its_shell_and_each_turn_is_billed_once(place):
    place.story(call("exec_command", cmd="echo hello >note.txt"), text("The note is written."))

    said = place.with_lines("codex", f"{CODEX} 'write a note'")

    assert note(place) == "hello\n"
    assert "The note is written." in said
    assert len(place.debits()) == 2


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


@pytest.mark.parametrize(
    "event",
    [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "completed",
    ],
)
def test_codex_is_billed_once_for_a_turn_that_is_cut_before_any_event(place, event):
    told = {**call("exec_command", cmd="echo hello >>note.txt"), **text(LONG)}
    place.story(told, text("The note is written."))

    place.with_lines("codex", f"{CODEX} 'write a note'", cut=f"response.{event}")

    assert place.was_cut()
    assert len(place.debits()) == 2
    # Of a message that Codex has whole it may say in its repeat that it was said: then that is the next turn, and the
    # sandbox has told its end.
    if not event.startswith("function_call"):
        assert note(place) == "hello\n"


def test_claude_runs_a_loop_of_tools_and_each_turn_is_billed_once(place):
    place.story(
        call("Write", file_path=str(place.work / "note.txt"), content="hello\n"),
        call("Bash", command="cat note.txt note.txt >twice.txt", description="copies"),
        text("Both are written."),
    )

    said = place.with_lines(
        "claude", "claude -p 'write a note, twice' --allowedTools Write,Bash --permission-mode acceptEdits"
    )

    assert "Both are written." in said
    assert (place.work / "twice.txt").read_text() == "hello\nhello\n"
    assert len(place.debits()) == 3


@pytest.mark.parametrize("event", ["message_start", "content_block_start", "content_block_delta"])
def test_claude_is_billed_once_for_a_turn_that_is_cut(place, event):
    place.story(text(LONG + "The answer."))

    said = place.with_lines("claude", "claude -p 'a question'", cut=event)

    assert place.was_cut()
    assert "The answer." in said
    assert len(place.debits()) == 1


def test_launch_of_claude_prints_what_it_cost(place):
    place.story(text("The answer."))

    said = place.run("bursar launch claude --app laptop -- -p question")

    assert "The answer." in said and "requests                1" in said


def test_opencode_edits_a_file(place):
    place.rule({"turn": 1, "body_contains": '"write"'}, call("write", filePath=str(place.work / "note.txt"), content="hello\n"))
    place.rule({"turn": 2}, text("The note is written."))

    said = place.with_lines("opencode", "opencode run 'write a note'")

    assert note(place) == "hello\n", said
    assert "The note is written." in said


def test_aider_edits_a_file(place):
    answer = "note.txt\n```\n<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE\n```\n"
    place.rule({}, text(answer))

    said = place.with_lines(
        "aider",
        "aider --no-git --yes-always --no-show-model-warnings --edit-format diff --message 'write a note' note.txt",
    )

    assert note(place) == "hello\n", said


def test_continue_answers(place):
    _, lines = place.lines("continue")
    folder = place.home / ".continue"
    folder.mkdir()
    (folder / "config.yaml").write_text(lines)
    place.story(text("The answer."))

    said = place.with_lines("continue", "cn --config ~/.continue/config.yaml -p 'a question'")

    assert "The answer." in said
