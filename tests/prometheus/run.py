"""A real Prometheus scrapes a bursar on the sandbox, under load, over a restart and a kill -9.

Why: names and types can be right and a panel empty all the same. Promise: every query of every panel returns data, no
rule fails, the ledger's counters never go back, and the sum over Prometheus's last samples is the ledger's and the
books', to the micro-dollar.

Usage: run.py [KEEP_SECONDS]; with seconds, Prometheus stays up for so long afterwards, to be looked at.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/sdk/python"), str(ROOT / "scripts")]
from fleet_database import Database, programs  # noqa: E402
from harness import BURSAR, ENVIRONMENT, Door, Program, Sandbox, eventually, http  # noqa: E402

PHASE_S = 12
CONFIG = """
[listen]
anonymous = true
[shaping]
per_minute = 60000
[retry]
base_ms = 10
[caps]
day_micro_usd = 100000000
[[app]]
name = "default"
cap_day_micro_usd = 50000000
[reconcile]
every_h = 1
"""
# Where there is a PostgreSQL.
FLEET = """
[fleet]
url_file = "{url_file}"
ship_interval_s = 1
shared_caps = ["team"]
"""
CODE = "a-code-for-the-one-ledger"
# What has to have happened, so that a panel with data is no row of zeros.
HAPPENED = [
    'bursar_answers_total{escalated="true"}', "bursar_compared_frontier_usd_total", "bursar_retries_total",
    "bursar_joined_retries_total", "bursar_adopted_retries_total", "bursar_repeats_avoided_usd_estimate_total",
    "bursar_refusals_total", 'bursar_requests_total{status="404"}', "bursar_client_disconnects_total",
    'bursar_reconciliations_total{result!="failed"}', "bursar_queue_wait_seconds_count",
]  # fmt: skip
VARIABLES = {"$instance": ".*", "$app": ".*", "$job": ".*", "$__rate_interval": "10s", "$__range": "10m"}


class SameDoor(Door):
    """Comes back at the addresses it had."""

    def start(self, listen):
        self.admin = getattr(self, "admin", "http://127.0.0.1:0")
        admin = self.admin.removeprefix("http://")
        self.program = Program(
            "bursar", self.folder, "run", "--config", self.config_file,
            "--upstream", self.sandbox.url, "--api-key-file", self.key_file,
            "--listen", listen, "--admin", admin, "--state-dir", self.state,
        )  # fmt: skip
        self.url = self.program.address("proxy")
        self.admin = self.program.address("admin")

    def restart(self):
        self.program.stop()
        self.start(self.url.removeprefix("http://"))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def prometheus(folder, target):
    """A Prometheus with the shipped rules, that scrapes once a second."""
    shipped = ROOT / "grafana/prometheus.yml"
    config = shipped.read_text().replace("15s", "1s").replace("127.0.0.1:8328", target)
    (folder / "prometheus.yml").write_text(config)
    shutil.copy(ROOT / "grafana/alerts.yml", folder)
    port = free_port()
    process = subprocess.Popen(
        [
            "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
        ],
        stdout=(folder / "prometheus.log").open("w"),
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    return process, f"http://127.0.0.1:{port}"


def asked(base, path, **parameters):
    return http("GET", f"{base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")["data"]


def post(url, body, token=None, timeout=20):
    """The status; 0 where there was no answer."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        error.read()
        return error.code
    except OSError:
        return 0


def traffic(door, tokens, stop, who):
    """What apps do, until `stop`: all lanes, streams, escalations, mistakes."""
    n = 0
    while not stop.is_set():
        n += 1
        token = tokens[n % len(tokens)]
        prompt = [{"role": "user", "content": f"What is {n} + {who}?"}]
        hard = [{"role": "user", "content": f"hard: why {n} and {who}?"}]
        post(f"{door.v1}/chat/completions", {"model": "auto", "messages": prompt}, token)
        post(f"{door.v1}/chat/completions", {"model": "auto", "messages": hard}, token)
        post(f"{door.v1}/chat/completions", {"model": "auto", "messages": prompt, "stream": True}, token)
        post(f"{door.agent}/chat/completions", {"model": "auto", "messages": prompt}, token)
        post(f"{door.v1}/embeddings", {"model": "auto", "input": f"{n} {who}"}, token)
        post(f"{door.v1}/chat/completions", {"model": "gpt-none", "messages": prompt}, token)
        post(f"{door.v1}/nothing", {}, token)


