// Targets that mean the same element after a reload [BROWSER-58], found in trees that are made here.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.CSS = { escape: (name) => name.replace(/[^\w-]/g, "\\$&") };
await import("../extension/page/target.js");

let root;

/** An element: `el("input#mail[name=mail]", child, …)`; members in brackets are attributes. */
function el(words, ...children) {
  const [, tag, id] = /^([\w-]+)(?:#([\w:-]+))?/.exec(words);
  const attributes = Object.fromEntries([...words.matchAll(/\[([\w-]+)=([^\]]*)\]/g)].map(([, name, value]) => [name, value]));
  if (id) attributes.id = id;
  const element = { tag, attributes, children, parent: null };
  for (const child of children) child.parent = element;
  return element;
}

function* all(element) {
  yield element;
  for (const child of element.children) yield* all(child);
}

/** Whether an element is what one step of a selector says, as far as these tests need it. */
function fits(element, step) {
  const [, tag, rest] = /^([\w-]*)(.*)$/.exec(step);
  if (tag && tag !== element.tag) return false;
  for (const [, id, name, value, nth] of rest.matchAll(/#((?:\\.|[\w-])+)|\[([\w-]+)="([^"]*)"\]|:nth-of-type\((\d+)\)/g)) {
    if (id !== undefined && element.attributes.id !== id.replace(/\\/g, "")) return false;
    if (name !== undefined && element.attributes[name] !== value) return false;
    if (nth !== undefined && (element.parent?.children ?? []).filter((each) => each.tag === element.tag).indexOf(element) !== Number(nth) - 1) return false;
  }
  return true;
}

function matches(element, steps) {
  const [last, ...before] = steps;
  if (!fits(element, last.step)) return false;
  if (before.length === 0) return true;
  if (last.by === ">") return element.parent !== null && matches(element.parent, before);
  for (let at = element.parent; at; at = at.parent) if (matches(at, before)) return true;
  return false;
}

function query(_, selector) {
  const steps = [];
  for (const part of selector.match(/(?:"[^"]*"|[^\s])+/g)) {
    if (part === ">") steps.by = ">";
    else (steps.unshift({ step: part, by: steps.by ?? " " }), (steps.by = undefined));
  }
  return [...all(root)].filter((element) => matches(element, steps));
}

const agent = globalThis.raincheckTargets({
  find: ({ ref }) => ref,
  query,
  attr: (element, name) => element.attributes[name] ?? null,
  tagOf: (element) => element.tag.toUpperCase(),
  typeOf: (element) => (element.tag === "input" ? (element.attributes.type ?? "text") : ""),
  parentOf: (element) => element.parent,
  rootOf: () => ({ children: [root] }),
  focused: () => null,
  describe: (element) => element.tag,
  isSecret: (element) => element.attributes.type === "password",
  originOf: () => "https://a.example",
});
globalThis.document = {};

/** The best target of an element of a tree. */
function best(tree, element) {
  root = tree;
  const { selectors } = agent.stable({ ref: element });
  for (const selector of selectors) assert.deepEqual(query(null, selector), [element], selector);
  return selectors[0];
}

test("what the author called it comes first: id, test id, name, label", () => {
  for (const [words, wanted] of [
    ["input#mail[name=m]", "#mail"],
    ["button[data-testid=send][name=s]", '[data-testid="send"]'],
    ["input[name=mail][placeholder=Mail]", 'input[name="mail"]'],
    ["button[aria-label=Close]", 'button[aria-label="Close"]'],
    ["a[href=/about]", 'a[href="/about"]'],
    ["input[type=radio][name=size][value=l]", 'input[name="size"][value="l"]'],
  ]) {
    const element = el(words);
    assert.equal(best(el("html", el("body", element, el("input[type=radio][name=size][value=s]"))), element), wanted);
  }
});

test("a made id is the last resort, and never needed where there is another way", () => {
  for (const id of ["ember123", "r:4", "a1b2c3d4e5", "_x", "mui-7"]) {
    const element = el(`input#${id}[name=q]`);
    assert.equal(best(el("html", el("body", element)), element), 'input[name="q"]', id);
  }
});

test("of several alike the path from what has a name, else from the outermost, means one", () => {
  const second = el("button");
  const tree = el("html", el("body", el("ul#list", el("li", el("button")), el("li", second))));
  assert.equal(best(tree, second), "#list > li:nth-of-type(2) > button");
  const third = el("span");
  const plain = el("html", el("body", el("div", el("span"), el("span"), third)));
  assert.equal(best(plain, third), "html > body > div > span:nth-of-type(3)");
  const inner = el("input[name=city]");
  const two = el("html", el("body", el("form#from", el("input[name=city]")), el("form#to", inner)));
  assert.equal(best(two, inner), '#to input[name="city"]');
});

test("what two elements share is the target of neither", () => {
  const twice = el("input#same[name=q]");
  const tree = el("html", el("body", el("input#same[name=q]"), twice));
  assert.equal(best(tree, twice), "html > body > input:nth-of-type(2)");
});

test("words that would end the quotes, and long ones, are no selector of their own", () => {
  const long = el(`button[aria-label=${"x".repeat(200)}]`);
  assert.equal(best(el("html", el("body", long, el("button"))), long), "html > body > button:nth-of-type(1)");
  root = el("html", el("body"));
  root.children[0].attributes["aria-label"] = 'a"]\\, *';
  const [first] = agent.stable({ ref: root.children[0] }).selectors;
  assert.ok(first === undefined || !/[^\\]"\]\\/.test(first), first);
});
