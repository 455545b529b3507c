// The toolbar icon says how it stands: `!` without a server, `II` while paused, else how many commands
// run. A command is often over before it could be seen, so the badge stays a moment longer.

const LINGER_MS = 1500;
const BLUE = "#1f5fd6";
const AMBER = "#b45309";
const GREY = "#6b7280";

export class Badge {
  #action;
  #later;
  /** Whether there is a server is not known to a service worker that was just woken. */
  #now = { is_connected: null, is_paused: false, n_running: 0 };
  #shown = null;
  #lit = null;

  /** `action` is chrome.action. */
  constructor(action, later = setTimeout) {
    this.#action = action;
    this.#later = (work, ms) => later(work, ms);
  }

  /** Takes what changed of `{is_connected, is_paused, n_running}`. */
  show(changed) {
    const n_before = this.#now.n_running;
    Object.assign(this.#now, changed);
    const { n_running } = this.#now;
    if (n_running === 0 && n_before > 0) {
      const lit = (this.#lit = {});
      this.#later(() => {
        if (this.#lit !== lit) return;
        this.#lit = null;
        this.#paint();
      }, LINGER_MS);
    }
    if (n_running > 0) this.#lit = null;
    // It goes on showing the last command for a moment.
    if (this.#lit === null || !this.#isPlain()) this.#paint();
  }

  #isPlain() {
    return this.#now.is_connected && !this.#now.is_paused;
  }

  #paint() {
    const { is_connected, is_paused, n_running } = this.#now;
    if (is_connected === null) return;
    let [text, color, title] = ["", GREY, "Raincheck"];
    if (!is_connected) [text, color, title] = ["!", GREY, "Raincheck: no server is connected"];
    else if (n_running > 0) [text, color, title] = [n_running > 99 ? "99+" : String(n_running), BLUE, `Raincheck: ${n_running === 1 ? "a command runs" : `${n_running} commands run`}`];
    else if (is_paused) [text, color, title] = ["II", AMBER, "Raincheck: paused"];
    const next = `${text}/${title}`;
    if (next === this.#shown) return;
    this.#shown = next;
    this.#action.setBadgeText({ text });
    this.#action.setBadgeBackgroundColor?.({ color });
    this.#action.setBadgeTextColor?.({ color: "#ffffff" });
    this.#action.setTitle?.({ title });
  }
}
