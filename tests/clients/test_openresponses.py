"""The public compliance suite of OpenResponses, over HTTP, against bursar on the sandbox.

Why: what the dialect's own judges ask is no opinion of ours.
Promise: the suite is unchanged (OPENRESPONSES_SUITE is its folder); every test over HTTP passes but those on compaction,
which the service has nothing for: they are answered 404 with a code and a text.
"""

import json
import os
import shlex
import shutil

import pytest
from conftest import HERE, text

SUITE = os.environ.get("OPENRESPONSES_SUITE", "")
BUN = HERE / "node_modules/@oven/bun-linux-x64/bin/bun"
OVER_HTTP = [
    "basic-response",
    "assistant-phase",
    "response-output-phase-schema",
    "streaming-response",
    "system-prompt",
    "tool-calling",
    "image-input",
    "multi-turn",
]

pytestmark = pytest.mark.skipif(not SUITE, reason="OPENRESPONSES_SUITE is not set to the suite's folder")


@pytest.fixture
def suite(tmp_path):
    """A copy of it beside the packages that it imports."""
    copy = tmp_path / "suite"
    shutil.copytree(SUITE, copy)
    (copy / "node_modules").mkdir(exist_ok=True)
    (copy / "node_modules/zod").symlink_to(HERE / "node_modules/zod3")
    return copy


EXACT = '[streams]\nagent_receipts = "exact"\n'
LIVE = f'{EXACT}translated = "live"\n'


@pytest.mark.parametrize(
    ("base", "config"),
    [("v1", EXACT), ("agent/v1", EXACT), ("v1", LIVE)],
    ids=["v1", "agent", "live"],
)
def test_every_test_over_http_passes(place, suite, base):
    arguments = [
        BUN, "run", "bin/compliance-test.ts", "--base-url", f"http://127.0.0.1:{place.port}/{base}",
        "--api-key", place.token.read_text().strip(), "--model", "auto", "--filter", ",".join(OVER_HTTP), "--json",
    ]  # fmt: skip
    command = " ".join(shlex.quote(str(argument)) for argument in arguments)

    said = place.run(f"cd {shlex.quote(str(suite))} && {command}")

    report = json.loads(said[said.index("{") : said.rindex("}") + 1])
    results = {result["id"]: result["status"] for result in report["results"]}
    assert results == {name: "passed" for name in OVER_HTTP}, said


def test_compaction_is_answered_as_what_there_is_not(place):
    place.rule({}, text("Something to buy."))
    place.run(f"""
        token=$(cat {shlex.quote(str(place.token))})
        base=http://127.0.0.1:{place.port}/v1
        ask() {{ curl -s -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "$@"; }}
        answer=$(ask -w '%{{http_code}}' "$base/responses/compact" -d '{{"model":"auto","input":"x"}}')
        echo "$answer"
        case "$answer" in *'"code":"responses_unsupported"'*404) ;; *) exit 1 ;; esac
        ask -f "$base/responses" -d '{{"model":"auto","input":"x"}}' >/dev/null
    """)
