// What stands between the user and the commands: it looks on as they come, run and end, turns them away
// while the user paused or where an origin is closed, and answers the extension's page.

import { record } from "../tabs/observed.js";
import { Badge } from "./badge.js";
import { closed, hasRules, loadOrigins, originRules, setOrigins, whyClosed } from "./origins.js";
import { Pause } from "./pause.js";
import { Recent } from "./recent.js";

/** What a command that the user stops ends as: an error, since a bare `cancelled` would not say whose wish it was. */
export const BY_USER = { status: "error", message: "the user stopped it on the extension's page", reason: "stopped_by_user" };

const OPEN = ["received", "accepted", "running"];

export class Desk {
  #browser;
  #journal;
  #recent;
  #pause;
  #badge;
  #running = new Set();
  /** What the page may ask for besides the state; a failure is told as `{error}`. */
  #asked = {
    stop: ({ id }) => this.#stop([id]),
    // Paused first: what waits in the server's lines would come at once.
    stop_all: async () => {
      await this.#setPause(true);
      this.#stop(this.#open().map((record) => record.id));
    },
    pause: () => this.#setPause(true),
    resume: () => this.#setPause(false),
    clear: () => this.#recent.clear(),
    dialogs: ({ policy }) => this.settings.setDialogs(policy),
    origins: ({ origins }) => setOrigins(origins, this.#browser.storage),
  };
  /** `cancel(id, who)` ends a command as the server's request does; `settings` has `dialogs()` and `setDialogs(policy)`. */
  cancel = () => {};
  settings = { dialogs: async () => null, setDialogs: async () => {} };

  /** `browser` is `chrome`: its storage, action and tabs. */
  constructor(browser, journal, clocks = {}) {
    this.#browser = browser;
    this.#journal = journal;
    this.#recent = new Recent(browser.storage.session, clocks);
    this.#pause = new Pause(browser.storage.local);
    this.#badge = new Badge(browser.action, clocks.later);
  }

  /** Reads what must be known before the first command. */
  async load() {
    await Promise.all([this.#recent.load(), this.#pause.load(), loadOrigins(this.#browser.storage)]);
    this.#badge.show({ is_paused: this.#pause.since !== null });
  }

  /** Says whether there is a server. */
  link(is_connected) {
    this.#badge.show({ is_connected });
  }

  /** A server that has just come does not know of a pause. */
  connected() {
    this.link(true);
    this.#tellPause();
  }

  delivered(entries) {
    for (const entry of entries) if (entry?.type === "browser_action" && typeof entry.correlation_id === "string") this.#recent.delivered(entry);
  }

  /** Sees the items for the server on their way out. */
  told(items) {
    this.#recent.told(items);
  }

  /** Fails for a command that may not be taken. */
  admit() {
    this.#pause.check();
  }

  /** Fails for a command that may not begin in its tab; otherwise it is one that runs. */
  async begin(run) {
    this.#running.add(run.id);
    run.onEnd(() => {
      this.#running.delete(run.id);
      this.#count();
    });
    this.#pause.check();
    const looked = run.tab_id === undefined ? null : this.#browser.tabs.get(run.tab_id).catch(() => null);
    if (looked && hasRules()) {
      // Whose page it is stays the user's own: a caller could go through all tabs otherwise.
      if (whyClosed((await looked)?.url ?? "") !== null) throw closed("the page in this tab is closed to commands");
      // A pause or a cancel may have come meanwhile.
      this.#pause.check();
      if (run.ended) throw new Error("it has ended");
    }
    this.#recent.began(run.id);
    looked?.then((tab) => tab && this.#recent.within(run.id, tab));
    this.#count();
  }

  /** Answers the page: always with how it stands, after what it asked for. */
  async answer({ ask, ...more }) {
    try {
      await this.#asked[ask]?.(more);
    } catch (error) {
      return { ...(await this.#state()), error: error.message };
    }
    return await this.#state();
  }

  async #state() {
    const open = new Set(this.#open().map((record) => record.id));
    const rows = this.#recent.list((id) => open.has(id));
    const { n_commands } = await this.#browser.storage.session.get({ n_commands: 0 });
    return {
      now: Date.now(),
      paused_at: this.#pause.since,
      live: rows.filter((row) => row.end === undefined).reverse(),
      recent: rows.filter((row) => row.end !== undefined).slice(0, 50),
      n_commands,
      dialogs: await this.settings.dialogs(),
      origins: originRules(),
    };
  }

  #open() {
    return this.#journal.all(...OPEN);
  }

  #stop(ids) {
    for (const id of ids) this.cancel(id, BY_USER);
  }

  async #setPause(is_on) {
    await this.#pause.set(is_on);
    this.#badge.show({ is_paused: is_on });
    this.#tellPause();
  }

  #tellPause() {
    record({ kind: "user", paused: this.#pause.since !== null });
  }

  #count() {
    this.#badge.show({ n_running: this.#running.size });
  }
}
