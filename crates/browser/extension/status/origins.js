// The origins that the user opens to commands, or closes: rules of the extension's page, and no
// command can change them. A rule is a host, which stands for its subdomains too, or a whole origin.
//
// Kept as {mode: "all_but" | "only", closed: [rule], open: [rule]}: `closed` counts in both modes.

import { CommandError } from "../commands/errors.js";

const KEY = "origins";
const MAX_RULES = 200;
/** What stands before the address of the page that is shown. */
const WRAPPED = /^(?:(?:view-source|blob|filesystem):)+/i;
const NONE = { mode: "all_but", closed: [], open: [] };

let rules = NONE;

/** Reads the rules, and follows them when they change. */
export async function loadOrigins(storage = chrome.storage) {
  storage.onChanged?.addListener((changes, area) => {
    if (area === "local" && changes[KEY]) rules = changes[KEY].newValue ?? NONE;
  });
  rules = (await storage.local.get(KEY))[KEY] ?? NONE;
}

export function originRules() {
  return rules;
}

/** Takes new rules as they were typed. Fails on one that is none, and changes nothing then. */
export async function setOrigins({ mode, closed, open }, storage = chrome.storage) {
  const next = { mode: mode === "only" ? "only" : "all_but", closed: readRules(closed), open: readRules(open) };
  await storage.local.set({ [KEY]: next });
  rules = next;
}

/** Whether there is any rule: without one no address has to be looked up. */
export function hasRules() {
  return rules.mode === "only" || rules.closed.length > 0;
}

/** Why a page is closed to commands, or null. */
export function whyClosed(address) {
  if (!hasRules() || address === "") return null;
  const url = parse(address.replace(WRAPPED, ""));
  if (!url || url.protocol === "about:") return null;
  const name = url.host || url.protocol;
  if (rules.closed.some((rule) => isMatch(rule, url))) return `${name} is closed to commands`;
  if (rules.mode === "only" && !rules.open.some((rule) => isMatch(rule, url))) return `${name} is not open to commands`;
  return null;
}

/** Why a frame is closed, or null: it, or a page around it, is of an origin that is closed. */
export async function whyFrameClosed(tab_id, frame_id) {
  if (!hasRules()) return null;
  const frames = (await chrome.webNavigation.getAllFrames({ tabId: tab_id })) ?? [];
  const by_id = new Map(frames.map((frame) => [frame.frameId, frame]));
  for (let frame = by_id.get(frame_id); frame; frame = by_id.get(frame.parentFrameId)) {
    const why = whyClosed(frame.url);
    if (why !== null) return why;
  }
  return null;
}

/** What is told of a tab where addresses and titles are told: nothing of a page that the user closed. */
export function shown(url, title) {
  return whyClosed(url) === null ? { url, title } : { url: "", title: "", closed_by_user: true };
}

/** Fails for a page that the user closed. */
export function checkOrigin(address) {
  const why = whyClosed(address);
  if (why !== null) throw closed(why);
}

/** The failure of a command that would work in a closed page. */
export function closed(why) {
  return new CommandError("url_blocked", why, {
    guarantee: "not_executed",
    reason: "origin_closed",
    hint: "use another page, or ask the user to open this one on the page of the Raincheck extension",
  });
}

/** One rule in the form that is kept; null for what is none. */
export function readRule(typed) {
  const words = String(typed).trim().toLowerCase().replace(/^\*\./, "");
  if (words === "") return null;
  const has_scheme = /^[a-z][a-z0-9+.-]*:\/\//.test(words);
  const url = parse(has_scheme ? words : `https://${words}`);
  if (!url?.hostname || url.username || url.password || url.hostname.includes("*")) return null;
  if (url.pathname !== "/" || url.search || url.hash) return has_scheme ? url.origin : null;
  if (has_scheme) return url.origin === "null" ? null : url.origin;
  return hasPort(words) ? portHost(words, url) : url.hostname;
}

function readRules(typed) {
  const lines = Array.isArray(typed) ? typed : [];
  const read = lines.filter((line) => String(line).trim() !== "").map((line) => [line, readRule(line)]);
  const bad = read.find(([, rule]) => rule === null);
  if (bad) throw new Error(`“${String(bad[0]).trim().slice(0, 80)}” is no host and no origin; write example.com or https://example.com:8443`);
  const all = [...new Set(read.map(([, rule]) => rule))];
  if (all.length > MAX_RULES) throw new Error(`${all.length} rules are more than ${MAX_RULES}`);
  return all;
}

function isMatch(rule, url) {
  if (rule.includes("://")) return rule === originOf(url);
  if (hasPort(rule)) return rule === portHost(url.host, url);
  const host = url.hostname.replace(/\.$/, "");
  return host === rule || host.endsWith(`.${rule}`);
}

/** `host:port`, with the port said also where it is the scheme's own. */
function portHost(words, url) {
  const port = /:(\d+)$/.exec(words)?.[1] ?? (url.protocol === "http:" ? "80" : "443");
  return `${url.hostname.replace(/\.$/, "")}:${Number(port)}`;
}

function hasPort(words) {
  return /:\d+$/.test(words) && !words.endsWith("]");
}

function originOf(url) {
  return `${url.protocol}//${url.host.replace(/\.(?=:|$)/, "")}`;
}

function parse(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}
