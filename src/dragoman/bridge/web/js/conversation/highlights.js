/** Places of a text in elements, and their marks. A browser without marks shows only the outline of the item. */

const SKIPPED = ".visually-hidden, .message-foot, .code-bar, .tool-name, .tool-note, .output-cut, button.copy-button";
// Marks are for the eye, so a very long item may have some without.
const MOST_RANGES = 2_000;

/**
 * The places of a text in an element, as ranges. White space in the query matches any white space.
 *
 * @param {Element} element
 * @param {string} query
 */
export function findRanges(element, query) {
  /** @type {Array<{ node: Text, start: number }>} */
  const pieces = [];
  let text = "";
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement?.closest(SKIPPED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
  );
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    pieces.push({ node, start: text.length });
    text += node.data;
  }
  const pattern = new RegExp(query.split(/\s+/).map(escape).join("\\s+"), "giu");
  /** @type {Range[]} */
  const ranges = [];
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (ranges.length >= MOST_RANGES) break;
    const range = document.createRange();
    while (at + 1 < pieces.length && pieces[at + 1].start <= found.index) at += 1;
    let last = at;
    const end = found.index + found[0].length;
    while (last + 1 < pieces.length && pieces[last + 1].start < end) last += 1;
    range.setStart(pieces[at].node, found.index - pieces[at].start);
    range.setEnd(pieces[last].node, end - pieces[last].start);
    ranges.push(range);
  }
  return ranges;
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/**
 * Mark some places, and one of them as the current one.
 *
 * @param {Range[]} all
 * @param {Range | null} current
 */
export function highlight(all, current) {
  if (!globalThis.CSS?.highlights) return;
  CSS.highlights.set("found", new Highlight(...all));
  CSS.highlights.set("found-here", new Highlight(...(current ? [current] : [])));
}
