// Choices made with `configure`, and what else is to be known until the browser ends.

const PREFIX = "setting:";

const cache = new Map();

export async function readSetting(name, otherwise) {
  if (!cache.has(name)) {
    const key = PREFIX + name;
    const stored = (await chrome.storage.session.get(key))[key];
    // What was written meanwhile is newer.
    if (!cache.has(name)) cache.set(name, stored);
  }
  return cache.get(name) ?? otherwise;
}

export async function writeSetting(name, value) {
  cache.set(name, value);
  try {
    await chrome.storage.session.set({ [PREFIX + name]: value });
  } catch (error) {
    // What is stored counts: the next worker knows nothing else.
    if (cache.get(name) === value) cache.delete(name);
    throw error;
  }
}

/** Forgets the settings whose names fit. */
export async function dropSettings(fits) {
  const keys = (await chrome.storage.session.getKeys?.()) ?? Object.keys(await chrome.storage.session.get(null));
  const gone = keys.filter((key) => key.startsWith(PREFIX) && fits(key.slice(PREFIX.length)));
  for (const key of gone) cache.delete(key.slice(PREFIX.length));
  if (gone.length > 0) await chrome.storage.session.remove(gone);
}

/** A bounded map in one setting: of more than `most` entries those that were not used for the longest time go. */
export class Remembered {
  #name;
  #most;
  #entries = null;

  constructor(name, most) {
    this.#name = name;
    this.#most = most;
  }

  async get(key) {
    const entries = await this.#load();
    if (!entries.has(key)) return undefined;
    const value = entries.get(key);
    // It was used: the others go first.
    entries.delete(key);
    entries.set(key, value);
    return value;
  }

  async set(key, value) {
    const entries = await this.#load();
    const is_new = entries.get(key) !== value;
    entries.delete(key);
    entries.set(key, value);
    while (entries.size > this.#most) entries.delete(entries.keys().next().value);
    if (is_new) await this.#write(entries);
  }

  /** Every entry, as `[key, value]`; none counts as used. */
  async all() {
    return [...(await this.#load())];
  }

  async delete(key) {
    await this.drop((name) => name === key);
  }

  /** Forgets the entries whose names fit. */
  async drop(fits) {
    const entries = await this.#load();
    const gone = [...entries.keys()].filter(fits);
    for (const key of gone) entries.delete(key);
    if (gone.length > 0) await this.#write(entries);
  }

  #load() {
    this.#entries ??= readSetting(this.#name, []).then((stored) => new Map(stored));
    return this.#entries;
  }

  async #write(entries) {
    await writeSetting(this.#name, [...entries]);
  }
}
