// A failure on its way to the caller: a word of the error table, a sentence, and how far the command got.

/** `guarantee` is `not_executed`, `unknown` or `executed`; `reason` tells causes of one code apart. */
export class CommandError extends Error {
  constructor(code, message, { guarantee = "unknown", reason, hint, details } = {}) {
    super(message);
    Object.assign(this, { code, guarantee, reason, hint, details });
  }

  /** The `error` member of an item on the wire. */
  toWire() {
    const { code, message, guarantee, reason, hint, details } = this;
    return dropAbsent({ code, message, guarantee, reason, hint, details });
  }
}

/** Any thrown value as a failure. */
export function asCommandError(error) {
  if (error instanceof CommandError) return error;
  return new CommandError("tool_failed", String(error?.message ?? error), { reason: "browser_error" });
}

export function invalid(message) {
  return new CommandError("invalid_params", message, { guarantee: "not_executed" });
}

export function tabGone(tab_id, guarantee = "not_executed") {
  return new CommandError(guarantee === "not_executed" ? "peer_not_ready" : "peer_lost", `tab ${tab_id} is gone`, {
    guarantee,
    reason: "tab_gone",
    hint: 'list the open tabs with observe {what: "tabs"} and pass one of their tab_id',
  });
}

export function navigatedAway(url) {
  return new CommandError("tool_failed", `the page navigated to ${url || "another page"} while the command ran; its result is lost`, {
    reason: "navigated",
    hint: "look at the new page, then decide whether to run it again",
  });
}

export function dropAbsent(record) {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
