// A failure on its way to the caller: a word of the error table, a sentence, and how far the command got.

/** `guarantee` is `not_executed`, `unknown` or `executed`; `reason` tells causes of one code apart; `goes_on`: what it began may go on. */
export class CommandError extends Error {
  constructor(code, message, { guarantee = "unknown", reason, hint, details, goes_on } = {}) {
    super(message);
    Object.assign(this, { code, guarantee, reason, hint, details, goes_on });
  }

  /** The `error` member of an item on the wire. */
  toWire() {
    const { code, message, guarantee, reason, hint, details, goes_on } = this;
    return dropAbsent({ code, message, guarantee, reason, hint, details, goes_on });
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

/**
 * The end of a run whose work was told to stop and is not known to have: it is no cancel, its guarantee is `unknown`, and
 * `goes_on` says why.
 */
export function unfinished({ status, error }) {
  const told = { ...error, message: `${error.message}; what it began may still go on in the tab`, guarantee: "unknown", goes_on: true };
  // Whose wish it was stays; that it was fulfilled does not.
  if (error.code === "cancelled") Object.assign(told, { code: "tool_failed", reason: error.reason ?? "not_stopped" });
  return { status: status === "cancelled" ? "error" : status, error: told };
}

export function dropAbsent(record) {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
