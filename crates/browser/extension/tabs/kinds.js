// Pages that commands cannot look into, by their kind, and what to do instead. What is refused here has
// not begun.

import { CommandError } from "../commands/errors.js";
import { failureIn, watchPages } from "./navigation.js";
import { isAttached, on } from "./sessions.js";

const LOOK_MS = 3000;
const ERROR_PAGE = /showing error page/i;
const CERTIFICATE = /^net::ERR_(CERT|SSL)_/;

/** The beginning of an address, what it is, and the way on. */
const BY_ADDRESS = [
  { pattern: /^view-source:/i, reason: "view_source", what: "the source of a page", hint: "navigate to its address without `view-source:`, and read it with execute_js: await (await fetch(location.href)).text()" },
  { pattern: /^(chrome|edge|brave|opera|vivaldi|chrome-search|chrome-untrusted|devtools|about):/i, reason: "browser_page", what: "a page of the browser itself", hint: "navigate to a web page first" },
  { pattern: /^[a-z]+-extension:/i, reason: "extension_page", what: "a page of an extension", hint: "navigate to a web page first" },
  { pattern: /^https:\/\/(chromewebstore\.google\.com|chrome\.google\.com\/webstore)(\/|$)/i, reason: "web_store", what: "the store of extensions", hint: "navigate to another page" },
];
const HARMLESS = /^about:(blank|srcdoc)/i;

const crashed = new Set();

/** What the address of a page says of its kind, if that is one that cannot be read. */
export function kindOf(address) {
  return HARMLESS.test(address) ? undefined : BY_ADDRESS.find(({ pattern }) => pattern.test(address));
}

/** `onCrash(tab_id, error)` is told of a page that crashed. */
export function watchCrashes(onCrash) {
  on("Inspector.targetCrashed", (tab_id) => {
    crashed.add(tab_id);
    onCrash(tab_id, crash("unknown"));
  });
  watchPages((kind, tab_id) => (kind === "begun" || kind === "committed" || kind === "closed") && crashed.delete(tab_id));
}

function crash(guarantee) {
  return new CommandError(guarantee === "unknown" ? "peer_lost" : "tool_failed", "the page crashed", { guarantee, reason: "page_crashed", hint: "reload it with interact {action: \"reload\"}, or navigate elsewhere" });
}

/**
 * Fails when the page in a tab is of a kind that cannot be read. `needs` is what a command works on: a `page` with
 * elements, any `file`, what takes a `script`, or what is to be `seen`. `asked` is what `lookAtKind` began. Tells whether it is a PDF, where that matters.
 */
export async function checkKind(tab, needs, asked) {
  const known = kindOf(tab.url ?? "");
  if (known) throw unreadable(known);
  if (crashed.has(tab.id)) throw crash("not_executed");
  // A page that is busy would not tell what it is; what failed to open is known without it.
  if (needs === "seen" || (needs === "script" && isAttached(tab.id) && !failureIn(tab.id))) return false;
  // Where the page is to be read anyway there is nothing to be gained by not waiting for it.
  const type = await (needs === "script" ? Promise.race([contentType(tab.id), sleep(LOOK_MS, null)]) : asked ?? contentType(tab.id));
  if (type === "error") throw errorPage(tab.id);
  if (type === "application/pdf" && needs === "page") throw unreadablePdf();
  return type === "application/pdf";
}

/** Begins to look of which type the document in a tab is, where `checkKind` needs that in any case. Never rejects. */
export function lookAtKind(tab_id, needs) {
  return needs === "page" || needs === "file" ? contentType(tab_id) : undefined;
}

/** A PDF has no elements; its text may be read. */
export function unreadablePdf() {
  const hint = "read it with observe page_text, take a screenshot, or fetch the file with execute_js: await (await fetch(location.href)).arrayBuffer()";
  return unreadable({ reason: "pdf", what: "a PDF in the browser's viewer", hint });
}

/** The type of the document in a tab, `error` for a page of the browser about a failure, or null where that is not told. */
async function contentType(tab_id) {
  const asked = chrome.scripting.executeScript({ target: { tabId: tab_id, frameIds: [0] }, injectImmediately: true, func: () => document.contentType });
  return await asked.then(([{ result }]) => result, (error) => (ERROR_PAGE.test(error.message) ? "error" : null));
}

function sleep(ms, value) {
  return new Promise((done) => setTimeout(done, ms, value));
}

function errorPage(tab_id) {
  const { url, error } = failureIn(tab_id) ?? {};
  const more = url && `${url.slice(0, 300)} could not be opened: ${error}`;
  if (!CERTIFICATE.test(error ?? "")) return unreadable({ reason: "error_page", what: "the browser's page about a failure", more, hint: "navigate to another page, or reload when the cause is gone" });
  return unreadable({ reason: "certificate_page", what: "the browser's warning of a certificate", more, hint: "navigate to another page, or have the user decide on the warning in the browser" });
}

/** `more` is said in the place of what it is: the reason tells that. */
function unreadable({ reason, what, more = `this tab shows ${what}`, hint }) {
  return new CommandError("tool_failed", more, { guarantee: "not_executed", reason, hint });
}
