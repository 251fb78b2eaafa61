#!/usr/bin/env python3
"""Seeds of the fuzz targets, packed into one file a target (fuzz/corpus/TARGET.seeds).

    scripts/seeds.py unpack TARGET DIRECTORY    a file for each seed, as cargo-fuzz wants them
    scripts/seeds.py pack TARGET DIRECTORY      adds the files of a directory that are not packed yet

A line is a seed: its name, a tab, and its bytes. What is not printable ASCII stands as \\n, \\r, \\t or \\xHH, a
backslash as \\\\. tests/it/corpus.rs reads the same form.
"""

import re
import sys
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
NAMED = {0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
BYTES = {"\\": b"\\", "n": b"\n", "r": b"\r", "t": b"\t"}


def escaped(seed: bytes) -> str:
    def shown(byte: int) -> str:
        return NAMED.get(byte) or (chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}")

    return "".join(map(shown, seed))


def unescaped(text: str) -> bytes:
    seed = b""
    for part in re.findall(r"\\x[0-9a-f]{2}|\\[\\nrt]|[^\\]+", text):
        if part.startswith("\\x"):
            seed += bytes([int(part[2:], 16)])
        elif part.startswith("\\"):
            seed += BYTES[part[1:]]
        else:
            seed += part.encode("ascii")
    if escaped(seed) != text:
        raise SystemExit(f"error: not a packed seed: {text[:80]}")
    return seed


def packed(target: str) -> dict[str, bytes]:
    file = CORPUS / f"{target}.seeds"
    lines = file.read_text("ascii").split("\n")[:-1] if file.exists() else []
    pairs = (line.split("\t", 1) for line in lines)
    return {name: unescaped(text) for name, text in pairs}


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        raise SystemExit(__doc__)
    order, target, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    seeds = packed(target)
    if order == "unpack":
        directory.mkdir(parents=True, exist_ok=True)
        for name, seed in seeds.items():
            (directory / name).write_bytes(seed)
        return
    known = set(seeds.values())
    for file in sorted(directory.iterdir()):
        seed = file.read_bytes()
        if seed not in known:
            seeds[file.name] = seed
            known.add(seed)
    lines = [f"{name}\t{escaped(seeds[name])}\n" for name in sorted(seeds)]
    (CORPUS / f"{target}.seeds").write_text("".join(lines), "ascii", newline="\n")


if __name__ == "__main__":
    main()
