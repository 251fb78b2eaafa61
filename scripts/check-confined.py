#!/usr/bin/env python3
"""The main story under the restrictions of systemd/bursar.service, as far as they can be had without PID 1.

Why: the unit forbids system calls, families, namespaces, writing; what bursar needs of them must show here.
Promise: the cage is shown to be one (scripts/cage.py), the unit's own start, reload, watchdog, stop and socket
activation are gone through inside it, and without one system call that is needed the story fails.

Ends with 77 where the cage cannot be made (no root and no user namespaces, no libseccomp).
"""

import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from cage import directives

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAGE = [sys.executable, str(ROOT / "scripts/cage.py"), "--unit", str(ROOT / "systemd/bursar.service")]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = pathlib.Path(os.environ.get("BURSAR_BIN", TARGET / "debug/bursar"))
CANNOT = 77
PATIENCE_S = 30

PROBES = {
    "writes /etc": "touch /etc/x",
    "writes /usr": "touch /usr/x",
    "writes /run": "touch /run/x",
    "writes beside its state": "touch /run/cage/x",
    "sees a home": "ls /root || ls /home",
    "sees a disk": "ls /dev | grep -v -e null -e zero -e full -e random -e urandom | grep .",
    "sees the caller's /tmp": "ls /tmp | grep .",
    "has a capability": "grep Cap /proc/self/status | grep -v 0000000000000000",
    "may gain rights": "grep -q 'NoNewPrivs:.0' /proc/self/status",
    "has no filter": "grep -q 'Seccomp:.0' /proc/self/status",
    "is root": "[ $(id -u) = 0 ]",
    "makes a namespace": "unshare -U true",
    "mounts": "mount -t tmpfs none /tmp",
    "writes a core": "[ $(ulimit -c) != 0 ]",
}
CONTROLS = {
    "keeps its state": "touch /run/cage/state/x && rm /run/cage/state/x",
    "has a /tmp": "touch /tmp/x",
    "reads /etc": "cat /etc/passwd",
}


def say(text):
    print(f"==> {text}", flush=True)


def check(holds, what):
    if not holds:
        raise SystemExit(f"FAILED: {what}")
    print(f"    {what}", flush=True)


