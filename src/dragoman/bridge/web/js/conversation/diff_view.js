/** The diff of a file, unified or side by side. The choice is stored for all diffs. */

import { el, fill, icon } from "../page/dom.js";
import { visible } from "../text/safe.js";
import { compareLong, compareShort } from "./comparing.js";
import { changedPart, rowsOf, toPairs } from "./diff.js";

const KEY = "dragoman.diff";
// Two columns need room, so the style sheet hides the button on small screens.
const narrow = matchMedia("(max-width: 40rem)");
// The rows that are shown at once. Later hunks are folded until the user opens them.
const MOST_ROWS = 1_000;
const MOST_HUNKS = 200;

export class DiffView {
  /** @type {page.Comparison | null} */
  #found = null;
  #body = el("div", { class: "diff-body", tabindex: "0", role: "group" });
  #toggle = el("button", { type: "button", class: "text-button", hidden: true, onclick: () => this.#switch() });
  #unfold = el("button", { type: "button", class: "diff-unfold", onclick: () => this.#open(!this.#isOpen) });
  #counts = el("span", { class: "diff-counts" });
  #canFold;
  #isOpen = false;

  /**
   * With `canFold` a large diff shows only its file and counts until the user opens it.
   *
   * @param {acp.Diff} diff
   * @param {(path: string) => string} shortPath
   * @param {{ canFold?: boolean }} options
   */
  constructor({ path, oldText, newText }, shortPath = (one) => one, { canFold = false } = {}) {
    this.#canFold = canFold;
    const isNew = oldText === null || oldText === undefined;
    const shownPath = visible(shortPath(path ?? ""));
    const name = el("span", { class: "diff-path", title: visible(path ?? "") }, shownPath);
    this.#unfold.append(icon("chevron"));
    this.#unfold.setAttribute("aria-label", `Changes to ${shownPath}`);
    this.#unfold.hidden = true;
    const chip = isNew && el("span", { class: "chip" }, "new file");
    const bar = el("div", { class: "diff-bar" }, this.#unfold, name, chip, this.#counts, this.#toggle);
    this.element = el("div", { class: "diff" }, bar, this.#body);
    this.#body.setAttribute("aria-label", `Changes to ${visible(path ?? "")}`);
    const found = compareShort(oldText ?? "", newText ?? "");
    if (found) this.#show(found);
    else this.#compare(oldText ?? "", newText ?? "");
  }

  /**
   * @param {string} oldText
   * @param {string} newText
   */
  async #compare(oldText, newText) {
    fill(this.#body, note("Comparing…"));
    try {
      this.#show(await compareLong(oldText, newText));
    } catch (error) {
      console.warn("a change was not compared:", error);
      fill(this.#body, note("The change could not be compared. Open it again to retry."));
    }
  }

  /** @param {page.Comparison} found */
  #show(found) {
    this.#found = found;
    fill(this.#counts, countsOf(found));
    const rows = found.hunks.reduce((sum, { kinds }) => sum + kinds.length, 0);
    const isFolded = this.#canFold && rows > MOST_ROWS;
    this.#unfold.hidden = !isFolded;
    this.#open(!isFolded);
  }

  /** @param {boolean} isOpen */
  #open(isOpen) {
    this.#isOpen = isOpen;
    this.#body.hidden = !isOpen;
    this.#toggle.hidden = !isOpen;
    this.#unfold.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.#draw();
    else this.#body.replaceChildren();
  }

  #switch() {
    localStorage.setItem(KEY, isSplit() ? "unified" : "split");
    this.#draw();
  }

  #draw() {
    if (!this.#found) return;
    const split = isSplit();
    this.#toggle.textContent = split ? "Unified" : "Side by side";
    this.#body.classList.toggle("diff-split", split);
    const { hunks, skippedAfter } = this.#found;
    const lines = el("div", { class: "diff-lines" });
    let left = MOST_ROWS;
    const add = (/** @type {number} */ start) => {
      const end = Math.min(start + MOST_HUNKS, hunks.length);
      for (const hunk of hunks.slice(start, end)) {
        if (hunk.skipped) lines.append(gap(hunk.skipped));
        left -= hunk.kinds.length;
        lines.append(...(left >= 0 ? drawn(hunk, split) : [folded(hunk, split)]));
      }
      if (end < hunks.length) lines.append(more(hunks.length - end, () => add(end)));
      else if (skippedAfter) lines.append(gap(skippedAfter));
    };
    add(0);
    if (hunks.length === 0) fill(lines, note("No changes."));
    fill(this.#body, lines);
  }
}

/**
 * The numbers of added and removed lines.
 *
 * @param {{ added: number, removed: number }} changes
 */
export function countsOf({ added, removed }) {
  return [
    el("span", { class: "diff-added", "aria-label": `${added} lines added` }, `+${added}`),
    el("span", { class: "diff-removed", "aria-label": `${removed} lines removed` }, `−${removed}`),
  ];
}

/**
 * @param {page.Hunk} hunk
 * @param {boolean} split
 */
function drawn(hunk, split) {
  const rows = rowsOf(hunk);
  return split ? splitRows(rows) : unifiedRows(rows);
}

/**
 * A hunk whose lines are made when the user opens it.
 *
 * @param {page.Hunk} hunk
 * @param {boolean} split
 */
function folded(hunk, split) {
  const size = hunk.kinds.length - hunk.removed;
  const place = size > 1 ? `Lines ${hunk.newStart + 1} to ${hunk.newStart + size}` : `Line ${hunk.newStart + 1}`;
  const summary = el("summary", {}, place, el("span", { class: "diff-counts" }, countsOf(hunk)));
  const details = el("details", { class: "diff-fold" }, summary);
  details.addEventListener("toggle", () => details.append(...drawn(hunk, split)), { once: true });
  return details;
}

/**
 * @param {number} count
 * @param {() => void} add
 */
function more(count, add) {
  const show = () => {
    button.remove();
    add();
  };
  const button = el("button", { type: "button", class: "diff-more", onclick: show }, `${count} more changes`);
  return button;
}

/** @param {string} text */
function note(text) {
  return el("div", { class: "diff-gap" }, text);
}

function isSplit() {
  return !narrow.matches && localStorage.getItem(KEY) === "split";
}

/** @param {number} count */
function gap(count) {
  return note(count === 1 ? "1 unchanged line" : `${count} unchanged lines`);
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
