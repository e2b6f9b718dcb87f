/**
 * The line diff of two texts. A worker runs this module as well, so it does not use the DOM.
 *
 * `compareTexts` returns the changes as hunks: runs of lines with a few unchanged lines around them. A hunk is compact,
 * because a worker copies it to the page: `kinds` has a letter per line (s same, d deleted, a added), and `text` has the
 * lines joined by newlines. `rowsOf` makes the rows of one hunk: {kind: "same" | "del" | "add", old, new, text}, where
 * `old` and `new` are line numbers from 1. `toPairs` puts rows side by side.
 */

// Lines of one text that the other one does not have are never compared. Among the others, a part with more edits than
// twice this number is split where the search got furthest, so that the time grows with the length and not with its
// square. The result is then still right, but may name more lines than necessary.
const MOST_STEPS = 2_048;
const CONTEXT = 3;
// A longer run of lines becomes several hunks, so that the page can fold it.
const MOST_ROWS = 1_000;
/** @type {Record<string, page.Row["kind"]>} */
const KINDS = { s: "same", d: "del", a: "add" };

/**
 * @param {string} oldText
 * @param {string} newText
 * @returns {page.Comparison}
 */
export function compareTexts(oldText, newText, context = CONTEXT) {
  const before = splitLines(oldText);
  const after = splitLines(newText);
  const kinds = allKinds(changedLines(before, after), before.length, after.length);
  const isShown = new Uint8Array(kinds.length);
  kinds.forEach((kind, n) => {
    if (kind !== "s") isShown.fill(1, Math.max(0, n - context), n + context + 1);
  });
  /** @type {page.Hunk[]} */
  const hunks = [];
  const lines = [];
  let [x, y, skipped] = [0, 0, 0];
  for (let n = 0; n < kinds.length; n += 1) {
    const kind = kinds[n];
    if (!isShown[n]) skipped += 1;
    else {
      let hunk = hunks.at(-1);
      if (!hunk || !isShown[n - 1] || hunk.kinds.length === MOST_ROWS) {
        hunk = { skipped, oldStart: x, newStart: y, added: 0, removed: 0, kinds: "", text: "" };
        hunks.push(hunk);
        skipped = 0;
      }
      hunk.kinds += kind;
      hunk.added += Number(kind === "a");
      hunk.removed += Number(kind === "d");
      lines.push(kind === "a" ? after[y] : before[x]);
      if (!isShown[n + 1] || hunk.kinds.length === MOST_ROWS) hunk.text = lines.splice(0).join("\n");
    }
    if (kind !== "a") x += 1;
    if (kind !== "d") y += 1;
  }
  const total = (/** @type {"added" | "removed"} */ side) => hunks.reduce((sum, hunk) => sum + hunk[side], 0);
  return { added: total("added"), removed: total("removed"), hunks, skippedAfter: skipped };
}

/**
 * The letters of all lines, in the order in which they are shown.
 *
 * @param {{ removed: Uint8Array, added: Uint8Array }} marks
 * @param {number} oldLength
 * @param {number} newLength
 */
function allKinds({ removed, added }, oldLength, newLength) {
  const kinds = [];
  let [x, y] = [0, 0];
  while (x < oldLength || y < newLength) {
    const kind = removed[x] ? "d" : added[y] ? "a" : "s";
    kinds.push(kind);
    if (kind !== "a") x += 1;
    if (kind !== "d") y += 1;
  }
  return kinds;
}

/**
 * The rows of a hunk.
 *
 * @param {page.Hunk} hunk
 * @returns {page.Row[]}
 */
export function rowsOf({ oldStart, newStart, kinds, text }) {
  const lines = text.split("\n");
  let [oldLine, newLine] = [oldStart, newStart];
  return Array.from(kinds, (letter, n) => {
    const kind = KINDS[letter];
    if (kind !== "add") oldLine += 1;
    if (kind !== "del") newLine += 1;
    return { kind, old: kind === "add" ? null : oldLine, new: kind === "del" ? null : newLine, text: lines[n] };
  });
}

