#!/usr/bin/env python3
"""Plants one-line faults one after the other and says which test caught each.

Why: a test suite is worth what it catches. Each fault breaks the heart of one rule.
Promise: works in a scratch worktree of the last commit, never in the tree itself; exit 1 when a
      fault survives, or when its line is no longer there.

scripts/planted-faults.py [NUMBER…]   needs git and cargo; CARGO_TARGET_DIR is the scratch tree's own
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests" / "faults.json"


def caught_by(tree, fault):
    """The tests that fail with the fault planted; None when it does not compile."""
    target = Path(os.environ.get("FAULTS_TARGET_DIR", tree / "target"))
    env = dict(os.environ, CARGO_TARGET_DIR=str(target), RUST_BACKTRACE="0")
    which = ["--test", "it"] if fault.get("wire") else ["--lib"]
    command = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", *which]
    built = subprocess.run([*command, "--no-run"], cwd=tree, env=env, capture_output=True, text=True)
    if built.returncode:
        print(built.stderr[-2000:], file=sys.stderr)
        return None
    ran = subprocess.run([*command, "--", fault["tests"]], cwd=tree, env=env, capture_output=True, text=True)
    return re.findall(r"^test (\S+) \.\.\. FAILED$", ran.stdout, re.M)


def plant(tree, fault):
    """Replaces the one place; the text that was there, or None when it is not there once."""
    path = tree / fault["file"]
    text = path.read_text()
    if text.count(fault["line"]) != 1:
        return None
    path.write_text(text.replace(fault["line"], fault["fault"]))
    return text


def main():
    wanted = {int(number) for number in sys.argv[1:]}
    survived = 0
    print("| | rule | fault | caught by |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", str(tree)], cwd=ROOT, check=True)
        try:
            for number, fault in enumerate(json.loads(FAULTS.read_text()), 1):
                if wanted and number not in wanted:
                    continue
                before = plant(tree, fault)
                if before is None:
                    found = None
                    verdict = "its line is gone: mend tests/faults.json"
                else:
                    found = caught_by(tree, fault)
                    (tree / fault["file"]).write_text(before)
                    verdict = "does not compile" if found is None else "<br>".join(f"`{t}`" for t in found[:3])
                if not found:
                    survived += 1
                more = f" and {len(found) - 3} more" if found and len(found) > 3 else ""
                print(f"| {number} | {fault['rule']} | {fault['name']} | {verdict or '**survived**'}{more} |", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=False)
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
