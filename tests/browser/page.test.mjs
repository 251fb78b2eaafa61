// The status page and an entry's page in Chromium. Promise: a person gets them by a link from anywhere; no page of another
// origin gets anything else; they have no finding of axe-core, break no number at 360 px, and are used by the keyboard.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser, openSite, openStage, REBOUND } from "./harness.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = process.env.BURSAR_SCREENSHOTS;
const LIMIT = { timeout: 120_000 };
const TEN_SECONDS = 10_000;

let stage;
let site;
let browser;

before(async () => {
  stage = await openStage();
  site = await openSite();
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await site?.close();
  await stage?.close();
});

/** A page in a context of its own; what went wrong in it is in `complaints`, what was answered in `answers`. */
async function opened(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.answers = [];
  page.asked = 0;
  context.on("request", (request) => {
    if (request.url().startsWith(stage.admin)) page.asked += 1;
  });
  page.on("console", (message) => message.type() === "error" && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  context.on("response", (answer) => {
    if (answer.url().startsWith(stage.admin)) page.answers.push([answer.request().resourceType(), answer.status()]);
  });
  page.setDefaultTimeout(15_000);
  return page;
}

/** The page of the other site, showing this. */
async function atSite(markup, options) {
  const page = await opened(options);
  site.page = `<!doctype html><html lang="en"><title>another site</title><body>${markup}</body></html>`;
  await page.goto(site.url);
  return page;
}

const heading = (page) => page.locator("h1").innerText();

test("a link on another site leads to both pages, and they load with no complaint", LIMIT, async () => {
  const page = await atSite(`<a href="${stage.admin}/">bursar</a>`);
  await page.click("a");
  assert.equal(await heading(page), "bursar");
  const entry = await page.locator("td.entry a").first().getAttribute("href");
  assert.deepEqual(page.complaints, []);
  assert.ok(page.answers.every(([, status]) => status === 200), JSON.stringify(page.answers));

  const other = await atSite(`<a href="${stage.admin}${entry}">an entry</a>`);
  await other.click("a");
  assert.match(await heading(other), /^Entry [0-9a-f-]{36}$/);
  assert.deepEqual(other.complaints, []);
});

test("a page of another origin gets nothing by a frame, an image, a script, a fetch or a form", LIMIT, async () => {
  for (const path of ["/", "/metrics", "/api/status", "/favicon.ico"]) {
    const url = stage.admin + path;
    const page = await atSite(
      `<iframe src="${url}"></iframe><object data="${url}"></object><embed src="${url}"><img src="${url}">
       <script src="${url}"></script><link rel="stylesheet" href="${url}"><audio src="${url}"></audio>`,
    );
    const read = await page.evaluate(async (url) => {
      const tried = async (options) => {
        try {
          const answer = await fetch(url, options);
          return `${answer.type} ${answer.status} ${await answer.text()}`;
        } catch {
          return "nothing";
        }
      };
      return [await tried({}), await tried({ mode: "no-cors" }), await tried({ mode: "same-origin" })];
    }, url);
    assert.deepEqual(read, ["nothing", "nothing", "nothing"], path);
    await page.waitForLoadState("networkidle");
    // Playwright reports no request for an icon.
    assert.ok(page.asked >= 8 || path === "/favicon.ico", `${path}: ${page.asked} requests were made`);
    assert.equal(await page.evaluate(() => document.images[0].naturalWidth), 0);
    assert.ok(page.answers.every(([, status]) => status === 403), `${path}: ${JSON.stringify(page.answers)}`);
    for (const frame of page.frames().slice(1)) {
      const text = await frame.locator("body").innerText().catch(() => "");
      assert.doesNotMatch(text, /Billed|bursar_|version/, path);
    }
    await page.context().close();
  }
  const page = await atSite(`<form method="post" action="${stage.admin}/"><button>send</button></form>`);
  const [answer] = await Promise.all([page.waitForResponse(`${stage.admin}/`), page.click("button")]);
  assert.equal(answer.status(), 403);
});

test("a popup shows the page to the person, and the page that opened it holds no handle on it", LIMIT, async () => {
  const page = await atSite(`<button onclick="window.handle = window.open('${stage.admin}/')">open</button>`);
  const [popup] = await Promise.all([page.context().waitForEvent("page"), page.click("button")]);
  await popup.waitForLoadState();
  assert.equal(await heading(popup), "bursar");
  assert.equal(await popup.evaluate(() => opener), null);
  await page.waitForFunction(() => handle.closed);
});

test("a name of another site that leads to this machine gets nothing", LIMIT, async () => {
  const page = await opened();
  const url = stage.admin.replace("127.0.0.1", REBOUND);
  assert.equal((await page.goto(`${url}/`)).status(), 403);
  // The page came before its name was led to this machine.
  await page.route(`${url}/own`, (route) => route.fulfill({ contentType: "text/html", body: "<h1>evil</h1>" }));
  await page.goto(`${url}/own`);
  const read = await page.evaluate(async () => {
    const paths = ["/", "/metrics", "/api/status", "/favicon.ico"];
    // Or the browser itself does not let it ask.
    const asked = paths.map((path) => fetch(path, { mode: "same-origin" }).then((answer) => answer.status, () => 403));
    return Promise.all(asked);
  });
  assert.deepEqual(read, [403, 403, 403, 403]);
});

test("the page asks for itself every ten seconds, and keeps focus, place and what is selected", LIMIT, async () => {
  const page = await opened({ viewport: { width: 400, height: 500 } });
  await page.clock.install();
  await page.goto(`${stage.admin}/`);
  const refreshed = async (ms = TEN_SECONDS) => {
    const [answer] = await Promise.all([
      page.waitForResponse((answer) => answer.request().resourceType() === "fetch"),
      page.clock.fastForward(ms),
    ]);
    assert.equal(answer.status(), 200);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done())));
  };
  const newest = () => page.locator("#receipts + table tbody tr td.entry a").first().getAttribute("id");
  const link = page.locator("td.entry a").nth(1);
  const id = await link.getAttribute("id");
  await link.focus();
  const place = await page.evaluate(() => scrollY);
  assert.ok(place > 0, "the page is longer than the window");
  const before = await newest();

  await stage.chat("web", "One more: what is 3 times 4?");
  // The daemon reads the ledger for the page every two seconds at most.
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  await refreshed();
  await page.waitForFunction((before) => !document.querySelector(`#receipts + table tbody tr td.entry a#${CSS.escape(before)}`)?.closest("tr").matches(":first-child"), before);
  assert.notEqual(await newest(), before);
  assert.equal(await page.evaluate(() => document.activeElement.id), id);
  assert.equal(await page.evaluate(() => scrollY), place);

  const text = "Times and days";
  await page.evaluate(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(".verdict .muted"));
    getSelection().addRange(range);
  });
  await refreshed();
  assert.ok((await page.evaluate(() => String(getSelection()))).includes(text), "what is selected stays");
  const note = () => page.locator("#note").innerText();
  assert.match(await note(), /selected: the figures wait/);
  await page.evaluate(() => getSelection().empty());
  await refreshed();
  assert.equal(await note(), "");
  assert.deepEqual(page.complaints, []);
});

