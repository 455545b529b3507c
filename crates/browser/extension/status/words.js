// The page's words: times, spans and ends as people read them. Nothing here touches the page.

const ENDS = {
  complete: ["done", "good"],
  error: ["failed", "bad"],
  timeout: ["timed out", "bad"],
  cancelled: ["cancelled", "calm"],
  dropped: ["dropped", "calm"],
};

/** Ends that are the user's own wish, by their reason. */
const WISHED = { stopped_by_user: "stopped", paused: "refused", origin_closed: "refused" };

/** How a command ended, as `[words, tone]`. */
export function endOf({ end, reason }) {
  const wished = Object.hasOwn(WISHED, reason ?? "") ? WISHED[reason] : null;
  return wished ? [wished, "calm"] : (ENDS[end] ?? [String(end), "calm"]);
}

/** Who asked for a command; nothing where it goes without saying, since one client of this computer asks alone. */
export function askerOf({ owner, n }, n_callers) {
  const parts = owner === "" || owner === "local" ? [] : [owner];
  if (n_callers > 1) parts.push(`client ${n}`);
  return parts.join(", ");
}

/** A span as it is read at a glance: `40 ms`, `1.2 s`, `14 s`, `3 min 05 s`, `2 min`, `2 h 10 min`. */
export function span(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

/** How long something has lasted, in whole seconds. */
export function lasting(ms) {
  if (ms < 1000) return "just now";
  return ms < 9950 ? `${Math.floor(ms / 1000)} s` : span(ms);
}

/** The host of an address; what has none is named by its kind. */
export function hostOf(address) {
  try {
    const url = new URL(address);
    return url.host || url.protocol.replace(/:$/, "");
  } catch {
    return "";
  }
}

/** A time of today as a time, of another day with its date. */
export function clock(at, now = Date.now(), locale = undefined) {
  const day = new Date(at);
  const is_today = day.toDateString() === new Date(now).toDateString();
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  return is_today ? day.toLocaleTimeString(locale, time) : day.toLocaleString(locale, { day: "numeric", month: "short", ...time });
}

/** The link as a dot's tone and words. */
export function linkOf(link) {
  switch (link?.state) {
    case "connected":
      return ["good", `Connected to ${link.name || "browser-mcp"}`];
    case "refused":
      return ["bad", "Refused by the server"];
    case "incompatible":
      return ["bad", "Another version than the server"];
    case "disconnected":
      return ["bad", "No server"];
    default:
      return ["calm", "Connecting…"];
  }
}

/** The words of the button that ends everything. */
export function stopAllOf(paused_at) {
  return paused_at === null ? "Stop all and pause" : "Stop all";
}

/** What the user has to know of the state, as `{tone, title, words}`; null while all is well. */
export function noticeOf(link, paused_at, n_live, now = Date.now()) {
  if (paused_at !== null) {
    const still = n_live > 0 ? " What runs goes on until it ends or you stop it." : "";
    return { tone: "wait", title: "Paused", words: `Since ${clock(paused_at, now)}, commands are refused until you resume.${still}` };
  }
  return NOTICES[link?.state] ?? null;
}

/** What is said when nothing of the extension answers its own page. */
export const SILENT = { tone: "bad", title: "The extension does not answer", words: "Reload it at chrome://extensions." };

const NOTICES = {
  refused: {
    tone: "bad",
    title: "The server does not know this pairing",
    words: "Write the extension again with `browser-mcp extension install DIR`, then reload it at chrome://extensions.",
  },
  incompatible: {
    tone: "bad",
    title: "Extension and server do not fit",
    words: "They speak different versions. Run `browser-mcp extension install DIR` with the folder of this extension, then reload it at chrome://extensions.",
  },
  disconnected: {
    tone: "bad",
    title: "No server is connected",
    words: "A client that has `browser-mcp` starts it, and it is found within a second. Otherwise `browser-mcp doctor` says what is wrong.",
  },
};
