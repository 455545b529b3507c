// The extension's page, in the toolbar's popup and as a tab: asks the service worker and the offscreen
// document how it stands, and shows it. What pages chose (titles, addresses, messages) is set as text.

import { Lists } from "./lists.js";
import { SILENT, linkOf, noticeOf, span, stopAllOf } from "./words.js";

const EVERY_MS = 1000;
/** As many commands are shown at first; the same number stands in the style sheet. */
const SHOWN = 12;

const $ = (id) => document.getElementById(id);
const lists = new Lists({ live: $("live"), recent: $("recent"), stop: (id) => ask({ ask: "stop", id }), say: (words) => say("said", words) });
let known = null;
let is_asking = false;
/** How often in a row the service worker did not answer: it may be starting. */
let n_silent = 0;

document.documentElement.classList.toggle("popup", new URLSearchParams(location.search).has("popup"));
wire();
look();
setInterval(() => document.hidden || look(), EVERY_MS);
document.addEventListener("visibilitychange", () => document.hidden || look());
chrome.storage.onChanged.addListener((changes) => (changes.recent || changes.paused_at) && look());

// ---- asking ------------------------------------------------------------------------------

async function look() {
  if (is_asking) return;
  is_asking = true;
  try {
    await ask({ ask: "state" });
  } finally {
    is_asking = false;
  }
}

async function ask(question) {
  const [state, link] = await Promise.all([tell({ to: "worker", kind: "desk", ...question }), tell({ to: "offscreen", kind: "status" })]);
  n_silent = state?.live ? 0 : n_silent + 1;
  if (state?.live) known = state;
  show(known, link);
  return state;
}

function tell(message) {
  return chrome.runtime.sendMessage(message).catch(() => null);
}

// ---- showing -----------------------------------------------------------------------------

function show(state, link) {
  const [tone, words] = linkOf(link);
  $("link").dataset.tone = tone;
  say("link-words", words);
  if (n_silent > 2) notice(SILENT);
  if (!state || n_silent > 2) return;
  notice(noticeOf(link, state.paused_at, state.live.length, state.now));
  const is_paused = state.paused_at !== null;
  say("pause", is_paused ? "Resume" : "Pause");
  $("pause").disabled = false;
  $("pause").className = is_paused ? "strong" : "quiet";
  $("stop-all").hidden = state.live.length === 0;
  say("stop-all", stopAllOf(state.paused_at));
  say("live-count", state.live.length);
  $("live-count").hidden = state.live.length < 2;
  $("live-empty").hidden = state.live.length > 0;
  $("recent-empty").hidden = state.recent.length > 0;
  $("clear").hidden = state.recent.length === 0;
  $("show-all").hidden = state.recent.length <= SHOWN || $("recent").classList.contains("all");
  say("show-all", `Show all ${state.recent.length}`);
  lists.show(state);
  settings(state);
  say("numbers", numbersOf(state, link).join(" · "));
}

function numbersOf({ n_commands, now }, link) {
  const numbers = [`${n_commands} command${n_commands === 1 ? "" : "s"} since the browser started`];
  if (link?.port) numbers.push(`port ${link.port}`);
  if (link?.polled_at) numbers.push(`server heard of ${span(Math.max(0, now - link.polled_at))} ago`);
  return [...numbers, `version ${chrome.runtime.getManifest().version}`];
}

function notice(told) {
  $("notice").hidden = told === null;
  if (told === null) return;
  $("notice").dataset.tone = told.tone;
  say("notice-title", told.title);
  marked($("notice-words"), told.words);
}

/** Text in which what stands between backticks is code. */
function marked(element, words) {
  if (element.dataset.words === words) return;
  element.dataset.words = words;
  element.replaceChildren(...words.split("`").map((part, n) => (n % 2 === 0 ? part : Object.assign(document.createElement("code"), { textContent: part }))));
}

function say(id, words) {
  const element = $(id);
  const text = String(words);
  if (element.textContent !== text) element.textContent = text;
}

// ---- settings ----------------------------------------------------------------------------

let is_edited = false;
let shown_origins = "";

function settings({ dialogs, origins }) {
  for (const choice of document.querySelectorAll("[name=dialogs]")) choice.checked = choice.value === dialogs;
  const text = JSON.stringify(origins);
  if (is_edited || text === shown_origins) return;
  shown_origins = text;
  for (const choice of document.querySelectorAll("[name=mode]")) choice.checked = choice.value === origins.mode;
  $("open-list").value = origins.open.join("\n");
  $("closed-list").value = origins.closed.join("\n");
  $("open-field").hidden = origins.mode !== "only";
}

function edited() {
  is_edited = true;
  $("origins-save").disabled = false;
  say("origins-saved", "");
  $("open-field").hidden = new FormData($("origins")).get("mode") !== "only";
}

async function save(event) {
  event.preventDefault();
  const typed = new FormData($("origins"));
  const lines = (name) => String(typed.get(name) ?? "").split("\n");
  const state = await ask({ ask: "origins", origins: { mode: typed.get("mode"), open: lines("open"), closed: lines("closed") } });
  const problem = state ? state.error : "the extension did not answer; try again";
  $("origins-problem").hidden = !problem;
  say("origins-problem", problem ?? "");
  if (problem) return;
  is_edited = false;
  shown_origins = "";
  settings(state);
  $("origins-save").disabled = true;
  say("origins-saved", "Saved");
}

// ---- acting ------------------------------------------------------------------------------

function wire() {
  const pause = () => ask({ ask: known?.paused_at == null ? "pause" : "resume" });
  $("pause").addEventListener("click", pause);
  $("show-all").addEventListener("click", () => {
    $("recent").classList.add("all");
    $("show-all").hidden = true;
    $("recent").children[SHOWN]?.querySelector("summary").focus();
  });
  $("stop-all").addEventListener("click", () => ask({ ask: "stop_all" }));
  $("clear").addEventListener("click", () => ask({ ask: "clear" }));
  $("dialogs").addEventListener("change", ({ target }) => ask({ ask: "dialogs", policy: target.value }));
  $("origins").addEventListener("input", edited);
  $("origins").addEventListener("submit", save);
  $("open-page").addEventListener("click", (event) => {
    event.preventDefault();
    chrome.runtime.openOptionsPage();
    if (document.documentElement.classList.contains("popup")) window.close();
  });
}