test("it can be paused, stops while it is hidden, and says when bursar does not answer", LIMIT, async () => {
  const page = await opened();
  await page.clock.install();
  await page.goto(`${stage.admin}/`);
  const fetched = () => page.answers.filter(([kind]) => kind === "fetch").length;
  const passes = async (ms) => {
    await page.clock.runFor(ms);
    await page.waitForLoadState("networkidle");
  };
  const hide = (hidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);

  await page.click("#pause");
  assert.equal(await page.locator("#pause").innerText(), "Resume");
  assert.equal(await page.locator("#note").innerText(), "Paused.");
  await passes(60_000);
  assert.equal(fetched(), 0);
  await Promise.all([page.waitForResponse(() => true), page.click("#pause")]);
  assert.equal(fetched(), 1, "at once");

  // What is on its way when it is paused takes nothing back of that.
  let onItsWay;
  await page.route(`${stage.admin}/`, (route) => {
    onItsWay = route;
  });
  await page.clock.runFor(TEN_SECONDS);
  while (!onItsWay) await new Promise((resolve) => setTimeout(resolve, 10));
  await page.click("#pause");
  await Promise.all([page.waitForResponse(() => true), onItsWay.continue()]);
  await page.waitForLoadState("networkidle");
  assert.equal(await page.locator("#note").innerText(), "Paused.");
  await page.unroute(`${stage.admin}/`);
  await Promise.all([page.waitForResponse(() => true), page.click("#pause")]);
  const before = fetched();

  await hide(true);
  await passes(60_000);
  assert.equal(fetched(), before);
  await Promise.all([page.waitForResponse(() => true), hide(false)]);
  assert.equal(fetched(), before + 1, "at once");

  await page.route(`${stage.admin}/`, (route) => route.abort());
  await page.clock.runFor(TEN_SECONDS);
  await page.waitForFunction(() => document.getElementById("note").textContent.includes("does not answer"));
  await page.unroute(`${stage.admin}/`);
  await Promise.all([page.waitForResponse(() => true), page.clock.runFor(TEN_SECONDS)]);
  await page.waitForFunction(() => document.getElementById("note").textContent === "");
});

