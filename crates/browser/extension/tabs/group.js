// The tabs that are worked in stand together in one named group of their window, so that the user sees
// which ones they are. A tab that is pinned, or in a group of the user's own, stays where it is.

const TITLE = "Raincheck";
const COLOR = "blue";
const NONE = -1;

let turn = Promise.resolve();

/** Puts a tab into the group of its window. That it cannot be is no failure of a command. */
export function takeInHand(tab_id) {
  // One after the other, or two tabs would make two groups.
  turn = turn.then(() => join(tab_id)).catch(() => {});
  return turn;
}

/** The groups of tabs that are worked in. */
export async function ownGroups() {
  const groups = await chrome.tabGroups.query({ title: TITLE }).catch(() => []);
  return new Set(groups.map((group) => group.id));
}

async function join(tab_id) {
  const tab = await chrome.tabs.get(tab_id);
  if (tab.pinned || tab.groupId !== NONE) return;
  const [known] = await chrome.tabGroups.query({ title: TITLE, windowId: tab.windowId });
  if (known) return void (await chrome.tabs.group({ tabIds: [tab_id], groupId: known.id }));
  const groupId = await chrome.tabs.group({ tabIds: [tab_id], createProperties: { windowId: tab.windowId } });
  await chrome.tabGroups.update(groupId, { title: TITLE, color: COLOR });
}
