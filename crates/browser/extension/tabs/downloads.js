// Downloads that began in tabs while a command could have caused them; the person's own are left alone. Each is told to those
// who worked in its tab.
//
// `downloads` -> `[{download_id, tab_id, url, file_name, path, mime?, state: "in_progress|complete|interrupted", bytes, total_bytes?, error?, begun_at,
//   ended_at?}]`, the newest first
// `downloads {id}` -> the one with that `download_id`, when it has ended or the command's time is over

import { CommandError, dropAbsent } from "../commands/errors.js";
import { whyClosed } from "../status/origins.js";
import { isOf, workersIn } from "./callers.js";
import { on } from "./sessions.js";
import { readSetting, writeSetting } from "./settings.js";
import { whyHostBlocked } from "./urls.js";

const KEY = "downloads";
const MAX_NOTED = 100;
/** Of those who worked in a tab, how many are noted: the last ones. */
const MAX_WORKERS = 16;
// The browser may list a download a little before the debugger tells of it.
const EARLY_MS = 10_000;
const LATE_MS = 60_000;
const AGAIN_MS = 100;

export function watchDownloads() {
  on("Page.downloadWillBegin", (tab_id, { url }) => noteDownload(tab_id, url));
}

let noting = Promise.resolve();

export function noteDownload(tab_id, url) {
  const at = Date.now();
  const write = async () => {
    const by = (await workersIn(tab_id)).slice(-MAX_WORKERS);
    const noted = await readSetting(KEY, []);
    await writeSetting(KEY, [...noted, { tab_id, url: url.slice(0, 4096), at, by }].slice(-MAX_NOTED));
  };
  // One that there is no room for takes none of the others along.
  noting = noting.then(write).catch((error) => console.warn(`a download was not noted: ${error.message}`));
}

export async function listDownloads({ id, ...wanted }, run) {
  if (id === undefined) return await listed(wanted, run);
  for (;;) {
    const found = (await listed({}, run)).find((row) => String(row.download_id) === id);
    if (!found) throw new CommandError("tool_failed", `no download ${id} began in a tab that you work in`, { guarantee: "not_executed", reason: "no_download", hint: "observe {what: \"downloads\"} lists them" });
    if (found.state !== "in_progress" || run.ended || run.waitLimit(1) === 0) return found;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

async function listed({ tab_id, filter }, run) {
  await noting;
  const noted = await readSetting(KEY, []);
  if (noted.length === 0) return [];
  const since = new Date(noted[0].at - EARLY_MS).toISOString();
  const items = await chrome.downloads.search({ startedAfter: since, orderBy: ["-startTime"], limit: 1000 });
  const causes = causesOf(items, noted);
  const own = new Set();
  for (const cause of noted) if (await isOf(run.caller, [...cause.by, ...(await workersIn(cause.tab_id))])) own.add(cause);
  const rows = items.flatMap((item) => {
    const cause = causes.get(item);
    return own.has(cause) && (tab_id === undefined || cause.tab_id === tab_id) && isOpen(item, run.own_port) ? [rowOf(item, cause)] : [];
  });
  const needle = filter?.toLowerCase();
  return needle === undefined ? rows : rows.filter((row) => JSON.stringify(row).toLowerCase().includes(needle));
}

/** What began each download: what was seen to begin is one of them, the next in time. A later one of the same address is the person's own. */
function causesOf(items, noted) {
  const causes = new Map();
  for (const cause of noted) {
    const apart = (item) => Math.abs(Date.parse(item.startTime) - cause.at);
    const [next] = items.filter((item) => !causes.has(item) && mayBe(item, cause)).sort((one, other) => apart(one) - apart(other));
    if (next) causes.set(next, cause);
  }
  return causes;
}

function mayBe({ url, finalUrl, startTime }, cause) {
  const begun = Date.parse(startTime);
  return [url, finalUrl].some((each) => each.slice(0, 4096) === cause.url) && cause.at - EARLY_MS <= begun && begun <= cause.at + LATE_MS;
}

/** Whether all that a file came by may be read: no page shows it, so that nothing else refuses it. */
function isOpen({ url, finalUrl, referrer }, own_port) {
  return [url, finalUrl, referrer || url].every((each) => whyClosed(each) === null && whyHostBlocked(each, own_port) === null);
}

function rowOf(item, { tab_id }) {
  return dropAbsent({
    download_id: item.id,
    tab_id,
    url: item.finalUrl.slice(0, 2048),
    file_name: item.filename.split(/[\\/]/).at(-1),
    path: item.filename,
    mime: item.mime || undefined,
    state: item.state,
    bytes: item.bytesReceived,
    total_bytes: item.totalBytes >= 0 ? item.totalBytes : undefined,
    error: item.error,
    begun_at: item.startTime,
    ended_at: item.endTime,
  });
}
