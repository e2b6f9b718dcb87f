/**
 * Markdown of a growing block without half-written marks. This module does not use the DOM.
 *
 * An open emphasis or code span is closed (`**bo` is shown as bold), because its text is visible. Parts that
 * cannot be shown yet are omitted: the start of a link, the mark of a list or a heading without
 * text, the head of a table, the line of a fence. A text with nothing open is returned unchanged.
 */

const PREFIX = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])))*[ \t]*/;
const FENCE = /^(`{3,}|~{3,})/;
// A line with only the start of a mark: a list, a heading, a fence, or the line below a heading or table head.
const ONLY_MARKS = /^(?:[-*+_=]+|\d{1,9}[.)]?|#{1,6}|`+|~+|\|?[\s:|-]*)[ \t]*$/;
const ITEM = /^[ \t]*(?:>[ \t]?)*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]/;
// An open bracket further back than this does not become a link.
const LONGEST_LINK = 2_000;

/**
 * @param {string} text
 * @returns {string}
 */
export function settle(text) {
  const lines = text.split("\n");
  const fence = openFence(lines);
  if (fence !== null) return settleFence(text, lines, fence);
  const last = lines.length - 1;
  if (ONLY_MARKS.test(bare(lines[last])) && lines[last] !== "") return settle(lines.slice(0, last).join("\n"));
  const head = tableHead(lines);
  if (head !== null) return settle(lines.slice(0, head).join("\n"));
  const start = leafStart(lines);
  const leaf = lines.slice(start).join("\n");
  const from = bare(lines[start]).startsWith("|") ? leaf.search(/\|[^|]*$/) : 0;
  const before = text.slice(0, text.length - leaf.length + from);
  return before + settleInline(leaf.slice(from));
}

/**
 * Whether a text ends within a fence.
 *
 * @param {string} text
 */
export function isInFence(text) {
  return openFence(text.split("\n")) !== null;
}

/**
 * Whether `more` can be appended to a rendered text, because it contains no possible marks. A fence stays open then.
 *
 * @param {boolean} inFence whether the text ends within a fence
 * @param {string} more
 */
