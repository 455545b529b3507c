// What changed between two outlines. Lines are matched in three passes: what is equal at both ends, then the lines that both have
// once (refs make most lines so), then the rest by their longest common sequence where it is small.
//
// A comparison is a list of steps from the old lines to the new ones:
//   {op: "same", n} · {op: "gone", lines} · {op: "new", lines} · {op: "changed", was, is}

const MAX_CELLS = 40_000;
const MAX_ALL_CELLS = 4_000_000;
const LINE_CHARS = 300;
// A name may hold what looks like a ref: only the mark after it counts.
const REF = /^- (?!text: )[^\s"[]+(?: "(?:[^"\\]|\\.)*")?(?: \[[^\]]*\])*? \[ref=(f?\w*e\d+)\]/;
const FOCUS = " [focused]";

/** The steps that make `after` of `before`, both lists of lines. */
export function compare(before, after) {
  const keys = [before.map(keyOf), after.map(keyOf)];
  const pairs = [];
  match(keys, [0, before.length, 0, after.length], pairs, { cells: MAX_ALL_CELLS });
  pairs.sort(([a], [b]) => a - b);
  const steps = [];
  let [at, to] = [0, 0];
  for (const [n, m] of [...pairs, [before.length, after.length]]) {
    if (n > at) steps.push({ op: "gone", lines: before.slice(at, n) });
    if (m > to) steps.push({ op: "new", lines: after.slice(to, m) });
    if (n < before.length && before[n] !== after[m]) steps.push({ op: "changed", was: before[n], is: after[m] });
    else if (n < before.length && steps.at(-1)?.op === "same") steps.at(-1).n++;
    else if (n < before.length) steps.push({ op: "same", n: 1 });
    [at, to] = [n + 1, m + 1];
  }
  return steps;
}

/** The new lines, of the old ones and the steps. */
export function apply(before, steps) {
  const after = [];
  let at = 0;
  for (const step of steps) {
    if (step.op === "same") after.push(...before.slice(at, at + step.n));
    if (step.op === "new") after.push(...step.lines);
    if (step.op === "changed") after.push(step.is);
    at += lengthOf(step);
  }
  return after;
}

/**
 * The steps in words: `{added, removed, changed, text, n_untold}`. Lines begin with `+`, `-` or `~`; `@` names what the lines
 * after it are in. A change of indentation alone is none, and one of the focus alone where `is_brief`. What one outline was too
 * short to show is no change: `before_cut` and `after_cut` tell which was, at its end; `unsure_before` and `unsure_after` are ranges of
 * lines, `[from, to]`, in which what the other one lacks may be there all the same.
 */
export function tell(before, steps, { before_cut = false, after_cut = false, unsure_before = [], unsure_after = [], is_brief = false, max_lines = Infinity, max_chars = Infinity } = {}) {
  const counts = { "+": 0, "-": 0, "~": 0 };
  const told = { text: [], n_untold: 0, max_lines, left: max_chars, head: null };
  const last = steps.findLastIndex(({ op }) => op === "same" || op === "changed");
  // The lines that what comes next may be in, the innermost last.
  const parents = [];
  let [at, to, depth] = [0, 0, Infinity];
  const isUnsure = (ranges, line) => ranges.some(([from, end]) => from <= line && line < end);
  const put = (sign, line) => {
    counts[sign]++;
    if (depthOf(line) < depth) [depth] = [depthOf(line), head(line, parents, told)];
    write(`${sign} ${"  ".repeat(depthOf(line) - depth)}${clip(line.trimStart())}`, told);
  };
  for (const [n, step] of steps.entries()) {
    if (step.op === "same") {
      for (const line of before.slice(at, at + step.n)) enter(line, parents);
      depth = Infinity;
    } else if (step.op === "changed") {
      if (!isAlike(step.was, step.is, is_brief)) put("~", step.is);
      else depth = Infinity;
      enter(step.is, parents);
    } else if (step.op === "gone" && (n < last || !after_cut)) {
      for (const [i, line] of step.lines.entries()) if (!isUnsure(unsure_before, at + i)) put("-", line);
    } else if (step.op === "new" && (n < last || !before_cut)) {
      for (const [i, line] of step.lines.entries()) {
        if (!isUnsure(unsure_after, to + i)) put("+", line);
        enter(line, parents);
      }
    }
    at += lengthOf(step);
    to += step.op === "gone" ? 0 : step.op === "new" ? step.lines.length : lengthOf(step);
  }
  return { added: counts["+"], removed: counts["-"], changed: counts["~"], text: told.text.join("\n"), n_untold: told.n_untold };
}

function lengthOf({ op, n, lines }) {
  return op === "same" ? n : op === "gone" ? lines.length : op === "changed" ? 1 : 0;
}

/** Whole lines, until there is no room for one. */
function write(line, told) {
  if (told.n_untold > 0 || told.text.length >= told.max_lines || told.left < line.length) return void told.n_untold++;
  told.left -= line.length + 1;
  told.text.push(line);
}

/** Names what the next lines are in, unless it is the same as for the lines before. */
function head(line, parents, told) {
  const parent = parents.findLast((one) => one.depth < depthOf(line));
  const name = parent ? `@ ${clip(parent.line.trimStart().slice(2))}` : "@ the page";
  if (name === told.head || (!parent && told.text.length === 0)) return;
  told.head = name;
  if (told.n_untold > 0 || told.left < name.length || told.text.length >= told.max_lines) return;
  told.left -= name.length + 1;
  told.text.push(name);
}

function enter(line, parents) {
  const depth = depthOf(line);
  while (parents.length > 0 && parents.at(-1).depth >= depth) parents.pop();
  parents.push({ depth, line });
}

function isAlike(was, is, is_brief) {
  const plain = (line) => (is_brief ? line.replace(FOCUS, "") : line).trimStart();
  return plain(was) === plain(is);
}

function depthOf(line) {
  return (line.length - line.trimStart().length) >> 1;
}

function clip(line) {
  return line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line;
}

/** What makes two lines the same one: their ref, else all they say. */
function keyOf(line) {
  const said = line.trimStart();
  const ref = REF.exec(said);
  return ref ? `@${ref[1]}` : said;
}

function match([a, b], [a_from, a_to, b_from, b_to], pairs, left) {
  while (a_from < a_to && b_from < b_to && a[a_from] === b[b_from]) pairs.push([a_from++, b_from++]);
  while (a_from < a_to && b_from < b_to && a[a_to - 1] === b[b_to - 1]) pairs.push([--a_to, --b_to]);
  if (a_from === a_to || b_from === b_to) return;
  const fixed = anchors([a, b], [a_from, a_to, b_from, b_to]);
  if (fixed.length === 0) return sequence([a, b], [a_from, a_to, b_from, b_to], pairs, left);
  for (const [n, m] of [...fixed, [a_to, b_to]]) {
    match([a, b], [a_from, n, b_from, m], pairs, left);
    if (n < a_to) pairs.push([n, m]);
    [a_from, b_from] = [n + 1, m + 1];
  }
}

/** The most lines that both have once and in the same order. */
function anchors([a, b], [a_from, a_to, b_from, b_to]) {
  const seen = new Map();
  for (let n = a_from; n < a_to; n++) seen.set(a[n], { at: seen.has(a[n]) ? -1 : n, to: -1, n_to: 0 });
  for (let m = b_from; m < b_to; m++) {
    const one = seen.get(b[m]);
    if (one) Object.assign(one, { to: m, n_to: one.n_to + 1 });
  }
  const both = [...seen.values()].filter((one) => one.at >= 0 && one.n_to === 1).sort((one, other) => one.at - other.at);
  // The longest run that rises, by the smallest end of each length.
  const ends = [];
  for (const one of both) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle].to < one.to) low = middle + 1;
      else high = middle;
    }
    one.before = ends[low - 1];
    ends[low] = one;
  }
  const found = [];
  for (let one = ends.at(-1); one; one = one.before) found.push([one.at, one.to]);
  return found.reverse();
}

/** Pairs by the longest common sequence, of what is small. */
function sequence([a, b], [a_from, a_to, b_from, b_to], pairs, left) {
  const [rows, columns] = [a_to - a_from, b_to - b_from];
  const cells = rows * columns;
  if (cells > MAX_CELLS || cells > left.cells) return;
  left.cells -= cells;
  const longest = Array.from({ length: rows + 1 }, () => new Uint32Array(columns + 1));
  for (let n = rows - 1; n >= 0; n--) {
    for (let m = columns - 1; m >= 0; m--) {
      longest[n][m] = a[a_from + n] === b[b_from + m] ? longest[n + 1][m + 1] + 1 : Math.max(longest[n + 1][m], longest[n][m + 1]);
    }
  }
  for (let [n, m] = [0, 0]; n < rows && m < columns; ) {
    if (a[a_from + n] === b[b_from + m]) pairs.push([a_from + n++, b_from + m++]);
    else if (longest[n + 1][m] >= longest[n][m + 1]) n++;
    else m++;
  }
}
