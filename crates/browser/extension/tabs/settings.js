// Choices made with `configure`; they last until the browser ends.

const PREFIX = "setting:";

const cache = new Map();

export async function readSetting(name, otherwise) {
  if (!cache.has(name)) {
    const key = PREFIX + name;
    cache.set(name, (await chrome.storage.session.get(key))[key]);
  }
  return cache.get(name) ?? otherwise;
}

export async function writeSetting(name, value) {
  cache.set(name, value);
  await chrome.storage.session.set({ [PREFIX + name]: value });
}

/** Forgets the settings whose names fit. */
export async function dropSettings(fits) {
  const keys = (await chrome.storage.session.getKeys?.()) ?? Object.keys(await chrome.storage.session.get(null));
  const gone = keys.filter((key) => key.startsWith(PREFIX) && fits(key.slice(PREFIX.length)));
  for (const key of gone) cache.delete(key.slice(PREFIX.length));
  if (gone.length > 0) await chrome.storage.session.remove(gone);
}
