// `bursar run` in front of `bursar sandbox` with some traffic, a server of another origin, and a Chromium, for the tests
// beside it. Promise: every wait ends at a deadline; all programs are ended, by their own ids, and their folders removed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const BURSAR = process.env.BURSAR_BIN ?? new URL("../../target/debug/bursar", import.meta.url).pathname;
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(BURSAR_|OPENAI_)/.test(key)));
const API_KEY = "sandbox-key";

/** A name of another machine that the browser is led to this one by, as by a name server that is not to be trusted. */
export const REBOUND = "evil.example";

const CHROMIUM = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`,
];

function started(name, args) {
  const child = spawn(BURSAR, args, { env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
  const lines = [];
  const waiting = [];
  for (const pipe of [child.stdout, child.stderr]) {
    createInterface({ input: pipe }).on("line", (line) => {
      lines.push(line);
      waiting.forEach((look) => look());
    });
  }
  const ended = new Promise((resolve) => child.on("close", resolve));
  /** The address in the line `<what> listening on http://…`. */
  const address = (what) =>
    new Promise((resolve, reject) => {
      const said = () => `${name}: no ${what}\n${lines.slice(-40).join("\n")}`;
      const late = setTimeout(() => reject(new Error(said())), 30_000);
      const look = () => {
        const line = lines.find((line) => line.startsWith(`${what} listening on http://`));
        if (!line) return;
        clearTimeout(late);
        resolve(line.replace(/^.* on /, "").replace(/\/$/, ""));
      };
      waiting.push(look);
      look();
      ended.then(() => (clearTimeout(late), reject(new Error(said()))));
    });
  const stop = async () => {
    child.kill("SIGTERM");
    const kill = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await ended;
    clearTimeout(kill);
  };
  return { address, stop };
}

async function post(url, body, token) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  return fetch(url, { method: "POST", body: JSON.stringify(body), headers });
}

const APPS = ["checkout-assistant", "nightly-eval", "web"];

/** The daemon with three apps, caps, receipts of several kinds, a failure and doubts. */
export async function openStage() {
  const folder = mkdtempSync(join(tmpdir(), "bursar-page-"));
  const programs = [];
  const start = (name, ...args) => (programs.push(started(name, args)), programs.at(-1));
  const close = async () => {
    for (const program of programs.reverse()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const sandbox = start("sandbox", "sandbox", "--listen", "127.0.0.1:0", "--seed", "1", "--api-key", API_KEY);
    const service = await sandbox.address("sandbox");
    const secret = (name, text) => {
      const path = join(folder, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    };
    const tokens = Object.fromEntries(APPS.map((app) => [app, `token-of-${app}-0123456789abcdef0123456789abcdef`]));
    const apps = APPS.map((app) => {
      const cap = app === "web" ? "\ncap_day_micro_usd = 250000" : "";
      return `[[app]]\nname = "${app}"\ntoken_file = "${secret(app, tokens[app])}"${cap}\n`;
    });
    const caps = "[caps]\nday_micro_usd = 5000000\n[retry]\nattempts = 1\n";
    const config = secret("config.toml", caps + apps.join(""));
    const bursar = start(
      "bursar", "run", "--config", config, "--upstream", service, "--api-key-file", secret("api-key", API_KEY),
      "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state-dir", join(folder, "state"),
    ); // prettier-ignore
    const [proxy, admin] = [await bursar.address("proxy"), await bursar.address("admin")];
    const fault = (fault) => post(`${service}/sandbox/faults`, { times: 1, fault });
    const chat = async (app, prompt, more = {}, lane = "/v1") => {
      const body = { model: "auto", messages: [{ role: "user", content: prompt }], ...more };
      const answer = await post(`${proxy}${lane}/chat/completions`, body, tokens[app]);
      await answer.text().catch(() => {});
      return answer;
    };
    const asked = [
      ["web", "What is 12 times 12?"],
      ["web", "Write a haiku about the sea."],
      ["checkout-assistant", "Summarize: the parcel is late, the customer is unhappy, and wants a refund."],
      ["checkout-assistant", "Translate to French: good morning"],
      ["nightly-eval", "Write a function that adds two numbers in Python."],
      ["nightly-eval", "Prove that there are infinitely many primes, in detail, and discuss the history."],
    ];
    for (const [app, prompt] of asked) assert.equal((await chat(app, prompt)).status, 200);
    await chat("web", "Tell me a short story.", { stream: true });
    await chat("nightly-eval", "What is the capital of Norway?", { stream: true }, "/agent/v1");
    await fault({ status: 503 });
    await chat("checkout-assistant", "This one is refused.");
    await fault({ status: 400, body: '{"detail": "no such thing"}' });
    await chat("web", "This one is wrong.", { model: "<b>bold</b>" });
    await fault({ cut_before_head: true });
    await chat("nightly-eval", "This one is cut.");
    return { admin, chat, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A site of another origin; `page` is what it shows. */
export async function openSite() {
  const site = { page: "" };
  const server = createServer((_, answer) => {
    answer.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    answer.end(site.page);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  site.url = `http://127.0.0.1:${server.address().port}`;
  site.close = () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve)));
  return site;
}

export async function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // An empty profile of its own.
  return chromium.launch({ executablePath, args: CHROMIUM });
}
