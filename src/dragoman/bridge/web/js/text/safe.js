/**
 * Untrusted text made safe to show, in the two forms of `dragoman/text/safe.py`. Tests compare the tables.
 *
 * - Text for reading (`cleanText`): descriptions, notices, errors, output. Escape sequences and hidden characters are
 *   removed, line ends and tabs stay.
 * - One line (`visible`, `oneLine`): names, titles, commands, paths. Characters that cannot be seen are written out:
 *   `\u202e` for a character that turns the ones around it, `\x1b` for one that a terminal obeys, `\n` for a line end.
 */

// DEL and C1, soft hyphen, marks, overrides and isolates, zero-width characters, half letters, tags and the like.
const FORMAT =
  "\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff\\ufdd0-\\ufdef\\ufeff" +
  "\\ufff9-\\ufffb\\ufffe\\uffff\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e007f}";
// Spaces other than the plain one, and fillers: they look like a space, or like nothing.
const BLANK =
  "\\u00a0\\u034f\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180d\\u180f\\u2000-\\u200a\\u202f\\u205f\\u3000\\u3164\\uffa0" +
  "\\u{13430}-\\u{1343f}";
// Joiners and variation selectors belong to neighboring characters, as in Persian words and emoji, but never to ASCII.
const JOINERS = "\\u200c\\u200d";
const VARIATIONS = "\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";

const HIDDEN = `\\x00-\\x1f${FORMAT}${BLANK}`;
// These classes contain joined characters on purpose, as escapes.
/* eslint-disable no-misleading-character-class */
const LETTER = `[^\\x00-\\x7f${HIDDEN}${JOINERS}${VARIATIONS}]`;
const UNSEEN = new RegExp(
  `[${HIDDEN}]` +
    `|(?<!${LETTER})[${VARIATIONS}]` +
    `|(?<![^\\x00-\\x7f${HIDDEN}${JOINERS}])[${JOINERS}]` +
    `|[${JOINERS}](?!${LETTER})`,
  "gu",
);
const DROPPED = new RegExp(`[\\x00-\\x08\\x0b-\\x1f${FORMAT}]`, "gu");
const SEQUENCE = new RegExp(
  "\\x1b\\[[0-?]*[ -/]*[@-~]" + // CSI: colours, cursor
    "|\\x9b[0-?]*[ -/]*[@-~]" +
    "|(?:\\x1b[\\]PX^_]|[\\x9d\\x90\\x98\\x9e\\x9f])[^\\x07\\x1b\\x9c\\n]*" + // OSC, DCS and the like,
    "(?:\\x07|\\x1b\\\\|\\x9c|(?=\\x1b[^\\\\])|(?=\\n))" + // which the end of a line ends too
    "|\\x1b[ -/]+[0-~]" +
    "|\\x1b[0-OQ-WYZ\\\\`-~]",
  "g",
);
// The start of an unfinished sequence.
const INTRODUCER = /\x1b[[\]PX^_]?|[\x9b\x9d\x90\x98\x9e\x9f]/g;
const SPACE = /[\t-\r \x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/gu;
/** @type {Record<string, string>} */
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * A text with only visible characters, tabs and line ends.
 *
 * @param {unknown} text
 * @returns {string}
 */
export function cleanText(text) {
  return dropHidden(String(text).replace(SEQUENCE, "").replace(INTRODUCER, "").replaceAll("\r\n", "\n"));
}

/**
 * A text without hidden characters, after its escape sequences were parsed.
 *
 * @param {string} text
 * @returns {string}
 */
export function dropHidden(text) {
  return text.replace(/[\u2028\u2029]/g, "\n").replace(DROPPED, "");
}

/**
 * A text with hidden characters escaped. With `lines`, line ends and tabs stay.
 *
 * @param {unknown} text
 * @param {{ lines?: boolean }} options
 * @returns {string}
 */
export function visible(text, { lines = false } = {}) {
  return String(text).replace(UNSEEN, (found) => (lines && (found === "\n" || found === "\t") ? found : escape(found)));
}

/**
 * The same with collapsed white space, for titles and names.
 *
 * @param {unknown} text
 * @returns {string}
 */
export function oneLine(text) {
  return visible(String(text).replace(SPACE, " ").replace(/^ | $/g, ""));
}

/** @param {string} found */
function escape(found) {
  const code = found.codePointAt(0) ?? 0;
  if (SHORT[found]) return SHORT[found];
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

/**
 * @param {number} code
 * @param {number} digits
 */
function hex(code, digits) {
  return code.toString(16).padStart(digits, "0");
}
