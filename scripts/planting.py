"""Faults in a tree of their own, for planted-faults.py and defences.py.

Promise: the tree itself is never changed: a worktree of HEAD below .cache is.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


class Scratch:
    """A clean worktree of HEAD, and what cargo builds of it. `target`: not the tree's own, for programs of
    both would have the same name."""

    def __init__(self, name):
        self.path = ROOT / ".cache" / name
        self.target = ROOT / ".cache" / f"{name}-target"

    def clean(self):
        if (self.path / ".git").exists():
            head = run("git", "rev-parse", "HEAD", cwd=ROOT, check=True).stdout.strip()
            run("git", "checkout", "--quiet", "--force", "--detach", head, cwd=self.path, check=True)
        else:
            run("git", "worktree", "prune", cwd=ROOT)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            run("git", "worktree", "add", "--quiet", "--detach", self.path, "HEAD", cwd=ROOT, check=True)

    def plant(self, fault):
        """Puts `new` in the place of `old`; False when that does not stand there once."""
        path = self.path / fault["file"]
        text = path.read_text()
        if text.count(fault["old"]) != 1:
            return False
        path.write_text(text.replace(fault["old"], fault["new"]))
        return True

    def test(self, *arguments):
        """`cargo test` with these arguments; None when the tree does not compile."""
        environment = os.environ | {"CARGO_TARGET_DIR": str(self.target), "RUST_BACKTRACE": "0"}
        command = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", *arguments]
        ran = run(*command, cwd=self.path, env=environment)
        if "error: could not compile" in ran.stderr:
            sys.stderr.write(ran.stderr)
            return None
        return ran