test("without script it is whole, and a link loads it anew", LIMIT, async () => {
  const page = await opened({ javaScriptEnabled: false });
  await page.goto(`${stage.admin}/`);
  assert.equal(await page.locator("#pause").isVisible(), false);
  assert.ok((await page.locator("#receipts + table tbody tr").count()) >= 10);
  const [answer] = await Promise.all([page.waitForResponse(`${stage.admin}/`), page.click("text=Reload")]);
  assert.equal(answer.status(), 200);
  assert.deepEqual(page.complaints, []);
});

test("what stands on it is what was bought, by app, with what failed and what is not known", LIMIT, async () => {
  const page = await opened();
  await page.goto(`${stage.admin}/`);
  const apps = await page.locator("#apps + table tbody th").allInnerTexts();
  assert.deepEqual(apps.map((name) => name.trim()).sort(), ["checkout-assistant", "nightly-eval", "web"]);
  assert.equal(await page.locator("svg.chart g").count(), 30);
  const text = await page.locator("main").innerText();
  for (const part of ["503, failed at the service", "no response", "agent turn", "all, a day", "web, a day", "UTC"]) {
    assert.ok(text.includes(part), `${part}: ${text}`);
  }
  assert.ok(text.includes("<b>bold</b>"), "foreign text is text");
});

test("links are reached and followed by the keyboard, and each is seen when it is", LIMIT, async () => {
  const page = await opened();
  await page.goto(`${stage.admin}/`);
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  const order = [];
  for (let at = 0; at < 3; at += 1) {
    await page.keyboard.press("Tab");
    order.push(await focused());
  }
  assert.deepEqual(order.slice(0, 2), ["Reload", "Pause"]);
  assert.match(order[2], /^[0-9a-f]{8,}$/);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await Promise.all([page.waitForURL(/\/explain\//), page.keyboard.press("Enter")]);
  assert.match(await heading(page), /^Entry /);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Status");
});

const WIDTHS = [1280, 800, 400, 360];

for (const colorScheme of ["light", "dark"]) {
  test(`in ${colorScheme}, axe-core finds nothing, no number is broken, and nothing lies beside the window`, LIMIT, async () => {
    for (const width of WIDTHS) {
      const page = await opened({ viewport: { width, height: 900 }, colorScheme });
      await page.goto(`${stage.admin}/`);
      const entry = await page.locator("td.entry a").first().getAttribute("href");
      for (const [name, path] of [["status", "/"], ["entry", entry]]) {
        await page.goto(stage.admin + path);
        const findings = await page.evaluate(`${AXE}; axe.run()`);
        const told = findings.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("\n")}`);
        assert.deepEqual(told, [], `${name} ${width}`);
        const broken = await page.evaluate(() => {
          const lines = (node, from, to) => {
            const range = document.createRange();
            range.setStart(node, from);
            range.setEnd(node, to);
            return new Set([...range.getClientRects()].map((rect) => Math.round(rect.top))).size;
          };
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const found = [];
          while (walker.nextNode()) {
            const node = walker.currentNode;
            const isNumber = node.parentElement.closest(".number, .entry, figcaption span");
            // A note below a number may go on in the next line, but none of its words.
            const parts = node.parentElement.closest("small") ? /\S+/g : /\S(.*\S)?/gs;
            for (const { 0: text, index } of isNumber ? node.data.matchAll(parts) : []) {
              if (lines(node, index, index + text.length) > 1) found.push(text);
            }
          }
          const { scrollWidth, clientWidth } = document.documentElement;
          return scrollWidth > clientWidth ? [...found, `${scrollWidth} px of ${clientWidth}`] : found;
        });
        assert.deepEqual(broken, [], `${name} ${width}`);
        if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
      await page.context().close();
    }
  });
}
