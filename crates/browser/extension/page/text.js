// The text of a page as it is shown, with what shadow roots and frames of the same origin hold. Where
// there are none it is the browser's own `innerText`.

globalThis.raincheckText ??= (() => {
  const { FRAMES, tagOf, kindOf, innerOf, shownIn, pathTo, isHtml, viewOf } = globalThis.raincheckDom;

  const SILENT = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE"]);

  /** An array of texts and of holes, `{path, url, name}`, which stand for frames that this world does not reach. */
  function textOf(root) {
    const parts = [];
    const special = new Set();
    addHosts(root, special);
    gather(root, special, parts);
    return joined(parts);
  }

  /** Adds the elements that hold a shadow root or a frame, and those around them. */
  function addHosts(root, special) {
    for (const element of [root, ...root.querySelectorAll("*")]) {
      const tag = tagOf(element);
      if (!FRAMES.has(tag) && tag !== "SLOT" && !innerOf(element)) continue;
      for (let at = element; at && !special.has(at); at = at === root ? null : at.parentElement) special.add(at);
    }
  }

  function gather(element, special, parts) {
    if (!special.has(element)) return void parts.push(plainText(element));
    const style = viewOf(element)?.getComputedStyle(element);
    if (!style || style.display === "none") return;
    const edge = style.display.startsWith("inline") || style.display === "contents" ? "" : "\n";
    parts.push(edge);
    if (FRAMES.has(tagOf(element))) gatherFrame(element, parts);
    else {
      const inner = innerOf(element);
      for (const child of inner?.children ?? []) addHosts(child, special);
      for (const child of shownIn(element)) gatherNode(child, special, parts, style);
    }
    parts.push(edge);
  }

  function gatherNode(node, special, parts, style) {
    if (kindOf(node) === 3 && style.visibility === "visible") parts.push(style.whiteSpace.startsWith("pre") ? node.data : node.data.replace(/\s+/g, " "));
    if (kindOf(node) !== 1 || SILENT.has(tagOf(node))) return;
    if (special.has(node)) return gather(node, special, parts);
    const display = viewOf(node)?.getComputedStyle(node).display ?? "none";
    if (display === "none") return;
    const edge = display.startsWith("inline") || display === "contents" ? "" : "\n";
    parts.push(edge, plainText(node), edge);
  }

  function gatherFrame(frame, parts) {
    const inner = innerOf(frame);
    if (!inner) return void parts.push({ path: pathTo(frame), url: frame.src ?? "", name: frame.name ?? "" });
    if (inner.body) parts.push("\n", ...textOf(inner.body), "\n");
  }

  function plainText(element) {
    if (isHtml(element)) return element.innerText ?? "";
    return element.checkVisibility() ? element.textContent.replace(/\s+/g, " ") : "";
  }

  /** Neighbouring texts as one, without empty lines in a row. */
  function joined(parts) {
    const whole = [""];
    for (const part of parts) {
      if (typeof part === "string" && typeof whole.at(-1) === "string") whole.push(whole.pop() + part);
      else whole.push(part);
    }
    return whole.map((part) => (typeof part === "string" ? part.replace(/\n{3,}/g, "\n\n") : part)).filter((part) => part !== "");
  }

  /** Whether a text is shown; a frame that is not reached cannot tell. */
  function says(root, wanted) {
    return textOf(root).some((part) => typeof part === "string" && part.includes(wanted));
  }

  return { textOf, says };
})();