def trouble(door, tokens):
    """A retry of bursar's own, an app that gives up and asks again, and answers that are lost."""
    chat, now = f"{door.v1}/chat/completions", time.monotonic_ns()

    def body(text, times, **fault):
        rule = {"match": {"body_contains": f"{text} {now}"}, "times": times, "fault": fault}
        http("POST", f"{door.sandbox.url}/sandbox/faults", rule)
        return {"model": "auto", "messages": [{"role": "user", "content": f"{text} {now}"}]}

    post(chat, body("busy", 1, status=503, retry_after="0"), tokens[0])
    joined = body("joined", 1, delay_ms=1000)
    post(chat, joined, tokens[1], timeout=0.3)
    post(chat, joined, tokens[1])
    adopted = body("adopted", 3, cut_before_head=True)
    post(chat, adopted, tokens[2])
    post(chat, adopted, tokens[2])
    post(chat, body("lost", 3, cut_before_head=True), tokens[1])


def under_load(door, tokens):
    stop = threading.Event()
    apps = [threading.Thread(target=traffic, args=(door, tokens, stop, who)) for who in range(3)]
    [app.start() for app in apps]
    end = time.monotonic() + PHASE_S
    while time.monotonic() < end:
        trouble(door, tokens)
    return stop, apps


def calm(stop, apps):
    stop.set()
    [app.join() for app in apps]


def filled(query):
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    assert "$" not in query, query
    return query


def empty_queries(base, began, has_fleet):
    """Queries of panels that return no number at any time of the test."""
    dashboard = json.loads((ROOT / "grafana/bursar.json").read_text())
    empty, count = [], 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            count += 1
            query = filled(target["expr"])
            if "bursar_fleet_" in query and not has_fleet:
                continue
            found = asked(base, "query_range", query=query, start=began, end=time.time(), step=1)["result"]
            if not any(value not in ("NaN", "+Inf", "-Inf") for row in found for _, value in row["values"]):
                empty.append(f"{panel['title']}: {query}")
    return empty, count


def has_counted(base, series, began):
    found = asked(base, "query_range", query=f"sum({series})", start=began, end=time.time(), step=1)["result"]
    return any(Decimal(value) > 0 for row in found for _, value in row["values"])


def spent_in_range(base, since):
    """The dashboard's panel of that name, in micro-dollars."""
    now = time.time()
    dashboard = json.loads((ROOT / "grafana/bursar.json").read_text())
    panel = next(panel for panel in dashboard["panels"] if panel["title"] == "Spent in this range")
    query = filled(panel["targets"][0]["expr"].replace("$__range", f"{int(now - since)}s"))
    rows = asked(base, "query", query=query, time=now)["result"]
    return round(Decimal(rows[0]["value"][1]) * 1_000_000)


def last_scrape(base):
    rows = asked(base, "query", query="timestamp(bursar_build_info)")["result"]
    return max((Decimal(row["value"][1]) for row in rows), default=0)


def last_sum(base):
    """In micro-dollars. Prometheus holds floats, each of which is one amount below 2^53 micro-dollars."""
    rows = asked(base, "query", query="bursar_billed_usd_total")["result"]
    return sum(round(Decimal(row["value"][1]) * 1_000_000) for row in rows)


