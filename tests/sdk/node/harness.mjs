// Runs `bursar run` in front of `bursar sandbox`, for the tests beside it; the Python twin
// (tests/sdk/python/harness.py) explains the rules. Promise: every wait ends at a deadline with the
// programs' own output in the error, and each door's ledger is compared with the sandbox's books.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import OpenAI from "openai";

const BURSAR = process.env.BURSAR_BIN ?? new URL("../../../target/debug/bursar", import.meta.url).pathname;
const API_KEY = "sandbox-key";
// Nothing that is set on this machine may reach the programs.
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(BURSAR_|OPENAI_)/.test(key)));

/** Polls `check` until it returns something true. */
export async function eventually(what, check, deadlineMs = 20_000) {
  const end = performance.now() + deadlineMs;
  let last;
  for (;;) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      if (!(error instanceof assert.AssertionError)) throw error;
      last = error;
    }
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${what}`, { cause: last });
    await pause(20);
  }
}

async function post(url, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(body), headers });
  assert.ok(answer.ok, `${url}: ${answer.status} ${await answer.text()}`);
}

class Program {
  constructor(name, args) {
    this.name = name;
    this.lines = [];
    this.child = spawn(BURSAR, args, { env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
    this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve(code ?? signal)));
    for (const pipe of [this.child.stdout, this.child.stderr]) {
      createInterface({ input: pipe }).on("line", (line) => this.lines.push(line));
    }
  }

  said() {
    return `--- ${this.name}\n${this.lines.slice(-60).join("\n")}`;
  }

  /** The address in the line `<what> listening on http://…`. */
  async address(what) {
    const pattern = new RegExp(`${what} listening on (http://\\S+)`);
    const found = () => {
      assert.equal(this.child.exitCode, null, `${this.name} has ended\n${this.said()}`);
      return this.lines.map((line) => pattern.exec(line)?.[1]).find(Boolean);
    };
    return (await eventually(`${this.name}: ${what} listening`, found, 30_000)).replace(/\/$/, "");
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.child.kill("SIGTERM");
    const kill = setTimeout(() => this.child.kill("SIGKILL"), 30_000);
    const code = await this.ended;
    clearTimeout(kill);
    assert.equal(code, 0, this.said());
  }
}

/** A door of its own for one test; `use` gets it, and afterwards ledger and books must agree. */
export async function withDoor(use, config = "") {
  const folder = mkdtempSync(join(tmpdir(), "bursar-sdk-"));
  const programs = [];
  const start = (name, ...args) => (programs.push(new Program(name, args)), programs.at(-1));
  try {
    const sandbox = start("sandbox", "sandbox", "--listen", "127.0.0.1:0", "--seed", "1", "--api-key", API_KEY);
    const truth = await sandbox.address("sandbox");
    const keyFile = join(folder, "api-key");
    writeFileSync(keyFile, API_KEY, { mode: 0o600 });
    const state = join(folder, "state");
    const configFile = join(folder, "config.toml");
    writeFileSync(configFile, config);
    const startBursar = (listen) =>
      start(
        "bursar", "run", "--config", configFile, "--upstream", truth, "--api-key-file", keyFile,
        "--listen", listen, "--admin", "127.0.0.1:0", "--state-dir", state,
      ); // prettier-ignore
    let bursar = startBursar("127.0.0.1:0");
    const url = await bursar.address("proxy");
    const ask = (...command) =>
      execFileSync(BURSAR, [...command, "--json", "--state-dir", state], { encoding: "utf8", env: ENVIRONMENT });
    const door = {
      url,
      sent: 0,
      // A test whose receipt is lost on the wire says so: then the sum is a bound, not a figure.
      doubtAllowed: false,
      /** Called when the app has given up once and asks again. */
      beforeSecond: async () => {},
      /** kill -9, and a new process at the same address. */
      async killAndStart() {
        await bursar.kill();
        programs.splice(programs.indexOf(bursar), 1);
        bursar = startBursar(url.replace("http://", ""));
        await bursar.address("proxy");
      },
      client(options = {}, lane = "/v1") {
        // Only counts; the SDK's own way to watch its requests.
        const counting = async (...args) => {
          if (++door.sent === 2) await door.beforeSecond();
          return fetch(...args);
        };
        return new OpenAI({ baseURL: url + lane, apiKey: "unused", fetch: counting, ...options });
      },
      ask,
      release: (hold) => post(`${truth}/sandbox/release`, { hold }),
      fault: (rule) => post(`${truth}/sandbox/faults`, rule),
      books: async () => (await fetch(`${truth}/sandbox/books`)).json(),
      entries: () => ask("receipts").split("\n").filter(Boolean).map((line) => JSON.parse(line)),
      spend: () => JSON.parse(ask("spend", "--since", "24h", "--tz", "UTC")),
    };
    await use(door);
    await eventually("ledger and books agree", () => ledgerAgrees(door));
  } catch (error) {
    throw new Error([error.message, ...programs.map((program) => program.said())].join("\n"), { cause: error });
  } finally {
    for (const program of programs.reverse()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Key by key: the settled amounts of a key are exactly its debits. */
async function ledgerAgrees(door) {
  const { debits } = await door.books();
  const entries = Map.groupBy(door.entries(), (entry) => entry.key ?? null);
  let settled = 0;
  let inDoubt = 0;
  for (const [key, mine] of Map.groupBy(debits, (debit) => debit.key)) {
    assert.ok(entries.has(key), `a debit without an entry: ${JSON.stringify(mine)}`);
    if (entries.get(key).every((entry) => entry.state === "unreported")) continue;
    const sum = (rows, name) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
    const known = sum(entries.get(key), "billed_micro_usd");
    if (door.doubtAllowed && entries.get(key).some((entry) => entry.state === "in_doubt")) {
      inDoubt += sum(mine, "amount_micro_usd") - known;
      settled += known;
      continue;
    }
    assert.equal(known, sum(mine, "amount_micro_usd"));
    settled += sum(mine, "amount_micro_usd");
  }
  assert.ok(inDoubt >= 0);
  const spend = door.spend();
  assert.equal(spend.billed_micro_usd, settled);
  assert.deepEqual([spend.open, spend.damaged], [0, 0]);
  assert.ok(door.doubtAllowed || spend.in_doubt === 0, `${spend.in_doubt} in doubt`);
  return true;
}