class World:
    """A sandbox outside, and a folder with what the unit gives the daemon."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.proxy = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.proxy.getsockname()[1]
        self.admin = 0
        self.notify = None
        credentials = folder / "credentials"
        credentials.mkdir()
        (credentials / "api-key").write_text("sandbox-key\n")
        (folder / "notify").mkdir()
        self.sandbox = subprocess.Popen([PROGRAM, "sandbox", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = next(line for line in self.sandbox.stdout if "http://" in line)
        self.upstream = "http://" + line.split("http://")[1].split()[0].rstrip("/.,")
        etc = folder / "etc"
        etc.mkdir()
        (etc / "config.toml").write_text(
            f'[upstream]\nbase_url = "{self.upstream}"\n[listen]\nadmin = ["127.0.0.1:0"]\n')
        folder.chmod(0o755)

    def cage(self, arguments, without=(), **more):
        """The program in the cage, as the unit starts it."""
        command = [*CAGE, "--program", str(PROGRAM), "--state", str(self.state)]
        for name in ("credentials", "etc", "notify"):
            command += ["--bind", str(self.folder / name)]
        for call in without:
            command += ["--without", call]
        given = more.pop("give", None)
        if given is not None:
            command += ["--give", str(given)]
            more["pass_fds"] = [given]
        environment = {
            "PATH": os.environ["PATH"],
            "STATE_DIRECTORY": "/run/cage/state",
            "CREDENTIALS_DIRECTORY": "/run/cage/credentials",
            **more.pop("env", {}),
        }
        return subprocess.Popen([*command, "--", *arguments], env=environment, cwd=ROOT, text=True, **more)

    def done(self, arguments, **more):
        process = self.cage(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
        try:
            said = process.communicate(timeout=3 * PATIENCE_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0]
        return process.returncode, said

    # === the daemon, as the unit starts it ===

    def start(self):
        path = self.folder / "notify/socket"
        path.unlink(missing_ok=True)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(path))
        path.chmod(0o666)
        self.notify.settimeout(PATIENCE_S)
        environment = {"NOTIFY_SOCKET": "/run/cage/notify/socket", "WATCHDOG_USEC": "400000"}
        self.log = open(self.folder / "log", "a")
        daemon = self.cage(
            ["/run/cage/program", "run"],
            env={**environment, **self.configured()}, give=self.proxy.fileno(), stdout=subprocess.PIPE, stderr=self.log)
        self.told("READY=1")
        for line in daemon.stdout:
            if line.startswith("admin listening on http://"):
                self.admin = int(line.rsplit(":", 1)[1])
                return daemon

    def configured(self):
        """Environment= of the unit: what start and reload read."""
        name, path = directives(ROOT / "systemd/bursar.service")["Environment"][0].split("=")
        return {name: path.replace("/etc/bursar/", "/run/cage/etc/")}

    def reload(self, daemon):
        """The commands of ExecReload= in their order, until one fails."""
        for line in directives(ROOT / "systemd/bursar.service")["ExecReload"]:
            program, *arguments = shlex.split(line)
            if program == "/bin/sh":  # from inside it would need the caller's user
                check(arguments == ["-c", "kill -HUP $MAINPID"], "the signal of a reload")
                daemon.send_signal(signal.SIGHUP)
                continue
            check(program == "/usr/bin/env", f"ExecReload= runs {program}")
            for name, here in (("/run/bursar-credentials", "/run/cage/credentials"), ("/usr/bin/bursar", "/run/cage/program")):
                arguments = [word.replace(name, here) for word in arguments]
            code, said = self.done([program, *arguments], env=self.configured())
            if code:
                return code, said
        return 0, ""

    def told(self, word):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                if word in self.notify.recv(4096).decode().splitlines():
                    return
            except TimeoutError:
                break
        raise SystemExit(f"FAILED: systemd does not get {word}\n{(self.folder / 'log').read_text()}")

    def ask(self, path, body=None):
        port = self.admin if body is None else self.port
        call = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        if body is not None:
            call.data = json.dumps(body).encode()
            call.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(call, timeout=PATIENCE_S) as answer:
            return answer.read().decode()


def chat(prompt, stream=False):
    return {"model": "auto", "stream": stream, "messages": [{"role": "user", "content": prompt}]}


def the_cage_is_one(world):
    say("the cage")
    for what, script in PROBES.items():
        code, said = world.done(["/bin/sh", "-c", script])
        if code == CANNOT:
            print(said.strip(), file=sys.stderr)
            raise SystemExit(CANNOT)
        check(code != 0, f"nothing inside {what}")
    for what, script in CONTROLS.items():
        code, said = world.done(["/bin/sh", "-c", script])
        check(code == 0, f"what is inside {what} {said.strip() if code else ''}")


def the_story_of_the_unit(world):
    say("bursar run, as bursar.service starts it, on a socket that was given")
    daemon = world.start()
    try:
        world.told("WATCHDOG=1")
        for path in ("/v1/chat/completions", "/agent/v1/chat/completions"):
            check("choices" in world.ask(path, chat(f"what is 2 + 3? {path}")), f"POST {path}")
            check("[DONE]" in world.ask(path, chat(f"and as a stream? {path}", True)), f"POST {path}, a stream")
        check(world.ask("/readyz").startswith("ok\n") and "bursar_billed_usd_total" in world.ask("/metrics"), "ready, with metrics")
        shown = world.ask("/metrics")
        process = ("cpu_seconds_total", "open_fds", "resident_memory_bytes", "start_time_seconds")
        check(all(f"\nprocess_{name} " in shown for name in process), "and what the kernel knows of the process")
        code, said = world.reload(daemon)
        check(code == 0, f"ExecReload= {said if code else ''}")
        world.told("RELOADING=1")
        world.told("READY=1")
        check('bursar_config_reloads_total{result="ok"} 1' in world.ask("/metrics"), "a reload")
        config = world.folder / "etc/config.toml"
        good = config.read_text()
        config.write_text(f"{good}[listne]\n")
        code, said = world.reload(daemon)
        check(code == 78 and "listne" in said, "a reload with a bad file fails with the reason")
        config.write_text(good)
        reloads = [line for line in world.ask("/metrics").splitlines() if line.startswith("bursar_config_reloads_total")]
        check(all(line.endswith(" 0") or line.endswith('"ok"} 1') for line in reloads), "and is no signal")
        daemon.kill()
        daemon.wait()
        daemon = world.start()
        check("choices" in world.ask("/v1/chat/completions", chat("after a kill")), "a start after kill -9")
        daemon.terminate()
        world.told("STOPPING=1")
        check(daemon.wait(timeout=PATIENCE_S) == 0, "a stop in order")
    finally:
        daemon.kill()
        daemon.wait()
    for arguments in (
        ["ledger", "verify"], ["ledger", "rebuild"], ["spend"], ["receipts"], ["ledger", "export", "--format", "csv"],
        ["ledger", "compact", "--older-than", "90d", "--dry-run"], ["check", "--config", "/run/cage/etc/config.toml"],
    ):
        code, said = world.done(["/run/cage/program", *arguments])
        check(code == 0, f"bursar {' '.join(arguments)} {said if code else ''}")


def the_demo(world):
    say("bursar demo --once")
    code, said = world.done(["/run/cage/program", "demo", "--once"])
    agree = "agree to the micro-dollar" in " ".join(said.split())
    check(code == 0 and agree, "the demo's own story" if code == 0 else said)
    say("and with a needed system call taken away, it has to fail")
    for call in ("fdatasync", "listen", "epoll_create1"):
        code, _ = world.done(["/run/cage/program", "demo", "--once"], without=[call])
        check(code != 0, f"without {call} it fails ({code})")


def main():
    if not PROGRAM.exists():
        raise SystemExit(f"no {PROGRAM}: build it first (make build)")
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not on this machine", file=sys.stderr)
        raise SystemExit(CANNOT)
    with tempfile.TemporaryDirectory() as folder:
        world = World(pathlib.Path(folder))
        try:
            the_cage_is_one(world)
            the_story_of_the_unit(world)
            the_demo(world)
        finally:
            world.sandbox.terminate()
            world.sandbox.wait()
    say("the main story passes under the unit's restrictions")


if __name__ == "__main__":
    main()