def main(keep_s):
    folder = Path(tempfile.mkdtemp(prefix="bursar-prometheus-"))
    database, of_fleet = fleet(folder)
    sandbox = Sandbox(folder)
    door = SameDoor(folder, sandbox, CONFIG + of_fleet)
    process = None
    try:
        http("POST", f"{sandbox.url}/sandbox/limits", {"in_flight": 1000, "per_minute": 4000000000})
        tokens = [None, *(json.loads(door.ask("app", "add", name))["token"] for name in ("web", "nightly"))]
        began = time.time()
        process, base = prometheus(folder, door.admin.removeprefix("http://"))
        eventually("Prometheus to be ready", lambda: is_ready(base), 30)
        eventually("a scrape before the first money", lambda: last_scrape(base) > began, 30)
        scraped = float(last_scrape(base))

        calm(*under_load(door, tokens))
        door.restart()
        stop, apps = under_load(door, tokens)
        door.kill_and_start()
        calm(stop, apps)
        calm(*under_load(door, tokens))

        eventually("nothing in flight", lambda: door.metric("bursar_inflight_requests") == 0)
        door.ask("freeze", "nightly")
        quiet = time.time()
        eventually("a scrape after the last request", lambda: last_scrape(base) > quiet, 30)
        ledger = door.spend()["billed_micro_usd"]
        assert last_sum(base) == ledger > 0, f"Prometheus {last_sum(base)}, ledger {ledger}"
        # Every series of money began within this range, and what it began with counts.
        seen = spent_in_range(base, scraped)
        assert abs(seen - ledger) <= 5, f"the panel shows {seen}, the ledger has {ledger}"
        books = sum(debit["amount_micro_usd"] for debit in sandbox.books()["debits"])
        unknown = door.spend()["in_doubt"] + sum(entry["state"] == "unreported" for entry in door.entries())
        assert ledger <= books and (unknown or ledger == books), f"ledger {ledger}, books {books}"
        resets = asked(base, "query", query="sum(resets(bursar_billed_usd_total[10m]))")["result"]
        assert [row["value"][1] for row in resets] == ["0"], resets
        restarts = asked(base, "query", query="sum(changes(process_start_time_seconds[10m]))")["result"]
        assert [row["value"][1] for row in restarts] == ["2"], restarts
        for series in HAPPENED:
            assert has_counted(base, series, began), f"it did not happen: {series}"
        empty, count = empty_queries(base, began, database is not None)
        assert not empty, "no data:\n" + "\n".join(empty)
        rules = [rule for group in asked(base, "rules")["groups"] for rule in group["rules"]]
        sick = [rule for rule in rules if rule["health"] != "ok"]
        assert rules and not sick, sick
        for label in ("job", "instance", "app"):
            assert asked(base, f"label/{label}/values"), label
        firing = sorted({rule["name"] for rule in rules if rule["state"] == "firing"})
        print(
            f"{count} queries have data; {len(rules)} rules are well, firing: {', '.join(firing) or 'none'}; "
            f"Prometheus's last samples and the ledger: {ledger} micro-dollars, over a restart and a kill -9"
        )
        if keep_s:
            print(f"Prometheus is at {base}, bursar's metrics at {door.admin}/metrics", flush=True)
            time.sleep(keep_s)
    except BaseException:
        print(door.program.said(), (folder / "prometheus.log").read_text()[-2000:], sep="\n", file=sys.stderr)
        raise
    finally:
        if process:
            process.terminate()
            process.wait(timeout=30)
        door.program.stop()
        sandbox.program.stop()
        if database:
            database.stop()
    shutil.rmtree(folder)


def fleet(folder):
    """A database with a place and a shared cap for this bursar, and its configuration; None: there is no PostgreSQL."""
    if programs() is None:
        print("SKIPPED the fleet's panels: no PostgreSQL")
        return None, ""
    schema = subprocess.run([BURSAR, "fleet", "schema"], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    database = Database(folder, schema.stdout)
    database.sql(f"SELECT bursar_fleet.invite('{CODE}', NULL)")
    database.sql("SELECT bursar_fleet.order_cap('team', 'day', 'UTC', 50000000)")
    url_file = folder / "fleet-url"
    url_file.touch(mode=0o600)
    url_file.write_text(f"{database.url('node')}\n{CODE}\n")
    return database, FLEET.format(url_file=url_file)


def is_ready(base):
    try:
        return http("GET", f"{base}/-/ready")
    except OSError:
        return None


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
