// Figures as a table in Markdown.

/** The value below which a share of the values lie. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/**
 * A row is `{figure, unit, of}`: `of` has by server what was measured, a list of times, a number, or words. The last column is the
 * best of the others over the first server's: above 1 the first one is ahead.
 */
export function table(servers, rows) {
  const [first, ...others] = servers;
  const head = ["", ...servers.map(({ id, version }) => `${id} ${version}`), "best other / ours"];
  const lines = rows.map(({ figure, unit, of }) => {
    const cells = servers.map((server) => cell(of.get(server), unit));
    const rest = others.map((server) => middle(of.get(server))).filter((one) => one !== null);
    const own = middle(of.get(first));
    return [figure, ...cells, own === null || rest.length === 0 ? "" : ratio(Math.min(...rest) / own)];
  });
  return [head, head.map(() => "---"), ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n");
}

/** What is compared: of times the median. */
function middle(value) {
  if (Array.isArray(value)) return value.length > 0 ? quantile(value, 0.5) : null;
  return typeof value === "number" ? value : null;
}

function cell(value, unit) {
  if (Array.isArray(value)) return value.length > 0 ? `${number(quantile(value, 0.5))} / ${number(quantile(value, 0.95))} ${unit}` : "";
  if (typeof value === "number") return `${number(value)}${unit ? ` ${unit}` : ""}`;
  return value ?? "";
}

function number(value) {
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function ratio(value) {
  return value >= 10 ? value.toFixed(0) : value.toFixed(2);
}
