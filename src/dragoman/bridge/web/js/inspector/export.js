/** The exports: the messages as NDJSON, the sequence as one SVG file. */

import { el } from "../page/dom.js";
import { ROW, drawBar, drawLifelines, drawMessage, lanes, shape } from "./sequence.js";

const WIDTH = 900;
const HEAD_HEIGHT = 40;
// SVG viewers fail on larger drawings. The NDJSON has all messages.
const MOST_DRAWN = 2_000;

/**
 * One line per message: {time, direction, kind, sessionId, latencyMs, message}. Has `text` instead if it is not JSON.
 *
 * @param {page.WireEntry[]} entries
 */
export function toNdjson(entries) {
  return entries.map((entry) => `${JSON.stringify(record(entry))}\n`).join("");
}

/** @param {page.WireEntry} entry */
function record({ time, direction, kind, sessionId, latencyMs, size, cut, line }) {
  const facts = { time: new Date(time).toISOString(), direction, kind, sessionId, latencyMs, size, cut };
  try {
    return { ...facts, message: JSON.parse(line) };
  } catch {
    return { ...facts, text: line };
  }
}

/**
 * The text of an SVG file in the page's current colours, with the latest messages if there are too many.
 *
 * @param {page.WireEntry[]} entries
 * @param {string[]} names
 */
export function toSvg(entries, names) {
  const drawn = entries.slice(-MOST_DRAWN);
  const places = lanes(WIDTH);
  const height = drawn.length * ROW + HEAD_HEIGHT;
  const index = new Map(drawn.map((entry, at) => [entry.n, at]));
  const bars = drawn.flatMap((entry, at) => {
    const answeredAt = entry.kind === "request" && entry.partner ? index.get(entry.partner.n) : undefined;
    return answeredAt === undefined ? [] : [drawBar(entry, at, answeredAt, places)];
  });
  const svg = shape(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}` },
    shape("style", {}, style()),
    shape("rect", { class: "seq-paper", width: WIDTH, height }),
    shape("text", { class: "seq-name", x: places.left, y: 24, "text-anchor": "middle" }, names[0]),
    shape("text", { class: "seq-name", x: places.right, y: 24, "text-anchor": "middle" }, names[1]),
    shape(
      "g",
      { transform: `translate(0 ${HEAD_HEIGHT})` },
      ...drawLifelines(drawn.length * ROW, places),
      ...bars,
      ...drawn.map((entry, at) => drawMessage(entry, at * ROW, places)),
    ),
  );
  return new XMLSerializer().serializeToString(svg);
}

/**
 * Download a text as a file.
 *
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The download has started by then. Without this, the text would stay in memory.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function style() {
  // The page's colours are light-dark pairs, so resolve them with an element.
  const shown = el("span");
  document.body.append(shown);
  const of = (/** @type {string} */ name) => {
    shown.style.color = `var(${name})`;
    return getComputedStyle(shown).color;
  };
  const rules = `
    text { font: 11px ui-monospace, monospace; fill: ${of("--text")}; }
    .seq-name { font: 600 13px system-ui, sans-serif; }
    .seq-paper { fill: ${of("--bg")}; } .seq-hit { fill: none; } .seq-time { fill: ${of("--text-faint")}; }
    .seq-life { stroke: ${of("--line")}; } .seq-bar { fill: ${of("--accent-soft")}; stroke: ${of("--accent")}; }
    .seq-line, .seq-head { stroke: ${of("--accent")}; stroke-width: 1.3; fill: none; }
    .request .seq-head { fill: ${of("--accent")}; } .response .seq-line { stroke-dasharray: 5 3; }
    .notification .seq-line, .notification .seq-head { stroke: ${of("--text-faint")}; }
    .failed .seq-line, .failed .seq-head { stroke: ${of("--bad")}; } .failed .seq-label { fill: ${of("--bad")}; }`;
  shown.remove();
  return rules;
}
