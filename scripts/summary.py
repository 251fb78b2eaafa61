"""Adds up what the test runners said into one closing line.

Why: `make test` runs cargo or nextest, pytest and Node's runner; a reader, and CI, want one sum.
Promise: a part that failed counts as at least one failure, also when its runner printed no count;
a check without tests of its own (layout, lints) counts as one; building and set-up count as none. One that has left
something out and said so (`SKIPPED `, scripts/lib.sh) never counts as passed, but as skipped.

Usage: summary.py LOG_FOLDER [FAILED_PART…]
"""

import re
import sys
from pathlib import Path

NO_CHECK = re.compile(r"build|binary|.*-setup")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
LEFT_OUT = re.compile(r"^SKIPPED ", re.MULTILINE)


def counts(text: str) -> tuple[int, int, int] | None:
    """(passed, failed, skipped) of one log, or None when no runner's closing line is in it."""
    lines = [
        line
        for line in ANSI.sub("", text).splitlines()
        if line.startswith("test result: ")  # cargo test, one line for each binary
        or re.match(r"\s*Summary \[", line)  # nextest
        or re.match(r"=+ .*\b(passed|failed|skipped|error|errors)\b.* in [\d.]+s", line)  # pytest
        or re.match(r"(ℹ|#) (pass|fail|skipped) \d+$", line)  # node
    ]
    if not lines:
        return None
    # Node writes the word first; turn that round so that one search serves all.
    found = re.sub(r"(?:ℹ|#) (\w+) (\d+)", r"\2 \1", "\n".join(lines))

    def total(*words: str) -> int:
        return sum(int(n) for n in re.findall(rf"(\d+) (?:{'|'.join(words)})\b", found))

    return (
        total("passed", "pass"),
        total("failed", "fail", "errors?", "timed out"),
        total("skipped", "ignored", "xfailed"),
    )


def main(folder: str, failed_parts: list[str]) -> None:
    passed = failed = skipped = 0
    seen = set()
    for log in sorted(Path(folder).glob("step-*.log")):
        part = log.stem.removeprefix("step-")
        seen.add(part)
        text = log.read_text(errors="replace")
        good, bad, left = counts(text) or (0, 0, 0)
        if part in failed_parts:
            bad = max(bad, 1)
        elif not good + bad + left and LEFT_OUT.search(text):
            left = 1
        elif not good + bad + left and not NO_CHECK.fullmatch(part):
            good = 1
        passed, failed, skipped = passed + good, failed + bad, skipped + left
    failed += len(set(failed_parts) - seen)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
