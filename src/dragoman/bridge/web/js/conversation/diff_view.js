/** The diff of a file, unified or side by side. The choice is stored for all diffs. */

import { changedPart, countChanges, diffLines, splitLines, toHunks, toPairs } from "./diff.js";
import { el, fill } from "../page/dom.js";
import { visible } from "../text/safe.js";

const KEY = "dragoman.diff";
// Two columns need room, so the style sheet hides the button on small screens.
const narrow = matchMedia("(max-width: 40rem)");
// Longer diffs are truncated. The file has the whole text.
const MOST_ROWS = 2_000;
const MOST_CHARS = 2_000_000;

export class DiffView {
  #rows;
  #body = el("div", { class: "diff-body", tabindex: "0", role: "group" });
  #toggle;

  /**
   * @param {acp.Diff} diff
   * @param {(path: string) => string} shortPath
   */
  constructor({ path, oldText, newText }, shortPath = (one) => one) {
    this.#rows = rowsOf(oldText ?? "", newText ?? "");
    const { added, removed } = countChanges(this.#rows);
    this.#toggle = el("button", { type: "button", class: "text-button", onclick: () => this.#switch() });
    const isNew = oldText === null || oldText === undefined;
    const counts = el(
      "span",
      { class: "diff-counts" },
      el("span", { class: "diff-added", "aria-label": `${added} lines added` }, `+${added}`),
      el("span", { class: "diff-removed", "aria-label": `${removed} lines removed` }, `−${removed}`),
    );
    const name = el("span", { class: "diff-path", title: visible(path ?? "") }, visible(shortPath(path ?? "")));
    const bar = el(
      "div",
      { class: "diff-bar" },
      name,
      isNew && el("span", { class: "chip" }, "new file"),
      counts,
      this.#toggle,
    );
    this.element = el("div", { class: "diff" }, bar, this.#body);
    this.#body.setAttribute("aria-label", `Changes to ${visible(path ?? "")}`);
    this.#draw();
  }

  #switch() {
    localStorage.setItem(KEY, isSplit() ? "unified" : "split");
    this.#draw();
  }

  #draw() {
    const split = isSplit();
    this.#toggle.textContent = split ? "Unified" : "Side by side";
    this.#body.classList.toggle("diff-split", split);
    const { hunks, skippedAfter } = toHunks(this.#rows);
    const lines = [];
    let left = MOST_ROWS;
    for (const { skipped, rows } of hunks) {
      if (left <= 0) break;
      if (skipped) lines.push(gap(skipped));
      lines.push(...(split ? splitRows(rows.slice(0, left)) : unifiedRows(rows.slice(0, left))));
      left -= rows.length;
    }
    if (left < 0) lines.push(el("div", { class: "diff-gap" }, "The rest of this change is not shown."));
    else if (skippedAfter) lines.push(gap(skippedAfter));
    if (hunks.length === 0) lines.push(el("div", { class: "diff-gap" }, "No changes."));
    fill(this.#body, el("div", { class: "diff-lines" }, lines));
  }
}

function isSplit() {
  return !narrow.matches && localStorage.getItem(KEY) === "split";
}

/**
 * @param {string} oldText
 * @param {string} newText
 * @returns {page.Row[]}
 */
function rowsOf(oldText, newText) {
  if (oldText.length + newText.length <= MOST_CHARS) return diffLines(oldText, newText);
  return splitLines(newText.slice(0, MOST_CHARS)).map((text, n) => ({ kind: "add", old: null, new: n + 1, text }));
}

/** @param {number} count */
function gap(count) {
  return el("div", { class: "diff-gap" }, count === 1 ? "1 unchanged line" : `${count} unchanged lines`);
}

/** @param {page.Row[]} rows */
function unifiedRows(rows) {
  const changes = new Map();
  for (const pair of toPairs(rows)) {
    if (!pair.old || !pair.new || pair.old === pair.new) continue;
    const part = changedPart(pair.old.text, pair.new.text);
    if (part) changes.set(pair.old, [part[0], part[1]]).set(pair.new, [part[0], part[2]]);
  }
  return rows.map((row) => {
    const sign = { add: "+", del: "−", same: " " }[row.kind];
    const numbers = [
      el("span", { class: "diff-number" }, row.old ?? ""),
      el("span", { class: "diff-number" }, row.new ?? ""),
    ];
    return el(
      "div",
      { class: `diff-line diff-${row.kind}` },
      numbers,
      el("span", { class: "diff-sign" }, sign),
      textCell(row, changes.get(row)),
    );
  });
}

/** @param {page.Row[]} rows */
function splitRows(rows) {
  return toPairs(rows).map((pair) => {
    const part = pair.old && pair.new && pair.old !== pair.new ? changedPart(pair.old.text, pair.new.text) : null;
    return el(
      "div",
      { class: "diff-pair" },
      side(pair.old, pair.old?.old, part && [part[0], part[1]]),
      side(pair.new, pair.new?.new, part && [part[0], part[2]]),
    );
  });
}

/**
 * @param {page.Row | null} row
 * @param {number | null | undefined} number
 * @param {number[] | null} part
 */
function side(row, number, part) {
  if (!row) return el("div", { class: "diff-line diff-none" });
  return el(
    "div",
    { class: `diff-line diff-${row.kind}` },
    el("span", { class: "diff-number" }, number ?? ""),
    textCell(row, part),
  );
}

/**
 * @param {page.Row} row
 * @param {number[] | null | undefined} part
 */
function textCell(row, part) {
  const line = row.text.endsWith("\r") ? row.text.slice(0, -1) : row.text;
  if (!part || part[1] <= part[0]) return el("span", { class: "diff-text" }, shown(line) || " ");
  const [start, end] = part;
  return el(
    "span",
    { class: "diff-text" },
    shown(line.slice(0, start)),
    el("mark", {}, shown(line.slice(start, end))),
    shown(line.slice(end)),
  );
}

/**
 * Escape bidi controls and invisible characters, so that code looks as it runs.
 *
 * @param {string} code
 */
function shown(code) {
  return visible(code, { lines: true });
}
