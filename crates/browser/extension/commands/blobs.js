// Answers that are too large for chrome.storage.session, in IndexedDB.

const STORE = "answers";

let opening = null;

export const blobs = {
  put: (key, value) => request("readwrite", (store) => store.put(value, key)),
  get: (key) => request("readonly", (store) => store.get(key)),
  delete: (key) => request("readwrite", (store) => store.delete(key)),
  /** The session storage that names the answers is gone after a restart of the browser. */
  clear: () => request("readwrite", (store) => store.clear()),
};

async function request(mode, act) {
  const database = await (opening ??= open());
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, mode);
    const asked = act(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(asked.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

function open() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open("raincheck", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}
