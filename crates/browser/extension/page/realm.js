// Reading a value of a page whose scripts replaced what a value is read with. The browser itself tells a
// built-in from a replacement; where there is one, the value is read in the realm of an empty document.

import { on, send } from "../tabs/sessions.js";
import { call } from "./agents.js";
import { BUILT_INS, LIMITS, serialize } from "./serialize.js";

const REALM_MS = 2000;

/** Whether the page has the browser's own built-ins, as far as a value is read with them. */
export async function hasCleanBuiltIns(tab_id) {
  const { result, exceptionDetails } = await send(tab_id, "Runtime.evaluate", { expression: `[${Object.keys(BUILT_INS).join(",")}]`, silent: true });
  if (exceptionDetails || result.objectId === undefined) return false;
  const { result: found } = await send(tab_id, "Runtime.getProperties", { objectId: result.objectId, ownProperties: true });
  send(tab_id, "Runtime.releaseObject", { objectId: result.objectId }).catch(() => {});
  const by_index = new Map(found.map(({ name, value }) => [name, value]));
  return Object.values(BUILT_INS).every((name, n) => isNative(by_index.get(String(n)), name));
}

/** A bound function and a proxy have no name, or are no plain function. */
function isNative(value, name) {
  return value?.type === "function" && value.subtype === undefined && value.description === `function ${name}() { [native code] }`;
}

/** Serialises a value of the page by built-ins that no script of it has touched. */
export async function inCleanRealm(tab_id, { objectId }) {
  const name = `realm-${crypto.randomUUID()}`;
  const contexts = [];
  const stop = on("Runtime.executionContextCreated", (id, { context }) => id === tab_id && context.auxData?.isDefault && contexts.push(context.id));
  try {
    const { value: opened } = await call(tab_id, "openRealm", { name });
    if (!opened) throw new Error("no empty document could be made");
    const { index } = opened;
    // The look at it makes its realm, if that is not there yet.
    await send(tab_id, "Runtime.evaluate", { expression: `window[${index}].length`, silent: true });
    await prepare(tab_id, contexts, name);
    return await send(tab_id, "Runtime.callFunctionOn", {
      functionDeclaration: "function (index, limits) { return window[index].read(this, limits); }",
      objectId,
      arguments: [{ value: index }, { value: LIMITS }],
      returnByValue: true,
    });
  } finally {
    stop();
    await call(tab_id, "closeRealm", { name }).catch(() => {});
  }
}

/** Puts `read` into the realm of the document with this name. */
async function prepare(tab_id, contexts, name) {
  const expression = `name === ${JSON.stringify(name)} && ((globalThis.read = (value, limits) => (${serialize}).call(value, limits)), true)`;
  const limit = performance.now() + REALM_MS;
  for (let n = 0; performance.now() < limit; ) {
    if (n >= contexts.length) {
      await new Promise((done) => setTimeout(done, 5));
      continue;
    }
    const contextId = contexts[n++];
    const told = await send(tab_id, "Runtime.evaluate", { expression, contextId, silent: true }).catch(() => null);
    if (told?.result.value === true) return;
  }
  throw new Error("no empty document could be made");
}
