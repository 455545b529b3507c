// Addresses no command may open: what is not the web, machines that only this computer can see by
// accident of its network, and the server's own port. The server checks first; this is checked
// again here, also after redirects.

import { CommandError } from "../commands/errors.js";
import { checkOrigin, whyClosed } from "../status/origins.js";

const SCHEMES = new Set(["http:", "https:"]);
const METADATA_HOSTS = new Set(["metadata.google.internal", "metadata.goog", "[fd00:ec2::254]"]);
const LOOPBACK = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|\[::\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/;
const LINK_LOCAL = /^(169\.254\.\d+\.\d+|\[fe[89ab][0-9a-f]:.*\]|\[::ffff:a9fe:[0-9a-f]+\])$/;

/** Why an address is not opened, or null. `own_port` is the port of the server. */
export function whyBlocked(address, own_port) {
  if (address === "about:blank") return null;
  const url = URL.parse?.(address) ?? parse(address);
  if (!url) return "it is not a complete address";
  if (!SCHEMES.has(url.protocol)) return `the scheme ${url.protocol} is not allowed`;
  return whyHostBlocked(address, own_port);
}

/** The same for a page that is already there: what a page makes itself (`blob:` and the like) may stay. */
export function whyHostBlocked(address, own_port) {
  const url = URL.parse?.(address) ?? parse(address);
  if (!url || !SCHEMES.has(url.protocol)) return null;
  const host = url.hostname.replace(/\.$/, "");
  if (LINK_LOCAL.test(host) || METADATA_HOSTS.has(host)) return `${host} is a link-local or metadata address`;
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  if (LOOPBACK.test(host) && port === own_port) return "it is the server's own port";
  return whyClosed(address);
}

export function checkUrl(address, own_port) {
  if (typeof address === "string") checkOrigin(address);
  const why = typeof address === "string" ? whyBlocked(address, own_port) : "`url` is missing";
  if (why) throw blocked(address, why, "not_executed");
}

export function blocked(address, why, guarantee) {
  return new CommandError("url_blocked", `${String(address).slice(0, 200)} is not opened: ${why}`, { guarantee });
}

function parse(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}
