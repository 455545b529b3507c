// `document.modelContext` for pages of a browser that has none, where a caller asked for it. It runs in the page's own
// world before any script of the page, and holds tools for `page_tools`; pages can tell that it is there. What it
// uses after that it holds already, since a page may replace it.

(() => {
  if (!isSecureContext || "modelContext" in document || "modelContext" in navigator) return;
  const { AbortController, DOMException, Event, EventTarget, Promise, TypeError } = globalThis;
  const { parse, stringify } = JSON;
  const { apply } = Reflect;
  const { addEventListener, dispatchEvent } = EventTarget.prototype;
  const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
  let tools = { __proto__: null };

  function checked(tool, others) {
    const { name, title, description, inputSchema, annotations, execute } = tool ?? {};
    if (typeof name !== "string" || !NAME.test(name)) throw new DOMException("the name of a tool has 1 to 128 of A-Z, a-z, 0-9, _, - and .", "InvalidStateError");
    if (name in others) throw new DOMException(`there is a tool ${name} already`, "InvalidStateError");
    if (typeof description !== "string" || description === "") throw new DOMException("a tool has a description", "InvalidStateError");
    if (typeof execute !== "function") throw new TypeError("a tool has a function execute");
    const schema = inputSchema === undefined ? undefined : parse(stringify(inputSchema));
    return { name, told: { name, title, description, inputSchema: schema, annotations }, execute: (input, options) => apply(execute, tool, [input, options]) };
  }

  class ModelContext extends EventTarget {
    async registerTool(tool, { signal } = {}) {
      if (signal?.aborted) throw signal.reason;
      const kept = checked(tool, tools);
      tools[kept.name] = kept;
      if (signal) apply(addEventListener, signal, ["abort", () => tools[kept.name] === kept && this.unregisterTool(kept.name)]);
      this.#changed();
    }

    /** Of earlier drafts, as are the next two. */
    unregisterTool(name) {
      delete tools[name?.name ?? name];
      this.#changed();
    }

    provideContext({ tools: given = [] } = {}) {
      const next = { __proto__: null };
      for (let n = 0; n < given.length; n++) {
        const kept = checked(given[n], next);
        next[kept.name] = kept;
      }
      tools = next;
      this.#changed();
    }

    clearContext() {
      tools = { __proto__: null };
      this.#changed();
    }

    async getTools() {
      const all = [];
      for (const name in tools) all[all.length] = { ...tools[name].told, window, origin: location.origin };
      return all;
    }

    async executeTool(tool, input = {}, { signal } = {}) {
      const kept = tools[tool?.name];
      if (!kept) throw new DOMException("there is no such tool", "UnknownError");
      if (signal?.aborted) throw signal.reason;
      const given = parse(typeof input === "string" ? input : stringify(input));
      const options = { signal: signal ?? new AbortController().signal, requestUserInteraction: async (act) => await act() };
      const value = await new Promise(async (resolve, reject) => {
        if (signal) apply(addEventListener, signal, ["abort", () => reject(signal.reason)]);
        try {
          resolve(await kept.execute(given, options));
        } catch (error) {
          reject(error);
        }
      });
      return value === undefined ? null : stringify(value);
    }

    #changed() {
      apply(dispatchEvent, this, [new Event("toolchange")]);
    }
  }

  const context = new ModelContext();
  const own = { configurable: true, enumerable: true, get: () => context };
  Object.defineProperty(Document.prototype, "modelContext", own);
  Object.defineProperty(Navigator.prototype, "modelContext", own);
})();
