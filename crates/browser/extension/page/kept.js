// What a document was told to hold as: the last snapshots of it, to compare later ones with, and whether it has become quiet.
// It ends with the document.

globalThis.raincheckKept ??= (() => {
  const MAX_KEPT = 8;
  const MAX_CHARS = 4_000_000;
  const MAX_WATCH_MS = 60_000;
  const WATCHED = { subtree: true, childList: true, attributes: true, characterData: true };

  const document_id = `s${[...crypto.getRandomValues(new Uint8Array(4))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  const kept = new Map();
  let n_kept = 0;
  const MAX_WATCHES = 8;
  const watches = new Map();

  /** Keeps a snapshot `{text, part, is_cut}`, or that it is kept elsewhere, in the place of the one with its name, and answers with that; the oldest are forgotten. */
  function keep({ snapshot_id = `${document_id}.${++n_kept}`, ...told }) {
    kept.set(snapshot_id, told);
    let chars = 0;
    for (const [n, [id, { text }]] of [...kept].reverse().entries()) {
      chars += text.length;
      if (id !== snapshot_id && (n >= MAX_KEPT || chars > MAX_CHARS)) kept.delete(id);
    }
    return { snapshot_id };
  }

  /** A snapshot that was kept, or `{why}`. */
  function recall({ snapshot_id }) {
    const found = kept.get(snapshot_id);
    if (found) return found;
    return { why: String(snapshot_id).split(".")[0] === document_id ? "forgotten" : "navigated" };
  }

  /** Watches the document and what is inside it for changes; each watch has a name, and ends by it. */
  function begin(inners, name) {
    unwatch({ name });
    const begun = performance.now();
    const watch = { at: begun };
    watch.observer = new MutationObserver(() => {
      watch.at = performance.now();
      // Whoever began may be gone.
      if (watch.at - begun > MAX_WATCH_MS) watch.observer.disconnect();
    });
    watches.set(name, watch);
    if (watches.size > MAX_WATCHES) unwatch({ name: watches.keys().next().value });
    for (const root of [document, ...inners]) watch.observer.observe(root, WATCHED);
  }

  /** How long nothing has changed in what is watched. */
  function quiet({ name }) {
    const watch = watches.get(name);
    return { document_id, quiet_ms: watch ? performance.now() - watch.at : 0 };
  }

  function unwatch({ name }) {
    watches.get(name)?.observer.disconnect();
    watches.delete(name);
    return {};
  }

  return { document_id, keep, recall, begin, quiet, unwatch };
})();
