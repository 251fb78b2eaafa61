#!/usr/bin/env python3
"""Clauses of the interface, and which tests hold them.

Why: docs/conformance.md says for each clause of docs/interface.md by which tests it is held; this script
     finds the clauses and says what is missing. A test (sandbox/tests/it/conformance.rs) does the same in
     the suite, so that a clause cannot lose its test unseen.
Promise: reads, and writes nothing.

    scripts/clauses.py            every clause id, with its text
    scripts/clauses.py --golden   each clause with the transcripts that name it
    scripts/clauses.py --missing  clauses without a row in docs/conformance.md
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLAUSE = re.compile(r"^(?:#+ |\| )([A-Z]+(?:-[A-Z0-9]+)*-\d+)\b(.*)")


def clauses() -> dict[str, str]:
    """Id to text, in the order of the page; open questions are no rules."""
    found = {}
    for line in (ROOT / "docs/interface.md").read_text().splitlines():
        if (match := CLAUSE.match(line)) and not match[1].startswith("OPEN-"):
            found[match[1]] = match[2].strip(" |")
    return found


def golden() -> dict[str, list[str]]:
    """Id to the transcripts that name it in their first line."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests/golden").glob("*.http")):
        first = path.read_text().splitlines()[0]
        for clause in first.removeprefix("# clauses:").split(","):
            found.setdefault(clause.strip(), []).append(path.name)
    return found


def rows() -> set[str]:
    """Ids that docs/conformance.md has a row for."""
    page = ROOT / "docs/conformance.md"
    lines = page.read_text().splitlines() if page.exists() else []
    return {match[1] for line in lines if (match := CLAUSE.match(line))}


def main() -> int:
    known = clauses()
    match sys.argv[1:]:
        case []:
            for clause, text in known.items():
                print(clause, text)
        case ["--golden"]:
            named = golden()
            for clause in known:
                print(clause, *named.get(clause, []))
        case ["--missing"]:
            missing = [clause for clause in known if clause not in rows()]
            print(*missing, sep="\n")
            return int(bool(missing))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
