// The outline of a page: an indented accessibility tree with refs, of as much as the budgets allow.
// It is made in slices, between which the page goes on; what changes meanwhile is shown as it is found.

globalThis.raincheckOutline ??= (() => {
  const { INTERACTIVE, NAME_FROM_CONTENT, CHECKABLE, FRAMES, TARGETS, attr, has, fits, one, rootOf, parentOf, tagOf, kindOf, documentOf, viewOf, isConnected, allIn, find, innerOf, shownIn, hasFocus, refOf, pathTo, roleOf, nameOf, valueOf, squeeze, counter } = globalThis.raincheckDom;

  const SILENT = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK"]);
  const ENDS_HERE = new Set(["textbox", "searchbox", "combobox", "img"]);
  const NAMELESS = new Set(["group", "form", "figure", "img"]);
  const SLICE_MS = 12;
  const MAX_INDENT = 30;
  const MAX_TEXT = 2000;
  const MAX_INNERS = 500;

  /**
   * `{text, holes, left_out, is_cut, inners}`. A hole is a line that stands for a frame whose document this
   * world does not reach: `{line, path, url, indent}`. `left_out` says in words what is not shown, `is_cut` whether it ends
   * before the page does. `inners` are the shadow roots and the documents of frames that were looked into.
   */
  async function outline({ selector, ref, prefix = "", depth = Infinity, max_nodes = Infinity, max_bytes = 400_000, limit_ms = Infinity, after_ref = 0 }) {
    counter.last = Math.max(counter.last, after_ref);
    const root = selector !== undefined || ref !== undefined ? find({ selector, ref }) : document.body;
    const page = { lines: [], holes: [], prefix, depth, left: max_bytes, nodes_left: max_nodes, labels: new Map(), n_deeper: 0, inners: new Set() };
    const until = performance.now() + limit_ms;
    // What is still to be looked at, the next one last.
    const open = root ? [{ node: root, depth: 0, in_pointer: false }] : [];
    let slice = performance.now() + SLICE_MS;
    while (open.length > 0 && page.left > 0 && page.nodes_left > 0) {
      const now = performance.now();
      if (now > until) break;
      if (now > slice) {
        await breathe();
        slice = performance.now() + SLICE_MS;
      }
      look(open.pop(), open, page);
    }
    return { text: page.lines.join("\n"), holes: page.holes, left_out: leftOut(open, page), is_cut: open.length > 0, inners: page.inners };
  }

  /** Lets the page do what it has to do; unlike a timer it is not slowed down in a tab that is not in front. */
  function breathe() {
    return new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(null);
    });
  }

  function leftOut(open, page) {
    const said = [];
    const rest = open.reduce((n, { node }) => n + sizeOf(node), 0);
    if (rest > 0) said.push(`about ${rest} more elements after this place; pass a \`selector\` or \`ref\` for a part, \`depth\` for less of all, or larger budgets`);
    if (page.n_deeper > 0) said.push(`${page.n_deeper} elements deeper than \`depth\``);
    return said;
  }

  function sizeOf(node) {
    return kindOf(node) === 1 ? 1 + allIn(node, "*").length : 1;
  }

  /** Writes one node; what is in it comes next. What has no role of its own leaves only its children. */
  function look({ node, depth, in_pointer, is_hidden, is_label }, open, page) {
    const kind = kindOf(node);
    if (kind === 3) return is_hidden || is_label ? undefined : tellText(node, depth, page);
    if (kind !== 1 || !isConnected(node)) return;
    const tag = tagOf(node);
    if (SILENT.has(tag) || attr(node, "aria-hidden") === "true") return;
    const style = viewOf(node)?.getComputedStyle(node);
    if (!style || style.display === "none") return;
    const is_shown = style.visibility === "visible";
    const is_pointer = style.cursor === "pointer";
    const role = roleOf(node);
    const is_target = INTERACTIVE.has(role) || (has(node, "tabindex") && node.tabIndex >= 0) || (is_pointer && !in_pointer);
    const name = role || is_target ? nameOf(node, role, (control) => labelsOf(control, page)) : "";
    const is_told = is_shown && (is_target || (role !== null && role !== "paragraph" && (name !== "" || !NAMELESS.has(role))));
    let next = depth;
    if (is_told) {
      if (depth >= page.depth) return void (page.n_deeper += sizeOf(node));
      tell(`${indented(depth)}- ${lineOf(node, role ?? "generic", name, is_target, page)}`, page);
      next = depth + 1;
      if (FRAMES.has(tag) && !innerOf(node)) page.holes.push({ line: page.lines.length - 1, path: pathTo(node), url: node.src ?? "", name: node.name ?? "", depth });
      if (NAME_FROM_CONTENT.has(role) && !one(node, TARGETS) && !holdsMore(node)) return;
    }
    if (ENDS_HERE.has(role) && !(role === "img" && one(node, TARGETS))) return;
    const is_name = tag === "LABEL" && node.control !== null;
    const inner = shownIn(node);
    noteInner(node, tag, inner, page);
    for (let n = inner.length - 1; n >= 0; n--) open.push({ node: inner[n], depth: next, in_pointer: in_pointer || is_pointer, is_hidden: !is_shown, is_label: is_name });
  }

  function noteInner(node, tag, inner, page) {
    const first = inner[0];
    if (!first || tag === "SLOT" || parentOf(first) === node || page.inners.size >= MAX_INNERS) return;
    page.inners.add(rootOf(first));
  }

  /** Whether there is more in an element than the text that is its name. */
  function holdsMore(node) {
    return innerOf(node) !== null || one(node, "iframe, slot") !== null;
  }

  function tell(line, page) {
    page.left -= bytesOf(line) + 1;
    page.nodes_left--;
    page.lines.push(line);
  }

  function tellText(node, depth, page) {
    const said = squeeze(node.data);
    if (said === "") return;
    if (depth >= page.depth) return void page.n_deeper++;
    tell(`${indented(depth)}- text: ${said.slice(0, MAX_TEXT)}`, page);
  }

  function indented(depth) {
    return "  ".repeat(Math.min(depth, MAX_INDENT));
  }

  /** The labels of a control, from one look at all labels of its root. */
  function labelsOf(control, page) {
    const root = rootOf(control);
    let labels = page.labels.get(root);
    if (!labels) {
      page.labels.set(root, (labels = new Map()));
      for (const label of root.querySelectorAll("label")) {
        const { control: labelled } = label;
        if (labelled) labels.set(labelled, [...(labels.get(labelled) ?? []), label]);
      }
    }
    return labels.get(control);
  }

  function lineOf(element, role, name, is_target, page) {
    const marks = [];
    const tag = tagOf(element);
    if (role === "heading") marks.push(`level=${attr(element, "aria-level") ?? tag.slice(1)}`);
    if (fits(element, ":disabled, [aria-disabled=true]")) marks.push("disabled");
    if (CHECKABLE.has(role) && (tag === "INPUT" ? element.checked : attr(element, "aria-checked") === "true")) marks.push("checked");
    const expanded = attr(element, "aria-expanded");
    if (expanded) marks.push(expanded === "true" ? "expanded" : "collapsed");
    if ((tag === "OPTION" && element.selected) || attr(element, "aria-selected") === "true") marks.push("selected");
    if (fits(element, ":required")) marks.push("required");
    if (hasFocus(element) && element !== documentOf(element).body) marks.push("focused");
    if (is_target) marks.push(`ref=${page.prefix}${refOf(element)}`);
    const value = valueOf(element);
    const link = role === "link" && attr(element, "href") ? ` -> ${squeeze(attr(element, "href").slice(0, 200))}` : "";
    return `${role}${name ? ` ${JSON.stringify(name)}` : ""}${marks.map((mark) => ` [${mark}]`).join("")}${value ? `: ${value}` : ""}${link}`;
  }

  function bytesOf(line) {
    let bytes = line.length;
    for (let n = 0; n < line.length; n++) {
      const code = line.charCodeAt(n);
      // A pair of surrogates is two units, and four bytes.
      if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
    }
    return bytes;
  }

  return outline;
})();
