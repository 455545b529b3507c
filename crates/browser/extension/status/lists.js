// The two lists of the page. A row is made once and then only changed where it differs, so that what is
// opened, focused or selected stays so.

import { askerOf, clock, endOf, hostOf, lasting, span } from "./words.js";

export class Lists {
  #live;
  #recent;
  #stop;
  #say;
  #asked = new Set();

  /** `stop(id)` ends a command; `say(words)` is heard where the page is read aloud. */
  constructor({ live, recent, stop, say }) {
    this.#live = live;
    this.#recent = recent;
    this.#stop = stop;
    this.#say = say;
  }

  show({ live, recent, now }) {
    const ids = new Set(live.map((row) => row.id));
    for (const id of this.#asked) {
      if (ids.has(id)) continue;
      this.#asked.delete(id);
      const ended = recent.find((row) => row.id === id);
      if (ended) this.#say(`${ended.action}: ${endOf(ended)[0]}`);
    }
    const n_callers = new Set([...live, ...recent].map((row) => row.caller.key)).size;
    fill(this.#live, live, "live-row", (element, row) => this.#run(element, row, now, askerOf(row.caller, n_callers)), (element, row) => this.#wire(element, row));
    fill(this.#recent, recent, "recent-row", (element, row) => past(element, row, now, askerOf(row.caller, n_callers)));
  }

  #wire(element, row) {
    const button = element.querySelector(".stop");
    button.addEventListener("click", () => {
      this.#asked.add(row.id);
      button.disabled = true;
      set(button, "Stopping…");
      this.#stop(row.id);
    });
    element.querySelector(".tab").addEventListener("click", () => showTab(Number(element.dataset.tab_id)));
  }

  #run(element, row, now, asker) {
    const host = hostOf(row.url);
    const began = row.began_at;
    set(element.querySelector(".action"), row.action);
    set(element.querySelector(".detail"), row.detail);
    element.dataset.tab_id = row.tab_id ?? "";
    const tab = element.querySelector(".tab");
    tab.hidden = row.tab_id === undefined;
    set(tab.querySelector(".title"), row.title || host || `tab ${row.tab_id}`);
    set(element.querySelector(".host"), row.title ? host : "");
    set(element.querySelector(".asked"), asker === "" ? "" : `for ${asker}`);
    const spent = began === undefined ? 0 : now - began;
    const limit = row.limit_ms > 0 ? ` of at most ${span(row.limit_ms)}` : "";
    set(element.querySelector(".since"), began === undefined ? "waits for its turn" : `${lasting(spent)}${spent < 1000 ? "" : limit}`);
    const stop = element.querySelector(".stop");
    set(stop, this.#asked.has(row.id) ? "Stopping…" : "Stop");
    stop.setAttribute("aria-label", `Stop ${row.action} in ${row.title || host || "the browser"}`);
    element.classList.toggle("waits", began === undefined);
    const part = row.limit_ms > 0 ? Math.min(1, spent / row.limit_ms) : 0;
    element.querySelector(".bar i").style.inlineSize = `${(part * 100).toFixed(1)}%`;
  }
}

function past(element, row, now, asker) {
  const [words, tone] = endOf(row);
  const at = row.began_at ?? row.at;
  const time = element.querySelector(".at");
  set(time, clock(at, now));
  time.dateTime = new Date(at).toISOString();
  set(element.querySelector(".action"), row.action);
  set(element.querySelector(".detail"), row.detail);
  const place = element.querySelector(".place");
  set(place, row.title || hostOf(row.url));
  set(element.querySelector(".took"), row.began_at === undefined || row.end === "dropped" ? "" : span(row.ended_at - row.began_at));
  const end = element.querySelector(".end");
  set(end, words);
  end.dataset.tone = tone;
  facts(element.querySelector("dl"), [
    ["Why", row.message],
    ["Command", row.detail],
    ["Page", row.title],
    ["Address", row.url],
    ["Tab", row.tab_id],
    ["Asked by", asker],
    ["Came", clock(row.at, now)],
    ["Ended", row.ended_at && clock(row.ended_at, now)],
    ["Engine", row.engine],
    ["Id", row.id],
  ]);
}

/** Pairs of a name and a text; what is empty is left out. */
function facts(list, pairs) {
  const told = pairs.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const text = JSON.stringify(told);
  if (list.dataset.told === text) return;
  list.dataset.told = text;
  const elements = told.flatMap(([name, value]) => {
    const term = document.createElement("dt");
    const said = document.createElement("dd");
    const words = document.createElement("bdi");
    term.textContent = name;
    words.textContent = value;
    said.append(words);
    return [term, said];
  });
  list.replaceChildren(...elements);
}

/** Makes a list show rows in their order, with one element for each id. */
function fill(list, rows, template, change, made = () => {}) {
  const elements = new Map([...list.children].map((element) => [element.dataset.id, element]));
  let before = null;
  for (const row of rows) {
    let element = elements.get(row.id);
    elements.delete(row.id);
    if (!element) {
      element = document.getElementById(template).content.firstElementChild.cloneNode(true);
      element.dataset.id = row.id;
      made(element, row);
    }
    change(element, row);
    const place = before === null ? list.firstElementChild : before.nextElementSibling;
    if (place !== element) list.insertBefore(element, place);
    before = element;
  }
  for (const element of elements.values()) {
    const had_focus = element.contains(document.activeElement);
    element.remove();
    if (had_focus) list.focus();
  }
}

function set(element, words) {
  const text = String(words ?? "");
  if (element.textContent !== text) element.textContent = text;
}

async function showTab(tab_id) {
  const tab = await chrome.tabs.update(tab_id, { active: true }).catch(() => null);
  if (tab) await chrome.windows.update(tab.windowId, { focused: true }).catch(() => {});
}