/** @param {string} text */
function splitLines(text) {
  if (!text) return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * Marks of the lines that were removed from one text and added in the other.
 *
 * @param {string[]} before
 * @param {string[]} after
 */
function changedLines(before, after) {
  const removed = new Uint8Array(before.length);
  const added = new Uint8Array(after.length);
  /** @type {Map<string, number>} */
  const numbers = new Map();
  for (const line of before) if (!numbers.has(line)) numbers.set(line, numbers.size);
  const isInAfter = new Uint8Array(numbers.size);
  for (const line of after) {
    const number = numbers.get(line);
    if (number !== undefined) isInAfter[number] = 1;
  }
  // The lines that both texts have, as numbers, and where they are.
  const old = common(before, removed, (line) => {
    const number = /** @type {number} */ (numbers.get(line));
    return isInAfter[number] ? number : undefined;
  });
  const fresh = common(after, added, (line) => numbers.get(line));
  search(old.numbers, fresh.numbers, (n) => (removed[old.places[n]] = 1), (n) => (added[fresh.places[n]] = 1));
  return { removed, added };
}

/**
 * The numbers and places of the lines that have a number. The others are marked as changed.
 *
 * @param {string[]} lines
 * @param {Uint8Array} marks
 * @param {(line: string) => number | undefined} numberOf
 */
function common(lines, marks, numberOf) {
  const numbers = [];
  const places = [];
  for (let n = 0; n < lines.length; n += 1) {
    const number = numberOf(lines[n]);
    if (number === undefined) marks[n] = 1;
    else {
      numbers.push(number);
      places.push(n);
    }
  }
  return { numbers: Int32Array.from(numbers), places: Int32Array.from(places) };
}

/**
 * Myers' search in linear space ("An O(ND) difference algorithm", 1986): find the middle of a shortest path from both
 * ends, then do the same before and after it.
 *
 * @param {Int32Array} a
 * @param {Int32Array} b
 * @param {(n: number) => void} remove
 * @param {(n: number) => void} add
 */
function search(a, b, remove, add) {
  // x - y is the diagonal of a point. There is one more on each side, so that the border needs no condition.
  const offset = b.length + 1;
  const forward = new Int32Array(a.length + b.length + 3);
  const backward = new Int32Array(a.length + b.length + 3);
  const parts = [[0, a.length, 0, b.length]];
  for (let part = parts.pop(); part; part = parts.pop()) {
    let [x, xEnd, y, yEnd] = part;
    while (x < xEnd && y < yEnd && a[x] === b[y]) [x, y] = [x + 1, y + 1];
    while (x < xEnd && y < yEnd && a[xEnd - 1] === b[yEnd - 1]) [xEnd, yEnd] = [xEnd - 1, yEnd - 1];
    if (x === xEnd) for (; y < yEnd; y += 1) add(y);
    else if (y === yEnd) for (; x < xEnd; x += 1) remove(x);
    else {
      const [middleX, middleY] = middle(a, x, xEnd, b, y, yEnd, forward, backward, offset);
      parts.push([x, middleX, y, middleY], [middleX, xEnd, middleY, yEnd]);
    }
  }
}

/**
 * A point on a shortest path, or on a good one if the shortest takes too many steps.
 *
 * @param {Int32Array} a
 * @param {number} x
 * @param {number} xEnd
 * @param {Int32Array} b
 * @param {number} y
 * @param {number} yEnd
 * @param {Int32Array} forward
 * @param {Int32Array} backward
 * @param {number} offset
 */
function middle(a, x, xEnd, b, y, yEnd, forward, backward, offset) {
  const [lowest, highest] = [x - yEnd, xEnd - y];
  const [start, end] = [x - y, xEnd - yEnd];
  const isOdd = ((start - end) & 1) !== 0;
  let [fLow, fHigh, bLow, bHigh] = [start, start, end, end];
  forward[offset + start] = x;
  backward[offset + end] = xEnd;
  for (let steps = 1; ; steps += 1) {
    if (fLow > lowest) forward[offset + --fLow - 1] = -1;
    else fLow += 1;
    if (fHigh < highest) forward[offset + ++fHigh + 1] = -1;
    else fHigh -= 1;
    for (let d = fHigh; d >= fLow; d -= 2) {
      const [below, above] = [forward[offset + d - 1], forward[offset + d + 1]];
      let at = below >= above ? below + 1 : above;
      while (at < xEnd && at - d < yEnd && a[at] === b[at - d]) at += 1;
      forward[offset + d] = at;
      if (isOdd && d >= bLow && d <= bHigh && backward[offset + d] <= at) return [at, at - d];
    }
    if (bLow > lowest) backward[offset + --bLow - 1] = xEnd + 1;
    else bLow += 1;
    if (bHigh < highest) backward[offset + ++bHigh + 1] = xEnd + 1;
    else bHigh -= 1;
    for (let d = bHigh; d >= bLow; d -= 2) {
      const [below, above] = [backward[offset + d - 1], backward[offset + d + 1]];
      let at = below < above ? below : above - 1;
      while (at > x && at - d > y && a[at - 1] === b[at - d - 1]) at -= 1;
      backward[offset + d] = at;
      if (!isOdd && d >= fLow && d <= fHigh && at <= forward[offset + d]) return [at, at - d];
    }
    if (steps >= MOST_STEPS) return furthest(forward, fLow, fHigh, xEnd, yEnd, offset);
  }
}

/**
 * @param {Int32Array} forward
 * @param {number} low
 * @param {number} high
 * @param {number} xEnd
 * @param {number} yEnd
 * @param {number} offset
 */
function furthest(forward, low, high, xEnd, yEnd, offset) {
  let best = [0, 0];
  for (let d = high; d >= low; d -= 2) {
    const x = Math.min(forward[offset + d], xEnd, yEnd + d);
    if (x + x - d > best[0] + best[1]) best = [x, x - d];
  }
  return best;
}

/**
 * Rows side by side: {old: row | null, new: row | null}.
 *
 * @param {page.Row[]} rows
 */
export function toPairs(rows) {
  const pairs = [];
  /** @type {page.Row[]} */
  let dels = [];
  /** @type {page.Row[]} */
  let adds = [];
  const flush = () => {
    for (let n = 0; n < Math.max(dels.length, adds.length); n += 1)
      pairs.push({ old: dels[n] ?? null, new: adds[n] ?? null });
    dels = [];
    adds = [];
  };
  for (const row of rows) {
    if (row.kind === "del") {
      if (adds.length) flush();
      dels.push(row);
    } else if (row.kind === "add") adds.push(row);
    else {
      flush();
      pairs.push({ old: row, new: row });
    }
  }
  flush();
  return pairs;
}

/**
 * The range in which two lines differ, as [start, oldEnd, newEnd], or null if they have little in common.
 *
 * @param {string} oldLine
 * @param {string} newLine
 */
export function changedPart(oldLine, newLine) {
  const most = Math.min(oldLine.length, newLine.length);
  let start = 0;
  while (start < most && oldLine[start] === newLine[start]) start += 1;
  let end = 0;
  while (end < most - start && oldLine[oldLine.length - 1 - end] === newLine[newLine.length - 1 - end]) end += 1;
  const kept = oldLine.slice(0, start).trim().length + end;
  if (kept * 3 < Math.max(oldLine.length, newLine.length)) return null;
  return [start, oldLine.length - end, newLine.length - end];
}
