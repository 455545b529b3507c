// Processes and their memory, from /proc.

import { readFileSync, readdirSync } from "node:fs";

/** Every process as `{pid, parent, line}`. */
function all() {
  const pids = readdirSync("/proc").map(Number).filter(Boolean);
  return pids.flatMap((pid) => {
    try {
      const parent = Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ")[1]);
      return [{ pid, parent, line: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") }];
    } catch {
      return [];
    }
  });
}

/** A process and all below it. */
export function family(pid) {
  const known = all();
  const found = known.filter((one) => one.pid === pid);
  for (let n = 0; n < found.length; n++) found.push(...known.filter((one) => one.parent === found[n].pid));
  return found;
}

/** The proportional set size of processes, in MB of a million bytes. */
export function pssOf(processes) {
  return processes.reduce((sum, { pid }) => sum + pss(pid), 0);
}

function pss(pid) {
  try {
    const [, kib] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
    return (Number(kib) * 1024) / 1e6;
  } catch {
    return 0;
  }
}

/** Processes of a Chromium that show pages, or with `of_extension` the one of its extension. */
export function renderers(chromium, of_extension = false) {
  const shown = family(chromium.pid).filter(({ line }) => line.includes("--type=renderer"));
  return shown.filter(({ line }) => line.includes("--extension-process") === of_extension);
}
