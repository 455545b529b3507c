// Names of keys as pages know them, and the codes that real key events carry.

const NAMED = {
  Enter: ["Enter", 13, "\r"],
  Tab: ["Tab", 9],
  Escape: ["Escape", 27],
  Backspace: ["Backspace", 8],
  Delete: ["Delete", 46],
  Insert: ["Insert", 45],
  Home: ["Home", 36],
  End: ["End", 35],
  PageUp: ["PageUp", 33],
  PageDown: ["PageDown", 34],
  ArrowLeft: ["ArrowLeft", 37],
  ArrowUp: ["ArrowUp", 38],
  ArrowRight: ["ArrowRight", 39],
  ArrowDown: ["ArrowDown", 40],
  " ": ["Space", 32, " "],
};
const ALIASES = { Esc: "Escape", Return: "Enter", Space: " ", Del: "Delete", Left: "ArrowLeft", Up: "ArrowUp", Right: "ArrowRight", Down: "ArrowDown" };
const MODIFIERS = { Alt: 1, Control: 2, Ctrl: 2, Meta: 4, Command: 4, Cmd: 4, Shift: 8 };
const MODIFIER_KEYS = [
  [1, "Alt", "AltLeft", 18],
  [2, "Control", "ControlLeft", 17],
  [4, "Meta", "MetaLeft", 91],
  [8, "Shift", "ShiftLeft", 16],
];
const SYMBOLS = { ";": ["Semicolon", 186], "=": ["Equal", 187], ",": ["Comma", 188], "-": ["Minus", 189], ".": ["Period", 190], "/": ["Slash", 191], "`": ["Backquote", 192], "[": ["BracketLeft", 219], "\\": ["Backslash", 220], "]": ["BracketRight", 221], "'": ["Quote", 222] };

/** What a key writes with Shift, on the layout whose codes are told. */
const SHIFTED = { "1": "!", "2": "@", "3": "#", "4": "$", "5": "%", "6": "^", "7": "&", "8": "*", "9": "(", "0": ")", "-": "_", "=": "+", "[": "{", "]": "}", "\\": "|", ";": ":", "'": '"', ",": "<", ".": ">", "/": "?", "`": "~" };
const UNSHIFTED = Object.fromEntries(Object.entries(SHIFTED).map(([plain, shifted]) => [shifted, plain]));

/** `Control+Shift+K` as `{key, code, keyCode, text?, modifiers}`, or null where there is no such key. */
export function parseChord(chord) {
  const parts = chord === "+" ? ["+"] : chord.split(/\+(?!$)/);
  const last = parts.pop();
  let modifiers = 0;
  for (const part of parts) {
    if (!MODIFIERS[part]) return null;
    modifiers |= MODIFIERS[part];
  }
  const plain = keyOf(last);
  if (!plain) return null;
  const key = modifiers & MODIFIERS.Shift ? shifted(plain) : plain;
  // With Control, Alt or Meta a key is a command and writes nothing.
  return { ...key, text: modifiers & 7 ? undefined : key.text, modifiers };
}

/** The character that a chord writes, a space included; null for one that writes none, and for Enter, which ends what is written. */
export function writtenBy(chord) {
  const text = typeof chord === "string" ? parseChord(chord)?.text : undefined;
  return text === undefined || text === "\r" ? null : text;
}

/** A key as it is with Shift held. */
function shifted(key) {
  if ([...key.key].length !== 1 || key.key === " ") return key;
  const written = SHIFTED[key.key] ?? (key.key.length === 1 ? key.key.toUpperCase() : key.key);
  return { ...key, key: written, text: written };
}

/** One character or name of a key. */
export function keyOf(given) {
  const name = ALIASES[given] ?? given;
  const named = NAMED[name];
  if (named) return { key: name, code: named[0], keyCode: named[1], text: named[2] };
  if (/^F([1-9]|1[0-2])$/.test(name)) return { key: name, code: name, keyCode: 111 + Number(name.slice(1)) };
  if ([...name].length !== 1) return null;
  if (/^[a-z]$/i.test(name)) return { key: name, code: `Key${name.toUpperCase()}`, keyCode: name.toUpperCase().charCodeAt(0), text: name };
  if (/^\d$/.test(name)) return { key: name, code: `Digit${name}`, keyCode: name.charCodeAt(0), text: name };
  const plain = UNSHIFTED[name];
  if (plain !== undefined) return { ...keyOf(plain), key: name, text: name };
  const [code, keyCode] = SYMBOLS[name] ?? ["", 0];
  return { key: name, code, keyCode, text: name };
}

/** Names of modifier keys as a mask. */
export function maskOf(names) {
  return names.reduce((mask, name) => mask | (MODIFIERS[name] ?? 0), 0);
}

/** A mask as the members of an event. */
export function flagsOf(modifiers) {
  return { altKey: !!(modifiers & 1), ctrlKey: !!(modifiers & 2), metaKey: !!(modifiers & 4), shiftKey: !!(modifiers & 8) };
}

/** The modifier keys of a mask, in the order in which they are held. */
export function heldKeys(modifiers) {
  return MODIFIER_KEYS.filter(([bit]) => modifiers & bit).map(([bit, key, code, keyCode]) => ({ bit, key, code, keyCode }));
}
