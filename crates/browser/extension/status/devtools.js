// Runs in all DevTools that a person opens, and says which tab they are of: that tab's debugger is theirs.

const AGAIN_MS = 200;

function tell() {
  const port = chrome.runtime.connect({ name: `devtools:${chrome.devtools.inspectedWindow.tabId}` });
  // The worker was stopped, and the next one does not know of it.
  port.onDisconnect.addListener(() => setTimeout(tell, AGAIN_MS));
}

tell();
