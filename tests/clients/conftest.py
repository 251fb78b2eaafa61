"""A sandbox, a bursar and a network of its own for each test, and the comparison with the books when it is over.

Promise: a program gets the lines that `bursar env` prints and nothing else that would lead it here; it has a home of its
own, and 120 s; when it ended, what bursar's ledger says was billed is what the sandbox's books say, to the micro-dollar.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from harness import BURSAR, ENVIRONMENT, Door, Program, Sandbox, eventually, http

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache"
PYTHON = sys.executable
PROGRAM_S = 120
# Where the packages of tests/clients are, and the system's own programs.
PATHS = [
    # The programs themselves; what stands in .bin for these two is made by an install script.
    HERE / "node_modules/@anthropic-ai/claude-code-linux-x64",
    HERE / "node_modules/opencode-linux-x64/bin",
    HERE / "node_modules/.bin",
    Path(PYTHON).parent,
    CACHE / "clients-aider/bin",
    Path(BURSAR).parent,
    CACHE / "tools/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
]
# No telemetry, no look for updates: they would only wait for a network that is not there.
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "AIDER_ANALYTICS_DISABLE": "1",
    "AIDER_CHECK_UPDATE": "false",
    "CONTINUE_TELEMETRY_ENABLED": "0",
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "LC_ALL": "C.UTF-8",
}


class Place(Door):
    """bursar at a port and at a socket, with an app `laptop`, and programs that spend as it."""

    def start(self, listen):
        self.socket = self.folder / "bursar.sock"
        self.program = Program(
            "bursar", self.folder, "run", "--config", self.config_file, "--upstream", self.sandbox.url,
            "--api-key-file", self.key_file, "--listen", listen, "--listen", f"unix:{self.socket}",
            "--admin", "127.0.0.1:0", "--state-dir", self.state,
        )  # fmt: skip
        self.url = self.program.address("proxy")
        self.admin = self.program.address("admin")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.home = self.folder / "home"
        self.work = self.folder / "work"
        for folder in (self.home, self.work, self.home / ".codex"):
            folder.mkdir()
        # What `QUIET` is for the others, Codex reads from a file alone.
        quiet = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n"
        (self.home / ".codex/config.toml").write_text(quiet)
        self.token = self.folder / "token"
        self.token.write_text(json.loads(self.ask("app", "add", "laptop"))["token"])
        self.token.chmod(0o600)

    def lines(self, client):
        """What `bursar env` prints for a client: its lines for a shell, and those for a file or for code."""
        done = subprocess.run(
            [BURSAR, "env", client, "--token-file", self.token, "--state-dir", self.state],
            capture_output=True, text=True, timeout=30, env=ENVIRONMENT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shell = [line for line in done.stdout.splitlines() if not line.startswith("#")]
        further = [line.removeprefix("#   ") for line in done.stdout.splitlines() if line.startswith("#   ")]
        return "\n".join(shell), "\n".join(further)

    def run(self, script, cut="-", environment=None):
        """Runs a shell's script in the network of its own; its output, when it succeeded."""
        command = [
            "unshare", "--net", PYTHON, HERE / "door.py", self.socket, str(self.port), cut, "--",
            "timeout", "--kill-after=5", str(PROGRAM_S), "bash", "-eu", "-c", script,
        ]  # fmt: skip
        known = {
            "HOME": str(self.home),
            "PATH": ":".join(map(str, PATHS)),
            "TMPDIR": str(self.folder),
            "BURSAR_STATE_DIR": str(self.state),
        }
        done = subprocess.run(
            command, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=known | QUIET | (environment or {}), timeout=PROGRAM_S + 30,
        )  # fmt: skip
        self.printed = done.stdout
        said = f"exit {done.returncode}\n--- stdout\n{done.stdout[-4000:]}\n--- stderr\n{done.stderr[-4000:]}"
        assert done.returncode == 0, f"{said}\n{self.program.said()}\n{self.log()}"
        return done.stdout + done.stderr

    def with_lines(self, client, script, **more):
        """The script in a shell into which the lines of `bursar env` were pasted."""
        shell, _ = self.lines(client)
        return self.run(f"{shell}\n{script}", **more)

    def last_line(self):
        """The last line that the last program wrote to its standard output."""
        lines = [line.strip() for line in self.printed.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def asked(self, path):
        """The requests of this path in their order, each from behind the path on. For programs that ask one by one."""
        said = self.socket.with_name(self.socket.name + ".said").read_bytes().decode(errors="replace")
        return said.split(f"POST {path} ")[1:]

    def cuts(self):
        """How many connections of the last run were cut."""
        made = self.socket.with_name(self.socket.name + ".cut")
        count = len(made.read_text()) if made.exists() else 0
        made.unlink(missing_ok=True)
        return count

    def repeats(self):
        """Retries that were given the answer of their first try, or took its key over."""
        return self.metric("bursar_joined_retries_total") + self.metric("bursar_adopted_retries_total")

    def different_requests(self):
        """How many different requests reached the service. Where there are more purchases, one was bought twice."""
        answered = [one for one in self.sandbox.log() if one["method"] == "POST" and one["status"] == 200]
        return len({one["body_sha256"] for one in answered})

    def python(self, client, program, interpreter=PYTHON, **more):
        """A program of programs/, whose code has the line that `bursar env` prints."""
        file = HERE / "programs" / program
        _, code = self.lines(client)
        text = re.sub(r"\s", "", file.read_text())
        assert re.sub(r"\s", "", code) in text, f"{program} has not the line of `bursar env {client}`: {code}"
        return self.with_lines(client, f"{shlex.quote(str(interpreter))} {shlex.quote(str(file))}", **more)

    def story(self, *answers, **fault):
        """The sandbox answers the n-th turn of every conversation with the n-th of these."""
        for turn, answer in enumerate(answers, 1):
            self.rule({"turn": turn}, answer, **fault)

    def rule(self, match, answer=None, times=0, **fault):
        told = {"answer": answer} if answer else {}
        rule = {"match": match, "times": times, "fault": told | fault}
        http("POST", f"{self.sandbox.url}/sandbox/faults", rule)

    def log(self):
        """What the sandbox received, for a failure."""
        lines = [
            f"{one.get('method')} {one.get('path')} {one.get('status')} {one.get('fault') or ''}"[:200]
            for one in self.sandbox.log()[-20:]
        ]
        return "--- sandbox\n" + "\n".join(lines)

    def debits(self):
        return [debit["amount_micro_usd"] for debit in self.sandbox.books()["debits"]]


def call(name, **arguments):
    """A tool call as the sandbox is told to make it."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def text(words):
    return {"content": words}


def pytest_collection_modifyitems(items):
    """Leaves out what scripts/test-clients.sh could not install, by name; it has said why."""
    for name in os.environ.get("BURSAR_CLIENTS_WITHOUT", "").split():
        left_out = pytest.mark.skip(reason=f"{name} is not installed")
        for item in items:
            if name in item.name:
                item.add_marker(left_out)


@pytest.fixture
def config():
    return '[streams]\nagent_receipts = "exact"\n'


@pytest.fixture
def place(tmp_path, config):
    sandbox = Sandbox(tmp_path)
    try:
        place = Place(tmp_path, sandbox, config)
        try:
            yield place
            eventually("ledger and books agree", lambda: agrees(place))
        finally:
            place.program.stop()
    finally:
        sandbox.program.stop()


def agrees(place):
    spend, debits = place.spend(), place.debits()
    assert spend["billed_micro_usd"] == sum(debits), f"ledger {spend}, books {debits}"
    unknown = {name: spend[name] for name in ("in_doubt", "open", "unreported", "damaged")}
    assert not any(unknown.values()), unknown
    assert {entry["app"] for entry in place.entries()} <= {"laptop"}
    assert debits, "nothing was bought"
    return True

