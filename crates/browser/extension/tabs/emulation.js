// What a tab is made to believe of its device and its network, while the debugger is attached to it.
//
// `emulate {viewport?, device?, network?, cpu?}` -> what holds now: each call sets all four anew, and `{}` undoes them. What the
// browser is told ends with the debugger's session; until then the tab is not left to itself (see sessions.js).

import { CommandError, dropAbsent, invalid } from "../commands/errors.js";
import { attach, on, send } from "./sessions.js";
import { readSetting, writeSetting } from "./settings.js";

const MOBILE = (system, version) => `Mozilla/5.0 (${system}) ${version}`;
const ANDROID = (model) => MOBILE(`Linux; Android 15; ${model}`, `AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${chromeVersion()} Mobile Safari/537.36`);
const IOS = (device) => MOBILE(device, "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1");

/** By the names of the field. */
export const DEVICES = {
  phone: { width: 412, height: 915, scale: 2.625, mobile: true, agent: () => ANDROID("Pixel 9") },
  iphone: { width: 393, height: 852, scale: 3, mobile: true, agent: () => IOS("iPhone; CPU iPhone OS 18_5 like Mac OS X") },
  tablet: { width: 820, height: 1180, scale: 2, mobile: true, agent: () => IOS("iPad; CPU OS 18_5 like Mac OS X") },
  laptop: { width: 1366, height: 768, scale: 1, mobile: false },
  desktop: { width: 1920, height: 1080, scale: 1, mobile: false },
};
const KBIT = 1000 / 8;
/** Latency in milliseconds, then bytes a second down and up. */
export const NETWORKS = {
  offline: [0, 0, 0],
  slow_3g: [2000, 400 * KBIT, 400 * KBIT],
  fast_3g: [563, 1474 * KBIT, 675 * KBIT],
  slow_4g: [150, 1600 * KBIT, 750 * KBIT],
  fast_4g: [60, 9000 * KBIT, 1500 * KBIT],
};

const holds = new Map();

/** Whether a tab would lose something with the debugger; an earlier service worker may have set it. */
export async function isEmulated(tab_id) {
  return holds.has(tab_id) || (await readSetting(nameOf(tab_id), false));
}

export function forgetTab(tab_id) {
  holds.delete(tab_id);
}

export function watchEmulation() {
  on("detached", async (tab_id) => {
    holds.delete(tab_id);
    if ((await readSetting(nameOf(tab_id), false)) && !holds.has(tab_id)) await writeSetting(nameOf(tab_id), false);
  });
}

export async function emulate({ viewport, device, network, cpu }, { tab_id }) {
  const screen = screenOf(viewport, device);
  if (network !== undefined && !Object.hasOwn(NETWORKS, network)) throw invalid(`\`network\` must be one of ${Object.keys(NETWORKS).join(", ")}`);
  await attach(tab_id);
  const wanted = dropAbsent({ viewport, device, network, cpu });
  // Noted first: what is set only in part is undone with the rest.
  if (Object.keys(wanted).length > 0) holds.set(tab_id, wanted);
  try {
    await setScreen(tab_id, screen);
    await send(tab_id, "Network.emulateNetworkConditions", conditionsOf(network));
    await send(tab_id, "Emulation.setCPUThrottlingRate", { rate: cpu ?? 1 });
  } catch (error) {
    throw new CommandError("tool_failed", `the browser does not emulate it: ${error.message}`, { guarantee: "unknown", reason: "browser_error", hint: "undo what was set with emulate {}" });
  }
  if (Object.keys(wanted).length === 0) holds.delete(tab_id);
  await writeSetting(nameOf(tab_id), holds.has(tab_id));
  return { emulated: wanted };
}

function nameOf(tab_id) {
  return `emulated:${tab_id}`;
}

function screenOf(viewport, device) {
  if (device === undefined && viewport === undefined) return null;
  if (device !== undefined && !Object.hasOwn(DEVICES, device)) throw invalid(`\`device\` must be one of ${Object.keys(DEVICES).join(", ")}`);
  return { scale: 0, mobile: false, ...(DEVICES[device] ?? {}), ...viewport };
}

async function setScreen(tab_id, screen) {
  if (screen === null) await send(tab_id, "Emulation.clearDeviceMetricsOverride");
  else await send(tab_id, "Emulation.setDeviceMetricsOverride", { width: screen.width, height: screen.height, deviceScaleFactor: screen.scale, mobile: screen.mobile });
  await send(tab_id, "Emulation.setTouchEmulationEnabled", { enabled: screen?.mobile === true, maxTouchPoints: 5 });
  await send(tab_id, "Emulation.setUserAgentOverride", { userAgent: screen?.agent?.() ?? "" });
}

function conditionsOf(network) {
  const [latency, down, up] = NETWORKS[network] ?? [0, -1, -1];
  return { offline: network === "offline", latency, downloadThroughput: down, uploadThroughput: up };
}

function chromeVersion() {
  return /Chrome\/(\d+)/.exec(navigator.userAgent)?.[1] ?? "140";
}
