// The status page: asks the offscreen document and the service worker each second.

const WORDS = {
  starting: "starting",
  connected: "connected",
  disconnected: "no server; it is looked for every second",
  refused: "the server does not know this pairing; install the extension again with `browser-mcp extension install`",
  incompatible: "server and extension are of different versions; install the extension again",
};

setInterval(show, 1000);
show();

async function show() {
  const link = await ask("offscreen", "status");
  const counts = await ask("worker", "counts");
  tell("state", link ? [WORDS[link.state] ?? link.state, link.detail].filter(Boolean).join(" – ") : "not running");
  tell("server", link?.name || "–");
  tell("port", link?.port ?? "–");
  tell("polled", link?.polled_at ? `${Math.round((Date.now() - link.polled_at) / 1000)} s ago` : "–");
  tell("commands", counts?.n_commands ?? "–");
}

function tell(id, text) {
  document.getElementById(id).textContent = text;
}

async function ask(to, kind) {
  return await chrome.runtime.sendMessage({ to, kind }).catch(() => null);
}