export function canAppend(inFence, more) {
  return inFence ? !/[`~]/.test(more) : isPlain(more);
}

/**
 * Whether rendering does not change a text: one paragraph of words.
 *
 * @param {string} text
 */
export function isPlainParagraph(text) {
  return isPlain(text.trimEnd()) && /^[\p{L}"'(“„]/u.test(text) && !text.includes("://");
}

/** @param {string} text */
function isPlain(text) {
  return !/[*_~`[\]<>&\\!|#\n]/.test(text);
}

/** @param {string} line */
function bare(line) {
  return line.replace(PREFIX, "");
}

/**
 * The line number of an open fence.
 *
 * @param {string[]} lines
 */
function openFence(lines) {
  let mark = "";
  /** @type {number | null} */
  let opened = null;
  for (const [n, line] of lines.entries()) {
    if (opened !== null) {
      const content = line.replace(/^[ \t>]*/, "").trimEnd();
      if (content.length >= mark.length && content === mark[0].repeat(content.length)) opened = null;
      continue;
    }
    const content = bare(line);
    const found = FENCE.exec(content);
    if (!found || (found[1][0] === "`" && content.slice(found[1].length).includes("`"))) continue;
    mark = found[1];
    opened = n;
  }
  return opened;
}

/**
 * @param {string} text
 * @param {string[]} lines
 * @param {number} opened
 */
function settleFence(text, lines, opened) {
  const last = lines.length - 1;
  // The language is not complete before the end of its line.
  if (opened === last) return settle(lines.slice(0, last).join("\n"));
  const mark = FENCE.exec(bare(lines[opened]))?.[1][0] ?? "`";
  const mayClose = lines[last].trim() !== "" && lines[last].replaceAll(mark, "").trim() === "";
  return mayClose ? lines.slice(0, last).join("\n") : text;
}

/**
 * The first line of the growing paragraph, item, heading or row.
 *
 * @param {string[]} lines
 */
function leafStart(lines) {
  let start = lines.length - 1;
  const isRow = bare(lines[start]).startsWith("|");
  while (start > 0 && !isRow && !ITEM.test(lines[start]) && bare(lines[start - 1]).trim() !== "") {
    if (bare(lines[start - 1]).startsWith("|")) break;
    start -= 1;
  }
  return start;
}

/**
 * The number of the last line if it may become the head of a table: a row without a line of dashes below.
 *
 * @param {string[]} lines
 */
function tableHead(lines) {
  const last = lines.length - (lines.at(-1) === "" ? 2 : 1);
  const isRow = [last, last - 1].map((n) => bare(lines[n] ?? "").startsWith("|"));
  return isRow[0] && !isRow[1] ? last : null;
}

/** @typedef {{ mark: string, at: number }} Open an unclosed mark and its position */

/**
 * Close or omit the open marks at the end of a text.
 *
 * @param {string} text
 * @returns {string}
 */
function settleInline(text) {
  const cut = text.replace(/(?:\\|!|(?<!~)~|&#?\w{0,32}|<[^\s<>]*)$/, "");
  /** @type {Open[]} */
  const open = [];
  for (let at = 0; at < cut.length; ) at = readMark(cut, at, open);
  const bracket = open.find(({ mark, at }) => mark === "[" && cut.length - at < LONGEST_LINK);
  const code = open.find(({ mark }) => mark[0] === "`");
  if (bracket && (!code || bracket.at < code.at)) {
    const start = cut[bracket.at - 1] === "!" ? bracket.at - 1 : bracket.at;
    return settleInline(cut.slice(0, start));
  }
  return close(cut, open);
}

/**
 * Read the mark or character at a position. Return the position after it.
 *
 * @param {string} text
 * @param {number} at
 * @param {Open[]} open
 */
function readMark(text, at, open) {
  const char = text[at];
  if (char === "\\") return at + 2;
  if (char === "`") return readCode(text, at, open);
  if (char === "[") open.push({ mark: "[", at });
  if (char === "]") return readBracket(text, at, open);
  if (char !== "*" && char !== "_" && char !== "~") return at + 1;
  const [mark] = /** @type {RegExpExecArray} */ (/^(\*+|_+|~+)/.exec(text.slice(at)));
  readEmphasis(text, at, mark, open);
  return at + mark.length;
}

/**
 * @param {string} text
 * @param {number} at
 * @param {Open[]} open
 */
function readCode(text, at, open) {
  const [mark] = /** @type {RegExpExecArray} */ (/^`+/.exec(text.slice(at)));
  const start = at + mark.length;
  const rest = text.slice(start);
  const end = new RegExp(`(?<!\`)${mark}(?!\`)`).exec(rest);
  if (end) return start + end.index + mark.length;
  open.push({ mark, at });
  return text.length;
}

/**
 * @param {string} text
 * @param {number} at
 * @param {Open[]} open
 */
function readBracket(text, at, open) {
  const n = open.findLastIndex(({ mark }) => mark === "[");
  if (n < 0) return at + 1;
  const length = addressLength(text.slice(at + 1));
  if (length === null) return text.length;
  open.splice(n);
  return at + 1 + length;
}

/**
 * The length of the link target after a bracket, 0 if there is none, or null if that is not known yet.
 *
 * @param {string} rest
 */
function addressLength(rest) {
  // A bracket at the very end may be followed by a link target, or become a task box.
  if (rest.trim() === "") return null;
  if (rest[0] !== "(" && rest[0] !== "[") return 0;
  const [opening, closing] = rest[0] === "(" ? "()" : "[]";
  let depth = 0;
  for (let n = 0; n < Math.min(rest.length, LONGEST_LINK); n += 1) {
    if (rest[n] === opening) depth += 1;
    if (rest[n] === closing) depth -= 1;
    if (depth === 0) return n + 1;
  }
  return rest.length < LONGEST_LINK ? null : 0;
}

/**
 * @param {string} text
 * @param {number} at
 * @param {string} mark
 * @param {Open[]} open
 */
function readEmphasis(text, at, mark, open) {
  const before = text[at - 1] ?? " ";
  const after = text[at + mark.length] ?? " ";
  const n = open.findLastIndex((one) => one.mark[0] === mark[0]);
  if (n >= 0 && !/\s/.test(before)) {
    const left = open[n].mark.length - mark.length;
    // The first half of a closing mark: "**bo*".
    if (left > 0 && at + mark.length === text.length) return;
    const [{ at: start }] = open.splice(n);
    if (left > 0) open.push({ mark: mark[0].repeat(left), at: start });
    return;
  }
  const isInWord = /[\p{L}\p{N}]/u.test(before);
  const opens = at + mark.length === text.length ? !isInWord : !/\s/.test(after);
  if (!opens || (isInWord && (mark[0] === "_" || mark === "*")) || mark === "~") return;
  open.push({ mark, at });
}

/**
 * @param {string} text
 * @param {Open[]} open
 */
function close(text, open) {
  let closed = text;
  const marks = open.filter(({ mark }) => mark !== "[");
  const half = /(?:[*_~]+|`+)$/.exec(closed);
  if (half && marks.length > 0 && marks.at(-1)?.mark[0] === half[0][0]) closed = closed.slice(0, half.index);
  for (const { mark, at } of marks.reverse()) {
    const content = closed.slice(at + mark.length).trim();
    closed = content === "" ? closed.slice(0, Math.min(at, closed.length)) : closed.trimEnd() + mark;
  }
  return closed;
}
