#!/usr/bin/env python3
"""Plants the faults of tests/faults/faults.toml one after the other, and says which test caught each.

Why: a test that cannot fail holds nothing. A rule is held when a fault in its heart is seen.
Promise: the tree itself is never changed: a worktree of HEAD below .cache is. Exit 1 when a fault
     survives, does not compile or does not apply, or when the tree is not green without one.

A fault is first shown to the tests that its row of docs/planted-faults.md names, and to all only when none of these
sees it. --only 3,7 plants some. --write asks all tests and puts the table into docs/planted-faults.md.
"""

import argparse
import re
import sys
import time
import tomllib

from planting import ROOT, Scratch

SCRATCH = Scratch("faults")
TABLE = ROOT / "docs" / "planted-faults.md"
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.M)
ROW = re.compile(r"^\| (\d+) \|.*\| ([^|]*) \|$", re.M)
# Tests named in the table; the others are counted.
NAMED_MAX = 3
HEAD = """# Planted faults

Each row is a fault of one line that `make faults` planted in the tree, alone, and the tests that failed
because of it: the unit tests with the model check (`proxy::purchase::simulation`), and for faults on the way of a
request the integration tests named in `tests/faults/faults.toml`. A fault that no test sees fails the command.

"""


def failed(wires):
    """The unit tests and those named `wires` that fail in the scratch tree; None when it does not compile."""
    names = []
    for wire in [None, *wires]:
        target = ["--test", "it"] if wire else ["--lib"]
        ran = SCRATCH.test(*target, *([wire] if wire else []))
        if ran is None:
            return None
        found = FAILED.findall(ran.stdout)
        if found:
            # Only what fails again counts: a test that failed by chance caught nothing.
            ran = SCRATCH.test(*target, "--", "--exact", *found)
            found = FAILED.findall(ran.stdout) if ran else []
        elif ran.returncode != 0:
            found = ["(the test program itself)"]
        names += found
    return names


def known_tests():
    """The tests that the table names for each fault, but for the model check, which takes a minute."""
    return {
        int(number): [name for name in re.findall(r"`([^`]+)`", tests) if "simulation" not in name]
        for number, tests in ROW.findall(TABLE.read_text())
    }


def failed_of(names, wires):
    """Those of the named tests that fail in the scratch tree; None when it does not compile."""
    target = ["--test", "it"] if names[0].startswith(tuple(wires)) else ["--lib"]
    ran = SCRATCH.test(*target, "--", "--exact", *names)
    return None if ran is None else FAILED.findall(ran.stdout)


def in_words(names):
    """The model check first: it holds most rules at once."""
    names = sorted(set(names), key=lambda name: ("simulation" not in name, name))
    words = [f"`{name}`" for name in names[:NAMED_MAX]]
    if len(names) > NAMED_MAX:
        words.append(f"{len(names) - NAMED_MAX} more")
    return ", ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="numbers of faults, with commas")
    parser.add_argument("--write", action="store_true", help="write docs/planted-faults.md")
    options = parser.parse_args()
    faults = list(enumerate(tomllib.loads((ROOT / "tests/faults/faults.toml").read_text())["fault"], 1))
    only = {int(number) for number in options.only.split(",") if number}
    wires = sorted({fault["wire"] for _, fault in faults if "wire" in fault})

    known = {} if options.write else known_tests()

    SCRATCH.clean()
    if (names := failed(wires)) != []:
        sys.exit(f"not green without a fault: {', '.join(names or ['it does not compile'])}")
    rows = ["| | rule | fault | caught by |", "|---|---|---|---|"]
    survived = 0
    for number, fault in faults:
        if only and number not in only:
            continue
        began = time.monotonic()
        SCRATCH.clean()
        wires = [fault["wire"]] if "wire" in fault else []
        if not SCRATCH.plant(fault):
            names, words = None, "**does not apply**"
        else:
            names = failed_of(known[number], wires) if known.get(number) else []
            # An empty list is looked at again with all tests, and so is a tree that was not built.
            names = names or failed(wires)
            words = "**does not compile**" if names is None else in_words(names) if names else "**no test**"
        survived += not names
        rows.append(f"| {number} | {fault['rule']} | {fault['what']} | {words} |")
        print(f"{rows[-1]}  ({time.monotonic() - began:.0f} s)", flush=True)
    SCRATCH.clean()
    table = "\n".join(rows) + "\n"
    if options.write:
        TABLE.write_text(HEAD + table)
    print(f"{len(rows) - 2} faults, {survived} survived")
    sys.exit(1 if survived else 0)


main()
