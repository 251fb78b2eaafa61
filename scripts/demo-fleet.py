"""A fleet at work: three machines and one account, with everything that goes wrong with machines.

Why: what several machines spend together, and that a shared cap stops all of them, is seen here in a minute.
Promise: every number printed was read from an answer, a ledger, the fleet's database or the service's books. The cap's bound
is printed before a cent is spent, and the sums of hosts, journals and books are compared to the micro-dollar; what
differs is named, and the exit code is 1.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/sdk/python"))
from fleet_database import Database, Pooler  # noqa: E402
from harness import API_KEY, BURSAR, ENVIRONMENT, Program, Sandbox, eventually, http  # noqa: E402

COLUMNS, INDENT = 80, 13
CAP, LIMIT_USD = "team", "0.20"
CONFIG = """
[ledger]
state_dir = "state"

[shaping]
per_minute = 100000

[fleet]
ship_interval_s = 1
"""
# What a machine asks before the cap is near.
FIRST = 3
ASKED_MAX = 400
# A machine that is told that others hold the rest asks again, for so long: what they spent last is not in the database
# yet, and what they give back may be had.
BUSY_S, PAUSE_S = 30, 0.25
INK = {"bold": "1", "faint": "2", "good": "32", "bad": "31"}


def inked(ink, text):
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR")
    return text if plain else f"\033[{INK[ink]}m{text}\033[0m"


def heading(text):
    print(f"\n{inked('bold', text)}\n", flush=True)


def fact(label, text, ink=None):
    lines = textwrap.wrap(str(text), COLUMNS - INDENT, break_long_words=False, break_on_hyphens=False)
    text = ("\n" + " " * INDENT).join(lines)
    print(f"  {inked('faint', f'{label:<{INDENT - 2}}')}{inked(ink, text) if ink else text}", flush=True)


def shown(text):
    """What a command prints, as it prints it."""
    print(text.rstrip("\n"), flush=True)


def usd(micro):
    return f"{micro / 1_000_000:.6f} USD"


class Wrong(Exception):
    """The demo did not do what it says."""


class Operator:
    """A person with a login of the database."""

    def __init__(self, folder, url):
        self.file = folder / "operator-url"
        self.file.write_text(url)
        self.file.chmod(0o600)
        self.config = folder / "operator.toml"
        self.config.write_text("")

    def says(self, *arguments):
        return ran(*arguments, "--url-file", self.file, "--config", self.config)

    def document(self, *arguments):
        return json.loads(self.says(*arguments, "--json"))


def ran(*arguments, typed=""):
    command = [BURSAR, *map(str, arguments)]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    if done.returncode != 0:
        raise Wrong(f"bursar {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
    return done.stdout


class Machine:
    """One bursar with a disk of its own."""

    def __init__(self, folder, name, sandbox):
        self.name, self.sandbox = name, sandbox
        self.folder = folder / name
        self.folder.mkdir()
        self.state = self.folder / "state"
        self.config = self.folder / "config.toml"
        self.config.write_text(CONFIG)
        self.key_file = self.folder / "api-key"
        self.key_file.write_text(API_KEY)
        self.key_file.chmod(0o600)
        self.program = None

    def join(self, url, code):
        ran("fleet", "join", "--host-label", self.name, "--config", self.config, typed=f"{url}\n{code}\n")

    def obey(self, cap):
        """From its next start on."""
        with self.config.open("a") as config:
            config.write(f'shared_caps = ["{cap}"]\n')

    def start(self):
        self.program = Program(
            self.name, self.folder, "run", "--config", self.config, "--upstream", self.sandbox.url,
            "--api-key-file", self.key_file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
        )  # fmt: skip
        self.url = self.program.address("proxy")
        self.admin = self.program.address("admin")

    def kill(self):
        self.program.process.kill()
        self.program.process.wait()

    def stop(self):
        if self.program and self.program.process.poll() is None:
            self.program.stop()

    def cloned(self, name):
        """What a copied disk is: the same files, the same name in the fleet."""
        copy = Machine(self.folder.parent, name, self.sandbox)
        shutil.rmtree(copy.folder)
        shutil.copytree(self.folder, copy.folder, symlinks=True)
        return copy

    def ask(self, prompt, timeout=30):
        """The status and the code of an error; 0 where there was no answer."""
        body = {"model": "auto", "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", json.dumps(body).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as answer:
                answer.read()
                return answer.status, None
        except urllib.error.HTTPError as error:
            said = json.loads(error.read())
            return error.code, said.get("error", {}).get("code")
        except OSError:
            return 0, None

    def buy(self, prompt):
        status, code = self.ask(prompt)
        if status != 200:
            raise Wrong(f"{self.name}: {status} {code}")

    def says(self, *arguments):
        return ran(*arguments, "--config", self.config, "--state-dir", self.state)

    def entries(self):
        """What its journal has, by the entries' ids."""
        lines = self.says("receipts", "--json", "--since", "24h").splitlines()
        return {entry["id"]: entry for entry in map(json.loads, lines)}

    def metric(self, name):
        lines = http("GET", f"{self.admin}/metrics").splitlines()
        return next((float(line.split()[-1]) for line in lines if line.split(" ")[0] == name), None)


