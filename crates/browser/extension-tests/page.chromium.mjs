// The extension's page in a real Chromium, under every width and scheme that it is made for. Run on its own:
// `node --test page.chromium.mjs` with `chromium` on the PATH, or with CHROMIUM.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open as openPage } from "./chromium.mjs";

const NOW = 1_800_000_000_000;
const HOSTILE = `<img src=x onerror="document.title='taken'"> \u202Eevil ${"a very long title ".repeat(20)}`;
const URL_LONG = `https://${"averyverylongname.".repeat(9)}example/${"path/".repeat(40)}`;

const ok = { state: "connected", name: "browser-mcp", port: 41873, polled_at: NOW };
const caller = { owner: "a-very-long-name-of-an-owner-of-tokens", key: "k", n: 1 };
const row = (id, more = {}) => ({ id, attempt: 1, action: "execute_js", detail: "x".repeat(200), caller, tab_id: 7, url: URL_LONG, title: HOSTILE, at: NOW - 9000, began_at: NOW - 9000, limit_ms: 600_000, ...more });
const ended = (n) => row(`e${n}`, { ended_at: NOW - 1000, end: ["complete", "error", "timeout", "cancelled", "dropped"][n % 5], message: HOSTILE });
const state = (more = {}) => ({ now: NOW, paused_at: null, live: [], recent: [], n_commands: 12, dialogs: "dismiss", origins: { mode: "all_but", closed: [], open: [] }, ...more });
const busy = state({ live: [row("l1"), row("l2", { began_at: undefined, title: "", url: "" })], recent: Array.from({ length: 50 }, (_, n) => ended(n)), origins: { mode: "only", closed: [`${"a".repeat(60)}.example`], open: ["example.com"] } });
const STATES = {
  empty: [state(), ok],
  busy: [busy, ok],
  paused: [{ ...busy, paused_at: NOW - 60_000 }, ok],
  "without a server": [state(), { state: "disconnected" }],
  incompatible: [state(), { state: "incompatible" }],
};

let browser;
const open = (query, told) => openPage(browser, `status/status.html${query}`, stub, told, NOW);

before(async () => (browser = await launch()));
after(() => browser?.close());

test("nothing is cut off or scrolls sideways, from 320 to 800 pixels, light and dark", async () => {
  for (const [name, told] of Object.entries(STATES)) {
    const page = await open("", told);
    for (const width of [320, 360, 420, 560, 640, 800]) {
      for (const scheme of ["light", "dark"]) {
        await page.shape(width, scheme);
        // What may be long ends with an ellipsis; what may not is whole.
        const wide = await page.run(`[...document.querySelectorAll("button:not(.tab), .at, .took, .end, h1, h2, legend, label")].filter((one) => one.checkVisibility() && (one.getBoundingClientRect().right > innerWidth || one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)).map((one) => one.className || one.id || one.tagName)`);
        assert.deepEqual([wide, await page.run("document.documentElement.scrollWidth")], [[], width], `${name}, ${width}, ${scheme}`);
      }
    }
    await page.close();
  }
});

test("text has a contrast of at least 4.5, light and dark", async () => {
  const page = await open("", STATES.paused);
  for (const scheme of ["light", "dark"]) {
    await page.shape(640, scheme);
    assert.deepEqual(await page.run(`(${weakTexts})()`), [], scheme);
  }
  await page.close();
});

test("words of pages stay words, and nothing is loaded or refused [BROWSER-28]", async () => {
  const page = await open("", STATES.busy);
  const shown = await page.run(`[document.title, document.querySelector("#live .title").textContent, document.images.length, document.querySelectorAll("#recent li").length]`);
  assert.deepEqual(shown, ["Raincheck", HOSTILE, 1, 50]);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("every control has a name, and the keyboard reaches each that is shown", async () => {
  const page = await open("", STATES.busy);
  const controls = await page.controls();
  assert.deepEqual(controls.filter((one) => one.name === ""), []);
  for (const name of ["Pause", "Stop all and pause", "Save", "Clear", "Show all 50"]) assert.ok(controls.some((one) => one.name === name), name);
  const n_shown = await page.run(`[...document.querySelectorAll("button, a, summary, textarea, input[type=radio]:checked")].filter((one) => one.checkVisibility() && !one.disabled).length`);
  const seen = new Set();
  for (let n = 0; n < 2 * n_shown && seen.size < n_shown; n++) {
    await page.press("Tab");
    seen.add(await page.run(`(document.activeElement.dataset.mark ??= String(Math.random()))`));
  }
  assert.equal(seen.size, n_shown);
  await page.close();
});

test("a press of Stop asks for that command alone, and Pause for a pause", async () => {
  const page = await open("", STATES.busy);
  await page.run(`document.querySelector("#live .stop").focus()`);
  await page.press("Enter");
  await page.run(`document.querySelector("#pause").focus()`);
  await page.press("Enter");
  await page.until(`asked.length >= 2`);
  assert.deepEqual(await page.run("asked"), [{ ask: "stop", id: "l1" }, { ask: "pause" }]);
  await page.close();
});

test("the popup has what runs and the newest, and a way to the whole page", async () => {
  const page = await open("?popup", STATES.busy);
  await page.shape(400, "light");
  const shown = await page.run(`[document.querySelector(".settings"), document.querySelector("#open-page"), ...document.querySelectorAll("#recent li")].map((one) => one.checkVisibility())`);
  assert.deepEqual([shown[0], shown[1], shown.slice(2).filter(Boolean).length], [false, true, 6]);
  await page.close();
});

/** Runs in the page, before it: the service worker and the offscreen document answer as the test says. */
function stub([state, link], now) {
  if (globalThis.chrome?.runtime?.sendMessage === undefined) return;
  globalThis.asked = [];
  Date.now = () => now;
  chrome.runtime.sendMessage = async ({ to, kind, ...question }) => {
    if (to === "offscreen") return link;
    if (question.ask !== "state") globalThis.asked.push(question);
    return state;
  };
}

/** Runs in the page: texts that stand out too little from what is behind them. */
function weakTexts() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => channels(color).slice(0, 3).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)).reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const weak = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (texts.currentNode.data.trim() === "" || !element.checkVisibility() || element.closest(":disabled, .unseen")) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) weak.add(`${element.className || element.id || element.tagName}: ${contrast.toFixed(2)}`);
  }
  return [...weak];
}
