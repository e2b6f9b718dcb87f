/**
 * The files that a session changed, from the diffs of its tool calls. This module does not use the DOM.
 *
 * A diff of a tool call has the whole texts of a file or parts of them. Changes of one file are joined if one fits
 * into the other, so that a file edited ten times shows one diff.
 */

/**
 * The changed files in the order of their first change. Failed and unfinished calls do not count.
 *
 * @param {page.Item[]} items
 * @param {string} cwd
 * @returns {page.ChangedFile[]}
 */
export function changedFiles(items, cwd) {
  /** @type {Map<string, page.ChangedFile>} */
  const files = new Map();
  for (const item of items) {
    if (item.type !== "tool" || item.call.status !== "completed") continue;
    for (const part of item.call.content ?? []) {
      if (part.type !== "diff" || typeof part.path !== "string") continue;
      const change = { oldText: part.oldText ?? null, newText: part.newText ?? "" };
      if (change.oldText === change.newText) continue;
      const path = absolute(part.path, cwd);
      const file = files.get(path) ?? { path, changes: [] };
      file.changes.push(change);
      files.set(path, file);
    }
  }
  return [...files.values()];
}

/**
 * Join consecutive changes where possible.
 *
 * @param {page.Change[]} changes
 * @returns {page.Change[]}
 */
export function joined(changes) {
  /** @type {page.Change[]} */
  const found = [];
  for (const change of changes) {
    const last = found.at(-1);
    const newText = last ? after(last.newText, change) : null;
    if (last && newText !== null) found[found.length - 1] = { oldText: last.oldText, newText };
    else found.push(change);
  }
  return found.filter(({ oldText, newText }) => oldText !== newText);
}

/**
 * A text after a change of all or a part of it, or null if the change does not apply.
 *
 * @param {string} text
 * @param {page.Change} change
 */
function after(text, { oldText, newText }) {
  if (oldText === null) return null;
  if (oldText === text) return newText;
  const at = oldText ? text.indexOf(oldText) : -1;
  if (at < 0 || text.indexOf(oldText, at + 1) >= 0) return null;
  return text.slice(0, at) + newText + text.slice(at + oldText.length);
}

/**
 * @param {string} path
 * @param {string} cwd
 */
function absolute(path, cwd) {
  return path.startsWith("/") ? path : `${cwd.replace(/\/$/, "")}/${path.replace(/^\.\//, "")}`;
}