class World:
    def __init__(self, folder):
        self.folder, self.parts, self.machines, self.wrong = folder, [], [], []

    def begin(self):
        folder = self.folder
        self.database = self.kept(Database(folder, ran("fleet", "schema")))
        self.pooler = self.kept(Pooler(folder, self.database))
        self.sandbox = Sandbox(folder)
        self.kept(self.sandbox.program)
        http("POST", f"{self.sandbox.url}/sandbox/limits", {"in_flight": 1000, "per_minute": 4_000_000_000})
        self.operator = Operator(folder, self.database.url("operator"))

    def kept(self, part):
        self.parts.append(part)
        return part

    def machine(self, name, url):
        machine = self.kept(Machine(self.folder, name, self.sandbox))
        code = self.operator.document("fleet", "invite", "--note", name)["code"]
        machine.join(url, code)
        machine.start()
        self.machines.append(machine)
        return machine

    def stop(self):
        for part in reversed(self.parts):
            try:
                part.stop()
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                self.wrong.append(str(error).splitlines()[0])

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)
            fact("WRONG", what, "bad")

    # What the three kinds of books say, in micro-dollars.

    def by_hosts(self):
        return self.operator.document("spend", "--fleet")["total"]

    def by_journals(self):
        """Of entries that two machines have, because one was copied, each once."""
        entries = {}
        for machine in self.machines:
            entries |= machine.entries()
        return sum(entry["billed_micro_usd"] or 0 for entry in entries.values()), entries

    def by_service(self):
        return sum(self.debits())

    def debits(self):
        return [debit["amount_micro_usd"] for debit in self.sandbox.books()["debits"]]

    def dearest(self):
        return max(self.debits())


def introduced(world):
    heading("a fleet: three machines, one account")
    fact("files", f"{world.folder} (removed at the end)")
    laptop = world.machine("laptop", world.pooler.url("node"))
    server = world.machine("server", world.database.url("node"))
    runner = world.machine("runner", world.pooler.url("node"))
    fact("machines", "laptop and runner reach the database by a pgbouncer in transaction mode, server reaches it directly")
    for machine in world.machines:
        for number in range(FIRST):
            machine.buy(f"What is {number} + {len(machine.name)}? asks {machine.name}")
        # Of the dearest kind that will come: the bound goes by prices that are known.
        machine.buy(f"hard: why does {machine.name} ask this?")
    shipped(world, 3 * (FIRST + 1))
    shown(world.operator.says("spend", "--fleet"))
    return laptop, server, runner


def shipped(world, requests):
    eventually("the database to have all", lambda: world.by_hosts()["requests"] == requests, 60)


def promised(world, machine):
    """The bound, as it is stated before the cap is near: in micro-dollars, with the machine that is still to come."""
    heading("one cap for all of them")
    world.operator.says("fleet", "caps", "set", CAP, "--period", "day", "--time-zone", "UTC", "--limit-usd", LIMIT_USD)
    fact("operator", f"bursar fleet caps set {CAP} --period day --limit-usd {LIMIT_USD}")
    for each in world.machines:
        each.stop()
        each.obey(CAP)
        each.start()
        each.buy(f"What is 7 + {len(each.name)}? asks {each.name}, below the cap")
    fact(machine.name, "bursar caps")
    shown(machine.says("caps"))
    views = [json.loads(each.says("caps", "--json"))["shared"][0] for each in world.machines]
    limit, dearest = views[0]["limit_micro_usd"], max(view["dearest_micro_usd"] for view in views)
    holders = len(views) + 1
    bound = limit + holders * dearest
    print()
    fact("bound", f"{usd(bound)}: the limit, and the dearest request of each of {holders} machines, {usd(dearest)}")
    return bound


def killed(world, server, before):
    heading("a machine dies: kill -9, behind what it has just spent")
    for number in range(FIRST):
        server.buy(f"What is {number} + 40? asks server, about to die")
    server.kill()
    there = world.by_hosts()["requests"]
    fact("fleet", f"has {there} of {before + FIRST} requests")
    server.start()
    shipped(world, before + FIRST)
    states = [entry["state"] for entry in server.entries().values()]
    world.expect("in_doubt" not in states, "the kill left a doubt")
    fact("server", f"is back with {len(states)} entries, {states.count('in_doubt')} in doubt; the fleet has all {before + FIRST}")


