// What is remembered of each caller: the tab it works in, the tabs it opened, and which origin it was
// told of last in each. It lasts until the browser ends, so a new server or worker changes nothing.
//
// A caller is `{owner, connection?}`: a connection has a tab of its own; where it is not known any more,
// the tab that its owner used last counts.

import { Remembered, dropSettings, readSetting, writeSetting } from "./settings.js";

/** More connections than anybody has at once, and what these were told of tabs. */
const MOST = 1024;

/** How long the tabs that a caller worked in are found for no other one, after it gave a command last. */
const IN_USE_MIN = 10;

const tabs = new Remembered("tab_of", MOST);
const heard = new Remembered("heard", MOST);
const told = new Remembered("told", 4 * MOST);

/** Which caller was the client of each server's own process; the one that serves now is the last that was heard of. */
const clients = new Remembered("client_of", MOST);
let serving = null;

/** The tab that a caller used or opened last; null when it has none. */
export async function ownTab(caller) {
  return (await tabs.get(nameOf(caller))) ?? null;
}

/** Makes a tab the one of a caller. Returns what it and its owner had before. */
export async function useTab(caller, tab_id) {
  const had = [];
  for (const name of new Set([nameOf(caller), nameOf({ owner: caller?.owner })])) {
    had.push([name, await tabs.get(name)]);
    await tabs.set(name, tab_id);
  }
  return had;
}

/** Makes a tab that was found the one of a caller, until it is known whether its command begins there. */
export async function findTab(caller, tab_id) {
  await tabs.set(nameOf(caller), tab_id);
}

/** Gives a caller back the tab that it `had` before a command did nothing in one; where that one was found it had none. */
export async function leaveTab(caller, { tab_id, had = [], is_found }) {
  const before = new Map(had);
  if (is_found) before.set(nameOf(caller), undefined);
  for (const [name, tab] of before) {
    // A command elsewhere may have begun since.
    if ((await tabs.get(name)) !== tab_id) continue;
    if (tab === undefined) await tabs.delete(name);
    else await tabs.set(name, tab);
  }
}

/** Notes that a caller gives a command now, by a server. Minutes will do, and are seldom written. */
export async function hear(caller, server) {
  serving = server ?? null;
  await noteClient(caller).catch((error) => console.warn(`whose client a caller is was not noted: ${error.message}`));
  // A command of an earlier server has an owner and no connection: no client is known by it, and none is another one for it.
  if (caller?.connection === undefined) return;
  await heard.set(nameOf(caller), minuteOf(Date.now())).catch((error) => console.warn(`that a caller was heard of was not noted: ${error.message}`));
}

async function noteClient(caller) {
  const connection = caller?.connection;
  if (serving === null || connection === undefined) return;
  if (connection === serving) await clients.set(serving, nameOf(caller));
  // Its process lives on, and another one serves it.
  else await clients.delete(connection);
}

/** Whether a caller other than this one works in a tab, or has since it was opened, and gave a command not long ago. */
export async function isInUse(caller, tab_id) {
  const others = (await workersIn(tab_id)).filter((name) => name !== nameOf(caller));
  return await hasHeardOf(others);
}

/** Whether any of these callers gave a command not long ago. The client of a server that another one came after has gone with it. */
async function hasHeardOf(names) {
  const since = minuteOf(Date.now()) - IN_USE_MIN;
  const lately = new Map(await heard.all());
  const gone = serving === null ? [] : (await clients.all()).filter(([server]) => server !== serving).map(([, name]) => name);
  return names.some((name) => lately.get(name) >= since && !gone.includes(name));
}

/** The names of the callers that were answered about a tab, and last of those that work there now. */
export async function workersIn(tab_id) {
  const start = `${tab_id}:`;
  const answered = (await told.all()).filter(([key]) => key.startsWith(start)).map(([key]) => key.slice(start.length));
  const working = new Set((await tabs.all()).filter(([, tab]) => tab === tab_id).map(([name]) => name));
  return [...answered.filter((name) => !working.has(name)), ...working];
}

/** Whether something is a caller's that was done by those of these names: its own, or its owner's once none of these gives commands any more. */
export async function isOf(caller, names) {
  if (names.includes(nameOf(caller))) return true;
  const owner = nameOf({ owner: caller?.owner });
  return names.some((name) => name === owner || name.startsWith(`${owner}/`)) && !(await hasHeardOf(names));
}

export async function noteOpened(caller, tab_id) {
  await writeSetting(`opener_of:${tab_id}`, nameOf(caller));
}

/** Whether a tab was opened for a caller; where its connection is not known any more, for its owner. */
export async function hasOpened(caller, tab_id) {
  const opener = await readSetting(`opener_of:${tab_id}`, null);
  return opener === nameOf(caller) || (caller?.connection === undefined && opener?.startsWith(`${nameOf(caller)}/`) === true);
}

export async function noteTold(caller, tab_id, origin) {
  await told.set(`${tab_id}:${nameOf(caller)}`, origin);
}

/** The origin that the last answer about a tab named to a caller; null when none did. */
export async function lastTold(caller, tab_id) {
  return (await told.get(`${tab_id}:${nameOf(caller)}`)) ?? null;
}

export async function forgetTab(tab_id) {
  await Promise.all([told.drop((name) => name.startsWith(`${tab_id}:`)), dropSettings((name) => [`opener_of:${tab_id}`, `emulated:${tab_id}`].includes(name))]);
}

/** What a caller is known by: its owner, and behind the only slash its connection. */
export function nameOf(caller) {
  const owner = `${caller?.owner ?? ""}`.replace(/[%/]/g, encodeURIComponent);
  return caller?.connection === undefined ? owner : `${owner}/${caller.connection}`;
}

function minuteOf(ms) {
  return Math.floor(ms / 60_000);
}
