// `pdf` -> `{mime: "application/pdf", data, url, title}`: the page as it prints.

import { CommandError } from "../commands/errors.js";
import { attach, send } from "../tabs/sessions.js";

// What goes over the wire at once, in base64.
const MAX_CHARS = 15 << 20;

export async function pdf(_, run) {
  await attach(run.tab_id);
  const { data } = await send(run.tab_id, "Page.printToPDF", { printBackground: true, preferCSSPageSize: true });
  if (data.length > MAX_CHARS) throw new CommandError("too_large", `the page prints as ${data.length} characters of base64`, { guarantee: "executed" });
  const { url, title } = await chrome.tabs.get(run.tab_id);
  return { mime: "application/pdf", data, url, title };
}
