/**
 * Converts terminal output to pieces of text with class names, without the DOM. Sequences other than colours are left
 * out, and so are bidi controls and invisible characters.
 *
 * `parseAnsi(text, style)` returns {pieces: [{text, classes}], style}. Pass `style` to the next call.
 */

import { dropHidden } from "../text/safe.js";

// A control sequence, an operating system command (a title, a link), any other escape, and stray controls.
const SEQUENCE =
  /\x1b\[([0-?]*)([ -/]*)([@-~])|\x1b\[[0-?]*[ -/]*$|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-Z\\^-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * @typedef {{ fg: number | null, bg: number | null, flags: string }} Style colours by their number, flags by name
 * @typedef {{ text: string, classes: string }} Piece
 */

/** @type {Readonly<Style>} */
export const PLAIN = Object.freeze({ fg: null, bg: null, flags: "" });

/** @type {Record<number, string>} */
const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
/** @type {Record<number, string[]>} */
const FLAGS_OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

/**
 * @param {string} text
 * @param {Style} style
 * @returns {{ pieces: Piece[], style: Style }}
 */
export function parseAnsi(text, style = PLAIN) {
  /** @type {Piece[]} */
  const pieces = [];
  let done = 0;
  const push = (/** @type {number} */ end) => {
    const shown = dropHidden(text.slice(done, end));
    if (shown) addPiece(pieces, shown, classesOf(style));
  };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    done = match.index + match[0].length;
    if (match[3] === "m" && /^[0-9;:]*$/.test(match[1])) style = applyCodes(style, match[1]);
  }
  push(text.length);
  return { pieces, style };
}

/**
 * The visible part of a line with carriage returns: the text after the last one.
 *
 * @param {string} line
 */
export function collapseReturns(line) {
  const bare = line.endsWith("\r") ? line.slice(0, -1) : line;
  const at = bare.lastIndexOf("\r");
  return at < 0 ? bare : bare.slice(at + 1);
}

/**
 * @param {Piece[]} pieces
 * @param {string} text
 * @param {string} classes
 */
function addPiece(pieces, text, classes) {
  const last = pieces.at(-1);
  if (last && last.classes === classes) last.text += text;
  else pieces.push({ text, classes });
}

/** @param {Style} style */
function classesOf({ fg, bg, flags }) {
  const names = flags
    .split(" ")
    .filter(Boolean)
    .map((flag) => `ansi-${flag}`);
  if (fg !== null) names.push(`ansi-fg-${fg}`);
  if (bg !== null) names.push(`ansi-bg-${bg}`);
  return names.join(" ");
}

/**
 * @param {Style} style
 * @param {string} written
 * @returns {Style}
 */
function applyCodes(style, written) {
  const codes = written === "" ? [0] : written.split(/[;:]/).map(Number);
  let next = style;
  for (let n = 0; n < codes.length; n += 1) {
    const code = codes[n];
    if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(n + 1));
      next = { ...next, [code === 38 ? "fg" : "bg"]: colour };
      n += used;
    } else next = applyCode(next, code);
  }
  return next;
}

/**
 * @param {Style} style
 * @param {number} code
 * @returns {Style}
 */
function applyCode(style, code) {
  if (code === 0) return PLAIN;
  if (FLAGS[code]) return withFlags(style, [...flagsOf(style), FLAGS[code]]);
  if (FLAGS_OFF[code])
    return withFlags(
      style,
      flagsOf(style).filter((flag) => !FLAGS_OFF[code].includes(flag)),
    );
  if (code >= 30 && code <= 37) return { ...style, fg: code - 30 };
  if (code >= 90 && code <= 97) return { ...style, fg: code - 90 + 8 };
  if (code === 39) return { ...style, fg: null };
  if (code >= 40 && code <= 47) return { ...style, bg: code - 40 };
  if (code >= 100 && code <= 107) return { ...style, bg: code - 100 + 8 };
  if (code === 49) return { ...style, bg: null };
  return style;
}

/** @param {Style} style */
function flagsOf(style) {
  return style.flags.split(" ").filter(Boolean);
}

/**
 * @param {Style} style
 * @param {string[]} flags
 * @returns {Style}
 */
function withFlags(style, flags) {
  return { ...style, flags: [...new Set(flags)].sort().join(" ") };
}

/**
 * The colour after 38 or 48, as one of the page's sixteen colours, and the number of codes it used.
 *
 * @param {number[]} codes
 * @returns {[number | null, number]}
 */
function extended(codes) {
  if (codes[0] === 5) return [toSixteen(...indexed(codes[1] ?? 0)), 2];
  if (codes[0] === 2) return [toSixteen(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0), 4];
  return [null, 1];
}

/**
 * @param {number} n
 * @returns {[number, number, number]}
 */
function indexed(n) {
  if (n < 16) return SIXTEEN[Math.max(0, n)] ?? SIXTEEN[0];
  if (n >= 232) return [grey(n), grey(n), grey(n)];
  const level = (/** @type {number} */ step) => (step === 0 ? 0 : 55 + step * 40);
  const place = n - 16;
  return [level(Math.floor(place / 36)), level(Math.floor(place / 6) % 6), level(place % 6)];
}

/** @param {number} n one of the 24 greys after the colours */
function grey(n) {
  return 8 + (n - 232) * 10;
}

/** @type {Array<[number, number, number]>} */
const SIXTEEN = [
  [0, 0, 0],
  [187, 0, 0],
  [0, 187, 0],
  [187, 187, 0],
  [0, 0, 187],
  [187, 0, 187],
  [0, 187, 187],
  [187, 187, 187],
  [85, 85, 85],
  [255, 85, 85],
  [85, 255, 85],
  [255, 255, 85],
  [85, 85, 255],
  [255, 85, 255],
  [85, 255, 255],
  [255, 255, 255],
];

/**
 * @param {number} r
 * @param {number} g
 * @param {number} b
 */
function toSixteen(r, g, b) {
  let best = 0;
  let least = Infinity;
  SIXTEEN.forEach(([r2, g2, b2], n) => {
    const distance = (r - r2) ** 2 + (g - g2) ** 2 + (b - b2) ** 2;
    if (distance < least) [best, least] = [n, distance];
  });
  return best;
}
