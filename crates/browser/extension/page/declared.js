// What runs in a page for the tools that it declares (WebMCP): `document.modelContext` of the browser itself, seen from
// the world of the extension, where no script of the page has touched it; and in the page's own world what the page,
// or the shim, put there. Each function is sent by itself and holds all that it needs. In the page's world built-ins may
// be replaced, so values are read by operators, and made data by the browser on their way out.

/**
 * The tools of this document as `{origin, is_native, tools: [{way, name, title, description, schema, annotations, is_large?}], n_more, error}`.
 * A schema is the object, or its text. `is_own_world`: this is the world of the extension. Of a tool that says more of itself than
 * `max_chars`, or than is left of 16 times that for all of them, only the name is told: the rest would be copied through the browser.
 */
export async function listDeclared(is_own_world, skips_document, max_tools, max_chars) {
  const told = { origin: self.origin, is_native: false, tools: [], n_more: 0 };
  let first;
  const contexts = [
    { way: "document", find: () => ((first = document.modelContext), skips_document ? undefined : first) },
    { way: "navigator", find: () => (navigator.modelContext === first ? undefined : navigator.modelContext) },
    { way: "testing", find: () => (is_own_world || told.tools.length > 0 ? undefined : navigator.modelContextTesting) },
  ];
  let left_of_all = 16 * max_chars;
  /** What is left of `left` characters after a value, below 0 when they do not do. */
  const room = (value, left) => {
    if (typeof value === "string") return left - value.length;
    if (typeof value !== "object" || !value) return left - 4;
    for (const member in value) {
      left = room(value[member], left - member.length - 4);
      if (left < 0) return left;
    }
    return left - 2;
  };
  const fits = (said) => {
    try {
      const left = room(said, left_of_all < max_chars ? left_of_all : max_chars);
      if (left < 0) return false;
      left_of_all -= (left_of_all < max_chars ? left_of_all : max_chars) - left;
      return true;
    } catch {
      // It is nested without end.
      return false;
    }
  };
  for (let n = 0; n < contexts.length; n++) {
    const { way, find } = contexts[n];
    let context, lists;
    try {
      context = find();
      lists = !context ? undefined : typeof context.getTools === "function" ? "getTools" : typeof context.listTools === "function" ? "listTools" : undefined;
    } catch {
      // Something else of this name, such as a frame of another origin.
    }
    if (!lists) continue;
    if (is_own_world && way === "document") told.is_native = true;
    try {
      const answer = await context[lists]();
      const all = answer && answer.tools ? answer.tools : answer;
      for (let i = 0; all && i < all.length; i++) {
        const { name, title, description, inputSchema: schema, annotations, window: view } = all[i];
        if (view && view !== window) continue;
        if (told.tools.length >= max_tools) told.n_more++;
        else if (fits({ name, title, description, schema, annotations })) told.tools[told.tools.length] = { way, name, title, description, schema, annotations };
        else told.tools[told.tools.length] = { way, name: typeof name === "string" && name.length <= max_chars / 16 ? name : undefined, is_large: true };
      }
    } catch (error) {
      told.error = `${error && error.message}`;
    }
  }
  return told;
}

/**
 * Calls a tool that is still as `wanted` says; answers `{changed}` where it is not, and then nothing was called.
 * Else `{value}`, or `{thrown: {name, message}}`. A call can be aborted by what stands under the symbol of `key`.
 */
export async function callDeclared({ way, name, description, schema }, input, text, key) {
  const same = (a, b) => {
    if (a === b) return true;
    if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
    for (const member in a) if (!same(a[member], b[member])) return false;
    for (const member in b) if (!(member in a) && b[member] !== undefined && typeof b[member] !== "function") return false;
    return true;
  };
  let context, lists, tool;
  try {
    context = way === "document" ? document.modelContext : way === "navigator" ? navigator.modelContext : navigator.modelContextTesting;
    lists = context && typeof context.getTools === "function" ? "getTools" : "listTools";
    const answer = await context[lists]();
    const all = answer.tools ? answer.tools : answer;
    for (let n = 0; n < all.length && !tool; n++) if (all[n].name === name && (!all[n].window || all[n].window === window)) tool = all[n];
  } catch {
    return { changed: "gone" };
  }
  if (!tool) return { changed: "gone" };
  // What the browser made data of has no `undefined`.
  if (tool.description !== (description ?? undefined) || !same(schema ?? undefined, tool.inputSchema ?? undefined)) return { changed: "other" };
  let options = {};
  try {
    const aborter = new AbortController();
    globalThis[Symbol.for(key)] = aborter;
    options = { signal: aborter.signal };
  } catch {
    // The page replaced these: its tool is not told of a cancel.
  }
  try {
    // Drafts differ on whether arguments are an object or its text: this is both.
    const both = new (class {
      toString() {
        return text;
      }
    })();
    for (const member in input) both[member] = input[member];
    if (way === "testing") return { value: await context.executeTool(name, text, options) };
    if (typeof context.executeTool === "function" && lists === "getTools") return { value: await context.executeTool(tool, both, options) };
    if (typeof context.callTool === "function") return { value: await context.callTool({ name, arguments: input }) };
    if (typeof context.executeTool === "function") return { value: await context.executeTool(name, input, options) };
    if (typeof tool.execute === "function") return { value: await tool.execute(input, options) };
    return { changed: "none" };
  } catch (error) {
    const is_error = error && typeof error === "object";
    return { thrown: { name: is_error ? `${error.name}` : "thrown", message: is_error ? `${error.message}` : `${error}` } };
  } finally {
    try {
      delete globalThis[Symbol.for(key)];
    } catch {
      // It was not put there.
    }
  }
}

/** Tells a tool that is under way that nobody waits for it any more. */
export function abortDeclared(key) {
  const aborter = globalThis[Symbol.for(key)];
  if (aborter) aborter.abort();
  return true;
}
