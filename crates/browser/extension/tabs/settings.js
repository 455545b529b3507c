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
