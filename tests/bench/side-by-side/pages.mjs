// The pages that all servers are shown, from one local web server.

import { createServer } from "node:http";

/** The fields of the form: name, role in an outline, and the two values that they are given in turn. */
export const FIELDS = [
  { name: "First name", kind: "textbox", values: ["Ada", "Grace"] },
  { name: "Last name", kind: "textbox", values: ["Lovelace", "Hopper"] },
  { name: "Email", kind: "textbox", values: ["ada@example.com", "grace@example.com"] },
  { name: "City", kind: "textbox", values: ["London", "New York"] },
  { name: "Country", kind: "combobox", values: ["United Kingdom", "United States"] },
  { name: "Subscribe", kind: "checkbox", values: ["true", "false"] },
];

/** What the form holds after it was filled with the values of a turn. */
export function filled(turn) {
  return FIELDS.map(({ values }) => values[turn % 2]);
}

/** Reads the form in the page, as `filled` tells it. */
export const READ_FORM = `[...document.querySelectorAll("input")].map((one) => (one.type === "checkbox" ? String(one.checked) : one.value)).toSpliced(4, 0, document.querySelector("select").selectedOptions[0].text)`;

const COUNTRIES = ["France", "Germany", "United Kingdom", "United States"];
const SMALL = page(
  "Account",
  `<h1>Account</h1><nav><a href="#a">Overview</a> <a href="#b">Orders</a> <a href="#c">Invoices</a> <a href="#d">Help</a></nav>
<p>Change what we know about you. Nothing is sent before you press Save.</p>
<form onsubmit="return false">
${FIELDS.map(field).join("\n")}
<button type="button" id="save" onclick="globalThis.n_clicks = (globalThis.n_clicks ?? 0) + 1">Save</button>
</form>`,
);
/** 5,000 elements: 500 articles of ten. */
const LARGE = page("Catalogue", Array.from({ length: 500 }, (_, n) => article(n)).join("\n"));
const PAGES = { "/small": SMALL, "/large": LARGE, "/tab": page("Tab", "<p>One of eight.</p>") };

export async function servePages() {
  const server = createServer((asked, answer) => {
    const body = PAGES[new URL(asked.url, "http://localhost").pathname];
    answer.writeHead(body ? 200 : 404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" }).end(body ?? "");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

function page(title, body) {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body>${body}</body></html>`;
}

function field({ name, kind }) {
  if (kind === "combobox") return `<label>${name} <select>${COUNTRIES.map((one) => `<option>${one}</option>`).join("")}</select></label>`;
  return `<label>${name} <input${kind === "checkbox" ? ` type="checkbox"` : ""}></label>`;
}

function article(n) {
  return `<article><h2>Item ${n}</h2><p>A thing of use, the ${n}th of its kind.</p><a href="#item-${n}">Details of item ${n}</a><ul><li>Weight ${n} g</li><li>Stock ${n % 7}</li></ul><button type="button">Add item ${n}</button><span>${n}.00</span><span>in stock</span></article>`;
}
