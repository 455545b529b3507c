// What was typed where secrets are typed is in no answer: neither of the command that typed it, nor of later ones as long as the
// document that the tab shows is the same, wherever in it the page shows it. Kept in the memory of the worker only.
//
// Not masked is what a caller asks for by itself: the result of a script, cookies, the storages, and pictures.

import { watchPages } from "../tabs/navigation.js";

export const MASK = "••••";

const SHORTEST = 3;
const MAX_NOTED = 20;
const SHORTEST_HEAD = 4;
const LONGEST_HEAD = 2000;
/** The lengths at which names, and values and texts, are cut at the earliest. */
const SHORT_CUT = 200;
const LONG_CUT = 500;
/** The members of answers that hold words of a page. */
const WORDS = new Set(["text", "title", "target", "value", "label", "message", "description", "left_out", "error", "not_known"]);

/** By tab: `texts` as `{text, field, is_grown}`, and `fields`, what was done last in each as `{before, whole}`. */
const noted = new Map();
/** Keys wherever they go. */
const SOMEWHERE = "somewhere";

export function watchMasks() {
  watchPages((kind, tab_id) => (kind === "committed" || kind === "closed") && noted.delete(tab_id));
}

/** Masks a text from now on. `ref` or `selector` is what it goes into; with `is_more` it stands behind what was typed there before. */
export function noteSecret(run, text, { ref, selector }, is_more = false) {
  const field = ref ?? selector;
  const before = is_more ? (noted.get(run.tab_id)?.fields.get(field)?.whole ?? "") : "";
  const is_piece = is_more && text.length < SHORTEST;
  note(run, field, { before, whole: before + text, is_piece }, is_piece ? [] : [text]);
}

/**
 * Masks what a field holds with a key that is pressed in it: `value` is what stands there, `from` and `to` what of it is selected. The keys
 * that are pressed one after the other are one text besides, until `endKeys`: fields may hold one character each, or show another text.
 */
export function noteKey(run, text, { field = SOMEWHERE, value, from, to }) {
  const before = value ?? noted.get(run.tab_id)?.fields.get(field)?.whole ?? "";
  const start = from ?? before.length;
  note(run, field, { before, whole: before.slice(0, start) + text + before.slice(to ?? start), is_piece: true }, []);
  if (field !== SOMEWHERE) noteKey(run, text, {});
}

/** What is pressed from now on is another text, whichever field it goes to. */
export function endKeys(run) {
  noted.get(run.tab_id)?.fields.delete(SOMEWHERE);
}

function note(run, field, { before, whole, is_piece }, more) {
  const { texts, fields } = noted.get(run.tab_id) ?? { texts: [], fields: new Map() };
  const last = fields.get(field);
  // Of what grows in a field, piece by piece, only the last is kept, and what it grew from: a field may not take the piece.
  const is_outgrown = (one) => one.is_grown && one.text === last?.before && last.whole === before && last.whole.length > last.before.length;
  const added = [...new Set([...more, before, whole])].filter((one) => one.length >= SHORTEST);
  const kept = texts.filter((one) => one.field !== field || !(is_outgrown(one) || added.includes(one.text)));
  const isGrown = (text) => is_piece && texts.every((one) => one.field !== field || one.text !== text || one.is_grown);
  fields.delete(field);
  fields.set(field, { before, whole });
  if (fields.size > MAX_NOTED) fields.delete(fields.keys().next().value);
  noted.set(run.tab_id, { texts: [...kept, ...added.map((text) => ({ text, field, is_grown: isGrown(text) }))].slice(-MAX_NOTED), fields });
  (run.secrets ??= []).push(...added);
}

/** A text of a page without what was typed into it. */
export function masked(run, text) {
  const forms = formsOf(run);
  return forms.length === 0 ? text : withoutHeads(text.replace(patternOf(forms), hidden), forms);
}

/** An answer, whose words of the page are masked in place of what holds them. */
export function maskedAnswer(run, answer) {
  const forms = formsOf(run);
  if (forms.length === 0) return answer;
  const pattern = patternOf(forms);
  return walk(answer, false, (text) => withoutHeads(text.replace(pattern, hidden), forms));
}

/** As `maskedAnswer`, of what a command failed with. */
export function maskedFailure(run, error) {
  if (formsOf(run).length === 0) return error;
  error.message = masked(run, String(error.message));
  if (error.details) error.details = maskedAnswer(run, error.details);
  return error;
}

function walk(value, is_words, mask) {
  if (typeof value === "string") return is_words ? mask(value) : value;
  if (Array.isArray(value)) return value.map((one) => walk(one, is_words, mask));
  if (typeof value !== "object" || value === null) return value;
  const inner = ([name, one]) => (name === "url" && typeof one === "string" && !is_words ? maskedAddress(one, mask) : walk(one, is_words || WORDS.has(name), mask));
  return Object.fromEntries(Object.entries(value).map((entry) => [entry[0], inner(entry)]));
}

/** An address is a name of something, and what a page puts behind the origin are its words. */
function maskedAddress(url, mask) {
  const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(url)?.[0] ?? "";
  return origin + mask(url.slice(origin.length));
}

/** All that a secret may look like in an answer, the longest first. */
function formsOf(run) {
  const secrets = [...(run.secrets ?? []), ...(noted.get(run.tab_id)?.texts ?? []).map((one) => one.text)];
  const forms = new Set(secrets.flatMap(looksOf).filter((one) => one.length >= SHORTEST));
  return [...forms].sort((one, other) => other.length - one.length);
}

/** As it is, with its spaces as a page shows them, in the quotes of a name, and in an address. */
function looksOf(secret) {
  return [secret, secret.replace(/\s+/g, " ").trim()].flatMap((text) => {
    const encoded = encodeURIComponent(text.toWellFormed());
    return [text, JSON.stringify(text).slice(1, -1), encoded, encoded.replaceAll("%20", "+")];
  });
}

/** A ref is ours, whatever of it looks like a secret. */
const REF = "\\[ref=(?:f\\d+)?e\\d+\\]";
const IS_REF = new RegExp(`^${REF}$`);

function hidden(found) {
  return IS_REF.test(found) ? found : MASK;
}

function patternOf(forms) {
  return new RegExp([REF, ...forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))].join("|"), "g");
}

/** Where a text was cut the head of a secret may be left: before the mark of a cut, and at the end of a long line. */
function withoutHeads(text, forms) {
  return text.replace(/[^\n…]+/g, (part, at) => {
    const is_cut = text[at + part.length] === "…" ? part.length >= SHORT_CUT : part.length >= LONG_CUT;
    return is_cut ? withoutHead(part, forms) : part;
  });
}

function withoutHead(part, forms) {
  let longest = 0;
  for (const form of forms) {
    for (let n = Math.min(form.length - 1, LONGEST_HEAD); n > longest && n >= SHORTEST_HEAD; n--) if (part.endsWith(form.slice(0, n))) longest = n;
  }
  return longest === 0 ? part : part.slice(0, -longest) + MASK;
}
