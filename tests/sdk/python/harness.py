"""Runs the two real programs, and reads what both sides wrote down.

Why: these tests prove a promise about unmodified clients, so nothing between the SDK and the sandbox
may be a stand-in: `bursar run` is a child process in front of a `bursar sandbox` child process.
Promise: every wait ends at a deadline with the programs' own output in the error; no fixed port, no
fixed path, no sleep that stands for "it will be ready by then".
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

BURSAR = os.environ.get("BURSAR_BIN", str(Path(__file__).resolve().parents[3] / "target/debug/bursar"))
API_KEY = "sandbox-key"
READY_S = 30
SETTLED_S = 20
# Nothing that is set on this machine may reach the programs.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("BURSAR_", "OPENAI_"))}


def eventually(what, check, deadline_s=SETTLED_S):
    """Polls `check` until it returns something true; the last error or value is in the failure."""
    end = time.monotonic() + deadline_s
    last = None
    while True:
        try:
            last = check()
            if last:
                return last
        except AssertionError as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}; last: {last!r}")
        time.sleep(0.02)


def http(method, url, body=None):
    """One plain request, without any proxy of the machine; the JSON or text of its answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        text = answer.read().decode()
        json_answer = answer.headers.get("Content-Type", "").startswith("application/json")
    return json.loads(text) if json_answer else text


class Program:
    """A child process: its standard output line by line, its standard error in a file."""

    def __init__(self, name, folder, *arguments):
        self.name = name
        self.errors = folder / f"{name}.stderr"
        self.process = subprocess.Popen(
            [BURSAR, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors.open("w"),
            text=True,
            env=ENVIRONMENT,
        )
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def said(self):
        return f"--- {self.name} stdout\n{chr(10).join(self.lines)}\n--- stderr\n{self.errors.read_text()[-4000:]}"

    def address(self, what):
        """The address in the line `<what> listening on http://…`."""

        def found():
            for line in list(self.lines):
                if match := re.search(rf"{what} listening on (http://\S+)", line):
                    return match[1].rstrip("/")
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}\n{self.said()}")
            return None

        try:
            return eventually(f"{self.name}: {what} listening", found, READY_S)
        except AssertionError as error:
            raise RuntimeError(f"{error}\n{self.said()}") from None

    def stop(self):
        """Ends it as systemd would. A daemon that does not leave, or not with 0, is a failure."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"{self.name} did not leave on SIGTERM\n{self.said()}") from None
        finally:
            self.reader.join(timeout=5)
            self.process.stdout.close()
        assert code == 0, f"{self.name} ended with {code}\n{self.said()}"


class Sandbox:
    """The service, and the truth: its own books."""

    def __init__(self, folder):
        self.program = Program(
            "sandbox", folder, "sandbox", "--listen", "127.0.0.1:0", "--seed", "1", "--api-key", API_KEY
        )
        self.url = self.program.address("sandbox")

    def books(self):
        return http("GET", f"{self.url}/sandbox/books")

    def requests(self, path):
        """How many POST requests for this path have come."""
        return self.books()["requests_by_route"].get(f"POST {path}", 0)

    def log(self):
        """Every request it received, as it came."""
        return http("GET", f"{self.url}/sandbox/requests")["requests"]

    def fault(self, path, times=1, **fault):
        """Puts a rule in force; `times=0` has no end. The members are in sandbox/src/fault.rs."""
        http("POST", f"{self.url}/sandbox/faults", {"match": {"path": path}, "times": times, "fault": fault})

    def release(self, hold):
        http("POST", f"{self.url}/sandbox/release", {"hold": hold})

    def set_balance(self, micro_usd):
        http("POST", f"{self.url}/sandbox/balance", {"micro_usd": micro_usd})


class Door:
    """bursar itself, and what its ledger says."""

    def __init__(self, folder, sandbox, config=""):
        self.sandbox = sandbox
        self.folder = folder
        self.state = folder / "state"
        # A test whose receipt is lost on the wire says so: then the sum is a bound, not a figure.
        self.doubt_allowed = False
        self.key_file = folder / "api-key"
        self.key_file.write_text(API_KEY)
        self.key_file.chmod(0o600)
        self.config_file = folder / "config.toml"
        self.config_file.write_text(config)
        self.start("127.0.0.1:0")
        self.v1 = f"{self.url}/v1"
        self.agent = f"{self.url}/agent/v1"

    def start(self, listen):
        self.program = Program(
            "bursar", self.folder, "run", "--config", self.config_file,
            "--upstream", self.sandbox.url, "--api-key-file", self.key_file,
            "--listen", listen, "--admin", "127.0.0.1:0", "--state-dir", self.state,
        )  # fmt: skip
        self.url = self.program.address("proxy")
        self.admin = self.program.address("admin")

    def kill_and_start(self):
        """kill -9, and a new process at the same address."""
        self.program.process.kill()
        self.program.process.wait()
        self.start(self.url.removeprefix("http://"))

    def ask(self, *arguments):
        """The JSON a reading command prints."""
        done = subprocess.run(
            [BURSAR, *arguments, "--json", "--state-dir", self.state],
            capture_output=True,
            text=True,
            timeout=30,
            env=ENVIRONMENT,
        )
        assert done.returncode == 0, f"bursar {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def entries(self):
        return [json.loads(line) for line in self.ask("receipts").splitlines()]

    def spend(self):
        return json.loads(self.ask("spend", "--since", "24h", "--tz", "UTC"))

    def metrics(self):
        return http("GET", f"{self.admin}/metrics")

    def metric(self, name, **labels):
        """The sum of all samples of a metric that carry these labels."""
        total = 0.0
        for line in self.metrics().splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and match[1] == name:
                have = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
                if labels.items() <= have.items():
                    total += float(match[3])
        return total
