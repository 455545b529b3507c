// Addresses no command may open: what is not the web, machines that only this computer can see by
// accident of its network, and the server's own port. The server checks first; this is checked
// again here, also after redirects.

import { CommandError } from "../commands/errors.js";
import { checkOrigin, whyClosed } from "../status/origins.js";

const SCHEMES = new Set(["http:", "https:"]);
const METADATA_HOSTS = new Set(["metadata.google.internal", "metadata.goog", "metadata", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192"]);
/** An IPv4 address that is written as one of IPv6, as the browser spells it. */
const WRAPPED = /^\[(?:::ffff:|::|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/;
const LOOPBACK = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|\[::\])$/;
const LINK_LOCAL = /^(169\.254\.\d+\.\d+|\[fe[89ab][0-9a-f]:.*\])$/;

/** The port of the server, as it was told last. */
let last_port;

/** Why an address is not opened, or null. `own_port` is the port of the server. */
export function whyBlocked(address, own_port) {
  if (address === "about:blank") return null;
  const url = URL.parse?.(address) ?? parse(address);
  if (!url) return "it is not a complete address";
  if (!SCHEMES.has(url.protocol)) return `the scheme ${url.protocol} is not allowed`;
  return whyHostBlocked(address, own_port);
}

/** The same for a page that is already there: what a page makes itself (`blob:` and the like) may stay. */
export function whyHostBlocked(address, own_port = last_port) {
  last_port = own_port;
  const url = URL.parse?.(address) ?? parse(address);
  if (!url || !SCHEMES.has(url.protocol)) return null;
  const host = plain(url.hostname.replace(/\.$/, ""));
  if (LINK_LOCAL.test(host) || METADATA_HOSTS.has(host)) return `${host} is a link-local or metadata address`;
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  if (LOOPBACK.test(host) && port === own_port) return "it is the server's own port";
  return whyClosed(address);
}

/** Fails unless the page that a tab shows may be read and worked in; what is said of it holds nothing of the page. Returns the tab. */
export async function checkShown(tab_id, own_port, guarantee) {
  return checkTab(await chrome.tabs.get(tab_id).catch(() => null), own_port, guarantee);
}

/** The same for a tab that was looked at just now. */
export function checkTab(tab, own_port, guarantee) {
  // Of a page that the user closed nothing is said here, not even which one it is.
  if (!tab || whyClosed(tab.url ?? "") !== null) return tab;
  const why = whyHostBlocked(tab.url ?? "", own_port);
  if (!why) return tab;
  throw new CommandError("url_blocked", `the tab shows an address that may not be read: ${why}`, { guarantee, hint: "navigate the tab elsewhere" });
}

export function checkUrl(address, own_port) {
  if (typeof address === "string") checkOrigin(address);
  const why = typeof address === "string" ? whyBlocked(address, own_port) : "`url` is missing";
  if (why) throw blocked(address, why, "not_executed");
}

export function blocked(address, why, guarantee) {
  return new CommandError("url_blocked", `${String(address).slice(0, 200)} is not opened: ${why}`, { guarantee });
}

function plain(host) {
  const [, high, low] = WRAPPED.exec(host) ?? [];
  if (high === undefined) return host;
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join(".");
}

function parse(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}