def offline(world, laptop, before):
    heading("a machine is offline: its way to the database is gone")
    world.pooler.stop()
    for number in range(FIRST):
        laptop.buy(f"What is {number} + 100? asks laptop, offline")
    fact("laptop", f"served {FIRST} requests from its slice of the cap")
    fact("fleet", f"has {world.by_hosts()['requests']} requests, and will have {before + FIRST}")
    world.pooler.start()
    began = time.monotonic()
    shipped(world, before + FIRST)
    fact("back", f"after {time.monotonic() - began:.1f} s the database has all of them")


def cloned(world, runner):
    heading("a machine is copied: the same disk twice")
    runner.stop()
    clone = world.kept(runner.cloned("clone"))
    world.machines.append(clone)
    runner.start()
    clone.start()
    before = world.by_hosts()["requests"]
    for number, machine in enumerate((runner, clone)):
        machine.buy(f"What is {number} + 200? asks {machine.name}, from the same disk")
    shipped(world, before + 2)
    ledgers = world.operator.document("fleet", "status")["ledgers"]
    copies = [ledger for ledger in ledgers if ledger["copy_of"]]
    world.expect(len(ledgers) == 4 and len(copies) == 1, "the copy did not take a name of its own")
    fact("runner", "one of the two took a name of its own; what both have counts once")
    return clone


def spent_up(world, before, bound):
    heading("all machines spend until the cap stops each of them")
    refusals = {}

    def spend(machine):
        served = time.monotonic()
        for number in range(ASKED_MAX):
            status, code = machine.ask(f"hard: why is it {number}? asks {machine.name} until the end")
            refusals[machine.name] = f"{status} {code}"
            if status == 200:
                served = time.monotonic()
            elif status == 402 or time.monotonic() - served > BUSY_S:
                return
            else:
                time.sleep(PAUSE_S)

    spending = [threading.Thread(target=spend, args=(machine,)) for machine in world.machines]
    [thread.start() for thread in spending]
    [thread.join() for thread in spending]
    for machine in world.machines:
        refusal = refusals[machine.name]
        is_stopped = refusal in ("402 cap_reached", "429 cap_busy")
        world.expect(is_stopped, f"{machine.name} was not stopped by the cap: {refusal}")
        fact(machine.name, refusal)
    is_reached = "402 cap_reached" in refusals.values()
    world.expect(is_reached, "no machine was told that nothing is left of the cap")
    spent, limit = world.by_service() - before, round(float(LIMIT_USD) * 1_000_000)
    fact("cap", usd(limit))
    fact("spent", f"{usd(spent)} since it was set")
    fact("bound", f"{usd(bound)}, as it was printed before")
    world.expect(spent <= bound, "more was spent than the bound says")
    # Where a lease never comes, the machines stop far below the cap.
    least = limit - len(world.machines) * world.dearest()
    world.expect(spent >= least, f"the machines stopped at {usd(spent)}, though the cap is {usd(limit)}")


def reckoned(world):
    heading("the books")
    for machine in world.machines:
        machine.stop()
    journals, entries = world.by_journals()
    shipped(world, len(entries))
    hosts, books = world.by_hosts(), world.by_service()
    shown(world.operator.says("spend", "--fleet"))
    print()
    fact("hosts", f"{usd(hosts['billed_micro_usd'])}: what the fleet's database sums")
    fact("journals", f"{usd(journals)}: what the machines' disks have, each entry once")
    fact("books", f"{usd(books)}: what the service debited")
    differs = max(hosts["billed_micro_usd"], journals, books) - min(hosts["billed_micro_usd"], journals, books)
    fact("difference", usd(differs))
    world.expect(differs == 0, "the books differ")
    unknown = hosts["in_doubt"] + hosts["unreported"]
    world.expect(unknown == 0, f"{unknown} entries have no price")


def played(world):
    laptop, server, runner = introduced(world)
    before = world.by_service()
    bound = promised(world, laptop)
    shipped(world, len(world.by_journals()[1]))
    killed(world, server, world.by_hosts()["requests"])
    offline(world, laptop, world.by_hosts()["requests"])
    cloned(world, runner)
    spent_up(world, before, bound)
    reckoned(world)


def main():
    folder = Path(tempfile.mkdtemp(prefix="bursar-fleet-"))
    world = World(folder)
    try:
        world.begin()
        played(world)
    except (Wrong, AssertionError, RuntimeError) as error:
        fact("WRONG", str(error)[:1000], "bad")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        world.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if world.wrong:
        return 1
    fact("result", "every step did what it says; the three kinds of books agree to the micro-dollar", "good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
