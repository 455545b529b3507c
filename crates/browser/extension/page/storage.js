// What a page keeps in the browser, of its own origin alone. The server asks for it only where a person allowed that.
//
// `storage` -> `{url, origin, local: {name: value}, session: {name: value}, left_out?}`
// `cookies` -> `{url, origin, cookies: [{name, value, domain, path, expires?, secure, http_only, same_site?}]}`: those that go with a request for the page

import { CommandError, dropAbsent } from "../commands/errors.js";
import { attach, send } from "../tabs/sessions.js";
import { ask } from "./reach.js";

const MAX_COOKIES = 300;

/** A date that no calendar has is as good as none. */
function dateOf(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

export async function storage(_, run) {
  const told = await ask(run, "stored");
  if (told.is_closed) throw new CommandError("tool_failed", "this page keeps nothing: it has no origin of its own, or storage is switched off", { guarantee: "executed", reason: "page_error" });
  return told;
}

export async function cookies(_, run) {
  await attach(run.tab_id);
  const { url } = await chrome.tabs.get(run.tab_id);
  const { cookies: found } = await send(run.tab_id, "Network.getCookies", { urls: [url] });
  const told = found.slice(0, MAX_COOKIES).map(({ name, value, domain, path, expires, secure, httpOnly, sameSite, session }) =>
    dropAbsent({ name, value, domain, path, expires: session ? undefined : dateOf(expires), secure, http_only: httpOnly, same_site: sameSite?.toLowerCase() }));
  return { url, origin: new URL(url).origin, cookies: told };
}
