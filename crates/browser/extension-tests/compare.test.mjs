// What changed between two outlines, as properties over outlines made by chance [BROWSER-51].

import assert from "node:assert/strict";
import { test } from "node:test";

import { apply, compare, tell } from "../extension/page/compare.js";

/** Numbers from a seed, the same in every run. */
function chances(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const line = (depth, said) => `${"  ".repeat(depth)}- ${said}`;

/** An outline as pages have them: some lines with refs, many the same. */
function outline(chance, n, first_ref = 1) {
  return Array.from({ length: n }, (_, at) => {
    const depth = chance(5);
    const kind = chance(4);
    if (kind === 0) return line(depth, `button "Save ${chance(3)}"${["", " [focused]", " [disabled]"][chance(3)]} [ref=e${first_ref + at}]`);
    if (kind === 1) return line(depth, `text: ${["", "one", "two", "three"][chance(4)]}`);
    return line(depth, ["list", "row", `heading "H [ref=e${chance(9)}]" [level=2]`][chance(3)]);
  });
}

function changed(chance, lines) {
  const after = [...lines];
  for (let n = chance(8); n > 0; n--) {
    const at = chance(after.length + 1);
    const how = chance(5);
    if (how === 0) after.splice(at, chance(6));
    else if (how === 1) after.splice(at, 0, ...outline(chance, chance(6), 1000 + n * 50));
    else if (how === 2 && after[at]) after[at] = after[at].replace(" [ref=", " [checked] [ref=");
    else if (how === 3 && after[at]) after.splice(chance(after.length), 0, ...after.splice(at, 1 + chance(4)));
    else if (after[at]) after[at] = `  ${after[at]}`;
  }
  return after;
}

test("the old lines and the steps make the new lines, whatever they are", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const chance = chances(seed);
    const before = outline(chance, chance(120));
    const after = chance(10) === 0 ? outline(chance, chance(120)) : changed(chance, before);
    const steps = compare(before, after);
    assert.deepEqual(apply(before, steps), after, `seed ${seed}`);
    assert.deepEqual(apply(before, compare(before, before)), before);
  }
});

test("every line that came or went is told once, and the counts are those of the lines", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const chance = chances(seed);
    const before = outline(chance, 10 + chance(80));
    const steps = compare(before, changed(chance, before));
    const told = tell(before, steps);
    const signs = told.text.split("\n").map((one) => one[0]);
    const n_of = (op) => steps.filter((step) => step.op === op).reduce((sum, step) => sum + step.lines.length, 0);
    assert.deepEqual([told.added, told.removed, told.n_untold], [n_of("new"), n_of("gone"), 0], `seed ${seed}`);
    for (const [sign, n] of [["+", told.added], ["-", told.removed], ["~", told.changed]]) assert.equal(signs.filter((one) => one === sign).length, n, `seed ${seed}`);
    // With less room, the rest is counted.
    const brief = tell(before, steps, { max_lines: 5 });
    const n_shown = brief.text === "" ? 0 : brief.text.split("\n").filter((one) => one[0] !== "@").length;
    assert.equal(n_shown + brief.n_untold, told.added + told.removed + told.changed, `seed ${seed}`);
  }
});

test("an element that has the same ref is changed, not another one", () => {
  const before = ["- main", line(1, 'button "Menu" [collapsed] [ref=e1]'), line(1, 'textbox "Name" [ref=e2]'), line(1, "text: 3 items")];
  const after = ["- main", line(1, 'button "Menu" [expanded] [ref=e1]'), line(2, 'menuitem "Copy" [ref=e7]'), line(1, 'textbox "Name" [ref=e2]: Ada'), line(1, "text: 4 items")];
  const { text, ...counts } = tell(before, compare(before, after));
  assert.equal(text, '@ main\n~ - button "Menu" [expanded] [ref=e1]\n+   - menuitem "Copy" [ref=e7]\n~ - textbox "Name" [ref=e2]: Ada\n- - text: 3 items\n+ - text: 4 items');
  assert.deepEqual(counts, { added: 2, removed: 1, changed: 2, n_untold: 0 });
});

test("a name that looks like a ref is none", () => {
  const before = ['- button "x [ref=e9]" [ref=e1]', "- text: [ref=e1]"];
  assert.deepEqual(compare(before, ['- button "y [ref=e9]" [ref=e1]', "- text: [ref=e1]"]), [{ op: "changed", was: before[0], is: '- button "y [ref=e9]" [ref=e1]' }, { op: "same", n: 1 }]);
});

test("what is only deeper, or only has the focus now, is no change", () => {
  const before = ["- main", line(1, 'button "A" [focused] [ref=e1]'), line(1, 'button "B" [ref=e2]')];
  const after = ["- main", line(1, "group"), line(2, 'button "A" [ref=e1]'), line(2, 'button "B" [focused] [ref=e2]')];
  assert.equal(tell(before, compare(before, after), { is_brief: true }).text, "@ main\n+ - group");
  assert.equal(tell(before, compare(before, after)).changed, 2);
});

test("what an outline was too short to show neither came nor went", () => {
  const rows = Array.from({ length: 20 }, (_, n) => `- row [ref=e${n}]`);
  const more = ["- alert", ...rows.slice(0, 14)];
  assert.equal(tell(rows, compare(rows, more), { after_cut: true }).text, "+ - alert");
  assert.equal(tell(more, compare(more, rows), { before_cut: true }).text, "- - alert");
  assert.equal(tell(rows, compare(rows, more)).removed, 6);
});

test("fifty thousand lines are compared in slices of the steps that the changes need", () => {
  const before = Array.from({ length: 50_000 }, (_, n) => (n % 3 === 0 ? line(n % 7, "row") : line(n % 7, `button "B ${n}" [ref=e${n}]`)));
  const after = before.flatMap((one, n) => (n % 997 === 0 ? [] : n % 1009 === 0 ? [one, line(0, `text: new ${n}`)] : [one]));
  const steps = compare(before, after);
  assert.deepEqual(apply(before, steps), after);
  const told = tell(before, steps, { max_lines: 60, max_chars: 6000 });
  assert.ok(told.text.length <= 6000 && told.text.split("\n").length <= 60);
  // Nothing that both have in common is retold for want of a better match.
  assert.ok(told.added + told.removed < 250, `${told.added} and ${told.removed}`);
});
