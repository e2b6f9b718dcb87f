/**
 * The line diff of two texts. This module does not use the DOM.
 *
 * `diffLines` returns rows {kind: "same" | "del" | "add", old, new, text}. `old` and `new` are line numbers from 1.
 * `toHunks` omits lines far from a change, and `toPairs` puts old and new side by side.
 */

// Two texts with more changes have little in common, and the search is quadratic in the number of changes.
const MOST_EDITS = 1_500;

/**
 * @param {string} oldText
 * @param {string} newText
 * @returns {page.Row[]}
 */
export function diffLines(oldText, newText) {
  const before = splitLines(oldText);
  const after = splitLines(newText);
  const head = commonHead(before, after);
  const tail = commonTail(before, after, head);
  const oldMiddle = before.slice(head, before.length - tail);
  const newMiddle = after.slice(head, after.length - tail);
  const steps = [...same(head), ...editScript(oldMiddle, newMiddle), ...same(tail)];
  return numbered(steps, before, after);
}

/** @param {string} text */
export function splitLines(text) {
  if (!text) return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * @param {string[]} before
 * @param {string[]} after
 */
function commonHead(before, after) {
  const most = Math.min(before.length, after.length);
  let n = 0;
  while (n < most && before[n] === after[n]) n += 1;
  return n;
}

/**
 * @param {string[]} before
 * @param {string[]} after
 * @param {number} head
 */
function commonTail(before, after, head) {
  const most = Math.min(before.length, after.length) - head;
  let n = 0;
  while (n < most && before[before.length - 1 - n] === after[after.length - 1 - n]) n += 1;
  return n;
}

/**
 * @param {number} count
 * @returns {Array<page.Row["kind"]>}
 */
function same(count) {
  return Array(count).fill("same");
}

/**
 * Myers' greedy search (“An O(ND) difference algorithm”, 1986).
 *
 * x counts old lines and y new ones; a diagonal k has x - y = k. A deletion goes one diagonal up, an addition one down,
 * and equal lines cost nothing. For each number of edits, `reach` has the largest x on every diagonal. When the end is
 * reached, `wayBack` follows the kept reaches to the start.
 *
 * @param {string[]} before
 * @param {string[]} after
 * @returns {Array<page.Row["kind"]>}
 */
function editScript(before, after) {
  const everything = () => [...Array(before.length).fill("del"), ...Array(after.length).fill("add")];
  if (before.length === 0 || after.length === 0) return everything();
  const most = Math.min(before.length + after.length, MOST_EDITS);
  const trace = [];
  let reach = new Map([[1, 0]]);
  for (let edits = 0; edits <= most; edits += 1) {
    const next = new Map(reach);
    for (let k = -edits; k <= edits; k += 2) {
      let x = goesDown(reach, k, edits) ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x += 1;
      next.set(k, x);
      if (x >= before.length && x - k >= after.length)
        return wayBack(trace.concat([reach]), before.length, after.length);
    }
    trace.push(reach);
    reach = next;
  }
  return everything();
}

/**
 * @param {Map<number, number>} reach
 * @param {number} k
 * @param {number} edits
 */
function goesDown(reach, k, edits) {
  return k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
}

/**
 * @param {Array<Map<number, number>>} trace
 * @param {number} oldLength
 * @param {number} newLength
 * @returns {Array<page.Row["kind"]>}
 */
function wayBack(trace, oldLength, newLength) {
  /** @type {Array<page.Row["kind"]>} */
  const steps = [];
  let x = oldLength;
  let y = newLength;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const k = x - y;
    const down = goesDown(trace[edits], k, edits);
    const fromK = down ? k + 1 : k - 1;
    const fromX = trace[edits].get(fromK) ?? 0;
    const fromY = fromX - fromK;
    while (x > Math.max(fromX, 0) && y > Math.max(fromY, 0)) {
      steps.push("same");
      x -= 1;
      y -= 1;
    }
    if (edits > 0) steps.push(down ? "add" : "del");
    x = fromX;
    y = fromY;
  }
  return steps.reverse();
}

/**
 * @param {Array<page.Row["kind"]>} steps
 * @param {string[]} before
 * @param {string[]} after
 * @returns {page.Row[]}
 */
function numbered(steps, before, after) {
  let oldLine = 0;
  let newLine = 0;
  return steps.map((kind) => {
    if (kind !== "add") oldLine += 1;
    if (kind !== "del") newLine += 1;
    return {
      kind,
      old: kind === "add" ? null : oldLine,
      new: kind === "del" ? null : newLine,
      text: kind === "add" ? after[newLine - 1] : before[oldLine - 1],
    };
  });
}

/** @param {page.Row[]} rows */
export function countChanges(rows) {
  const count = (/** @type {page.Row["kind"]} */ kind) => rows.filter((row) => row.kind === kind).length;
  return { added: count("add"), removed: count("del") };
}

/**
 * Runs of rows with `context` same lines around the changes; each is {skipped, rows}, `skipped` lines before it.
 *
 * @param {page.Row[]} rows
 * @param {number} context
 */
export function toHunks(rows, context = 3) {
  const keep = new Uint8Array(rows.length);
  rows.forEach((row, n) => {
    if (row.kind !== "same") keep.fill(1, Math.max(0, n - context), n + context + 1);
  });
  /** @type {Array<{ skipped: number, rows: page.Row[] }>} */
  const hunks = [];
  let skipped = 0;
  rows.forEach((row, n) => {
    if (!keep[n]) skipped += 1;
    else if (n > 0 && keep[n - 1]) hunks.at(-1)?.rows.push(row);
    else {
      hunks.push({ skipped, rows: [row] });
      skipped = 0;
    }
  });
  return { hunks, skippedAfter: skipped };
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
