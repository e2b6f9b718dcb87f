/**
 * The drawing of one message in the diagram: its arrow, its label, and the bar of an unanswered request.
 *
 * Used by the view, which draws only the visible rows, and by the export, which draws everything.
 */

import { clock, duration, label } from "./format.js";

export const ROW = 34;
export const TIME_WIDTH = 104;
const BAR = 7;
const HEAD = 7;
const CHAR_WIDTH = 6.6;

/**
 * The positions of the two lifelines in a drawing of this width.
 *
 * @param {number} width
 */
export function lanes(width) {
  const left = TIME_WIDTH + 30;
  return { left, right: Math.max(left + 180, width - 64) };
}

/**
 * The group for one message; `y` is the top of its row.
 *
 * @param {page.WireEntry} entry
 * @param {number} y
 * @param {{ left: number, right: number }} places
 */
export function drawMessage(entry, y, { left, right }) {
  const toAgent = entry.direction === "to_agent";
  const [from, to] = toAgent ? [left, right] : [right, left];
  const sign = toAgent ? 1 : -1;
  const line = y + ROW - 9;
  const tip = to - sign * BAR;
  const start = from + sign * BAR;
  const middle = (left + right) / 2;
  const most = Math.max(8, Math.floor((right - left - 40) / CHAR_WIDTH));
  return shape(
    "g",
    { class: `seq-message ${entry.kind}${entry.failed ? " failed" : ""}`, "data-n": entry.n },
    shape("rect", { class: "seq-hit", x: 0, y, width: right + 64, height: ROW }),
    shape("text", { class: "seq-time", x: 8, y: line + 1 }, clock(entry.time)),
    shape("text", { class: "seq-label", x: middle, y: line - 7, "text-anchor": "middle" }, shortened(words(entry), most)),
    shape("line", { class: "seq-line", x1: start, y1: line, x2: tip, y2: line }),
    shape("path", { class: "seq-head", d: arrowHead(tip, line, sign, entry.kind) }),
  );
}

/**
 * The bar from a request to its response, for the rows `first` to `last` (which may lie outside the drawing).
 *
 * @param {page.WireEntry} request
 * @param {number} first
 * @param {number} last
 * @param {{ left: number, right: number }} places
 */
export function drawBar(request, first, last, { left, right }) {
  const x = request.direction === "to_agent" ? right : left;
  const top = first * ROW + ROW - 9;
  const height = Math.max(4, (last - first) * ROW);
  return shape("rect", { class: "seq-bar", x: x - BAR / 2 - 1, y: top, width: BAR + 2, height, rx: 2 });
}

/**
 * @param {number} height
 * @param {{ left: number, right: number }} places
 */
export function drawLifelines(height, { left, right }) {
  return [left, right].map((x) => shape("line", { class: "seq-life", x1: x, y1: 0, x2: x, y2: height }));
}

/** @param {page.WireEntry} entry */
function words(entry) {
  const took = duration(entry.latencyMs);
  const name = label(entry);
  if (entry.kind === "response") return `${entry.failed ? "error" : "answer"} · ${name}${took ? ` · ${took}` : ""}`;
  return name;
}

/**
 * @param {string} text
 * @param {number} most
 */
function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} sign
 * @param {string} kind
 */
function arrowHead(x, y, sign, kind) {
  const back = x - sign * HEAD;
  const points = `M${back} ${y - 4}L${x} ${y}L${back} ${y + 4}`;
  return kind === "request" ? `${points}Z` : points;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * An SVG element, built by DOM calls, so that no message is parsed as markup.
 *
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {Array<Node | string>} children
 */
export function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}
