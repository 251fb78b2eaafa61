#!/usr/bin/env python3
"""Takes out the defences of docs/threats.md by tests/faults/defences.toml, and says which case saw each.

Why: a case holds a defence only when it fails without it.
Promise: the tree itself is never changed: a worktree of HEAD below .cache is. Exit 1 when a removal is not
     caught for a row, does not compile or does not apply, or when the tree is not green without one.

Removals of one group are built together: no two share a row of a test, and each is asked for its own cases.
--alone builds each by itself. --only 3,7 takes out those of some rows. --write puts the list into docs/threats.md.
"""

import argparse
import os
import pathlib
import re
import shutil
import sys
import time
import tomllib

from planting import ROOT, Scratch

SCRATCH = Scratch("defences")
TABLE = ROOT / "docs" / "threats.md"
MARK = "\n## Each defence, taken out\n"
ABOUT = """
`make defences` took out each of these, some at a time, and these cases and tests of its own failed (of a table of
raw answers the first may stop those behind it). A removal that nothing sees fails the command.

"""
FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
# How the corpora of tests/it/attack.rs name a case that failed.
CASE = re.compile(r"^row (\d+) (.+?): ", re.M)
CORPUS = "attack::no_request"
# And how the tables of tests/it/hostile.rs do.
TABLE_CASES = re.compile(r"^thread '(\S+)'.*\n\d+ cases failed: \[\n((?:    .*\n)+)\]", re.M)


def scratch():
    """The clean tree, with the dependencies that the tree has built."""
    SCRATCH.clean()
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    if built.is_dir() and not SCRATCH.target.exists():
        for part in ("build", "deps", ".fingerprint"):
            shutil.copytree(built / part, SCRATCH.target / "debug" / part, copy_function=shutil.copy2)


def asked(tests):
    """What the named tests say; None when the tree does not compile."""
    ran = SCRATCH.test("--test", "it", "--", *tests)
    if ran is None:
        return None
    if ran.returncode != 0 and not FAILED.findall(ran.stdout):
        sys.stderr.write(ran.stderr[-2000:])
        return None
    return ran.stdout


def seen_by(defence, said):
    """For each row what failed, in words: cases, or the test itself."""
    if defence["test"].startswith(CORPUS):
        cases = [(int(row), name) for row, name in CASE.findall(said)]
        wanted = zip(defence["rows"], defence["cases"], strict=True)
        return {
            row: [f"case \u201c{name}\u201d" for of, name in cases if of == row and name.startswith(begin)]
            for row, begin in wanted
        }
    names = [name for name in FAILED.findall(said) if name.startswith(defence["test"])]
    for test, cases in TABLE_CASES.findall(said):
        if test in names:
            names = [f"case \u201c{line.strip().strip(',').strip(chr(34))}\u201d" for line in cases.splitlines()]
            return {row: names for row in defence["rows"]}
    return {row: [f"`{name}`" for name in names] for row in defence["rows"]}


def told(row, names):
    if not names:
        return f"{row}: **nobody**"
    return f"{row}: {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def tried(group):
    """The lines of the list for removals that are built together, and how many were not caught."""
    began = time.monotonic()
    scratch()
    fits = [SCRATCH.plant(defence) for defence in group]
    said = asked(sorted({defence["test"] for defence in group})) if all(fits) else None
    lines, missed = [], 0
    for defence, fit in zip(group, fits):
        if said is None:
            words, caught = "**does not apply**" if not fit else "**was not built**", False
        else:
            seen = seen_by(defence, said)
            caught = all(seen.values())
            words = "; ".join(told(row, names) for row, names in seen.items())
        missed += not caught
        lines.append(f"| {defence['what']} | `{defence['file']}` | {words.replace('|', chr(92) + '|')} |")
        print("CAUGHT     " if caught else "NOT CAUGHT ", lines[-1], flush=True)
    print(f"({time.monotonic() - began:.0f} s)", flush=True)
    return lines, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows, with commas")
    parser.add_argument("--alone", action="store_true", help="build each removal by itself")
    parser.add_argument("--write", action="store_true", help="write the list into docs/threats.md")
    options = parser.parse_args()
    defences = tomllib.loads((ROOT / "tests/faults/defences.toml").read_text())["defence"]
    only = {int(row) for row in options.only.split(",") if row}
    defences = [defence for defence in defences if not only or only & set(defence["rows"])]
    groups = {}
    for number, defence in enumerate(defences):
        groups.setdefault(number if options.alone else defence["group"], []).append(defence)

    scratch()
    said = asked(sorted({defence["test"] for defence in defences}))
    if said is None or FAILED.findall(said):
        sys.exit(f"not green with all defences: {FAILED.findall(said or '')}")
    lines, missed = {}, 0
    for number in sorted(groups):
        found, not_caught = tried(groups[number])
        missed += not_caught
        lines.update(zip((defence["what"] for defence in groups[number]), found))
    scratch()
    if options.write and not only:
        text = TABLE.read_text().split(MARK)[0]
        rows = "\n".join(lines[defence["what"]] for defence in defences)
        TABLE.write_text(f"{text}{MARK}{ABOUT}| taken out | in | row: seen by |\n|---|---|---|\n{rows}\n")
    print(f"{len(defences)} defences taken out, {missed} not caught")
    sys.exit(1 if missed else 0)


main()
