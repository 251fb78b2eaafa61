"""Seeded random cases, and the one comparison all tests share."""

import random

TOLERANCE = 1e-9
WORDS = (
    "the a an cat sat on mat please hold line it's don't well-known 1998 7 Über naïve ΟΔΟΣ Straße "
    "CAT The «so» \"quoted\" (x) … – , . e-mail U.S. 3.14 x_y #tag 50% €5 漢字 हिन्दी"
).split()


def agree(cases, found, wanted):
    """Every pair within the tolerance; the first that is not is shown with its case."""
    assert len(cases) == len(found) == len(wanted)
    for case, one, two in zip(cases, found, wanted):
        assert abs(one - two) <= TOLERANCE, f"{case}: bursar {one!r}, reference {two!r}"


def sentence(rng, longest=12, shortest=0):
    gap = lambda: rng.choice([" ", " ", " ", "  ", "\t"])
    return "".join(rng.choice(WORDS) + gap() for _ in range(rng.randint(shortest, longest)))


def heard(rng, text):
    """A text with words changed, left out, put in and swapped."""
    words = text.split()
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(words))
        match rng.randint(0, 3):
            case 0:
                words.insert(at, rng.choice(WORDS))
            case 1 if words:
                words.pop(min(at, len(words) - 1))
            case 2 if words:
                words[min(at, len(words) - 1)] = rng.choice(WORDS)
            case 3 if at + 1 < len(words):
                words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def seeded(name):
    return random.Random(f"bursar {name}")
