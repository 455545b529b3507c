// Console messages, uncaught errors and the browser's own log of attached tabs. Values come as the
// debugger describes them: no getter, proxy trap or toJSON of the page runs for it.

import { bounded, record } from "./observed.js";
import { isSilent } from "./meter.js";
import { on } from "./sessions.js";

const LEVELS = { warning: "warning", warn: "warning", error: "error", assert: "error", debug: "debug", verbose: "debug", info: "info" };
const SILENT = new Set(["startGroupCollapsed", "endGroup", "clear", "profile", "profileEnd"]);

export function watchConsole() {
  on("Runtime.consoleAPICalled", (tab_id, { type, args, stackTrace, timestamp }) => {
    if (isSilent(tab_id, "Runtime") || (SILENT.has(type) && args.length === 0)) return;
    tell(tab_id, "console", LEVELS[type] ?? "log", format(args), stackTrace?.callFrames[0], timestamp);
  });
  on("Runtime.exceptionThrown", (tab_id, { exceptionDetails: told, timestamp }) => {
    if (isSilent(tab_id, "Runtime")) return;
    const text = [told.text, told.exception && describe(told.exception)].filter(Boolean).join(" ");
    tell(tab_id, "exception", "error", text, told.stackTrace?.callFrames[0] ?? told, timestamp);
  });
  on("Log.entryAdded", (tab_id, { entry }) => {
    tell(tab_id, "log", LEVELS[entry.level] ?? "log", entry.text, { url: entry.url, lineNumber: entry.lineNumber }, entry.timestamp);
  });
}

function tell(tab_id, source, level, text, place, timestamp) {
  const line = place?.lineNumber === undefined ? undefined : place.lineNumber + 1;
  const column = place?.columnNumber === undefined ? undefined : place.columnNumber + 1;
  record({ kind: "console", tab_id, source, level, text: bounded(text), url: place?.url || undefined, line, column, at: Math.round(timestamp) });
}

/** The arguments of one console call as one text; `%s`, `%d`, `%i`, `%f`, `%o`, `%O`, `%j` and `%c` are filled in. */
export function format(args) {
  const rest = [...args];
  const parts = [];
  if (rest[0]?.type === "string" && rest.length > 1) {
    const pattern = rest.shift().value;
    parts.push(pattern.replace(/%([sdifoOjc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (rest.length === 0) return whole;
      const value = rest.shift();
      if (kind === "c") return "";
      if (kind === "d" || kind === "i") return number(value, Math.trunc);
      return kind === "f" ? number(value, (n) => n) : describe(value);
    }));
  }
  return [...parts, ...rest.map(describe)].join(" ");
}

/** One remote value as text. */
export function describe(value) {
  if (value.type === "string") return value.value;
  if (value.type === "undefined") return "undefined";
  if (value.unserializableValue) return value.unserializableValue;
  if ("value" in value && value.type !== "object") return String(value.value);
  if (value.subtype === "null") return "null";
  if (value.type === "function") return `[Function: ${/^(?:async\s+)?(?:function\s*\*?\s*|class\s+)([\w$]+)/.exec(value.description)?.[1] ?? "anonymous"}]`;
  if (value.preview && value.subtype !== "error" && value.subtype !== "node") return ofPreview(value.preview);
  return value.description ?? value.className ?? value.type;
}

function ofPreview(preview) {
  const { description, subtype, properties = [], entries, overflow } = preview;
  const more = overflow ? ", …" : "";
  if (entries) {
    const told = entries.map((one) => (one.key ? `${ofEntry(one.key)} => ${ofEntry(one.value)}` : ofEntry(one.value)));
    return `${description} {${told.join(", ")}${more}}`;
  }
  if (subtype === "array" || subtype === "typedarray") {
    const items = properties.filter((one) => /^\d+$/.test(one.name)).map(ofProperty);
    return `${subtype === "array" ? "" : `${description} `}[${items.join(", ")}${more}]`;
  }
  if (subtype && subtype !== "map" && subtype !== "set") return description;
  const members = properties.map((one) => `${one.name}: ${ofProperty(one)}`);
  return `${description === "Object" ? "" : `${description} `}{${members.join(", ")}${more}}`;
}

function ofProperty(one) {
  if (one.type === "accessor") return "[Getter]";
  if (one.type === "string") return JSON.stringify(one.value);
  if (one.type === "function") return "[Function]";
  return one.valuePreview ? ofPreview(one.valuePreview) : one.value;
}

function ofEntry(one) {
  return one.type === "string" ? JSON.stringify(one.description) : ofPreview(one);
}

function number(value, shape) {
  if (value.type === "bigint") return describe(value);
  const read = value.type === "number" || value.type === "string" ? Number.parseFloat(value.value ?? value.unserializableValue) : Number.NaN;
  return String(shape(read));
}
