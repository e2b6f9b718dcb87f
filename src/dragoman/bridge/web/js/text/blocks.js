/** Finds the offsets at which a growing Markdown text can be split into complete blocks, without the DOM. */

const FENCE = /^(`{3,}|~{3,})/;
const HEADING = /^#{1,6}(\s|$)/;
const LIST_ITEM = /^(?:[-*+]|\d{1,9}[.)])\s/;
// The start of a line that may still become a list, a fence or a heading.
const UNDECIDED = /^(?:[-*+]|\d{1,9}[.)]?|`{1,2}|~{1,2}|#{1,6})?$/;

export class BlockScanner {
  #lineStart = 0;
  #decided = false;
  #start = 0;
  /** @type {{ mark: string, start: number } | null} */
  #fence = null;
  #afterBlank = false;
  #inList = false;

  /** The offset up to which the block of the text is certain. */
  safeEnd = 0;

  /**
   * Read the whole text so far. Return the offsets of new block ends in order.
   *
   * @param {string} text
   */
  read(text) {
    /** @type {number[]} */
    const ends = [];
    let newline;
    while ((newline = text.indexOf("\n", this.#lineStart)) >= 0) {
      this.#line(text.slice(this.#lineStart, newline), newline + 1, ends);
      this.#lineStart = newline + 1;
      this.#decided = false;
    }
    // The last line is incomplete. Its first characters often determine its block ("```", "- "). Until
    // then, no part of it is certain.
    const partial = text.slice(this.#lineStart);
    const isKnown = this.#fence !== null || this.#decided || !UNDECIDED.test(partial);
    if (isKnown && partial.trim() !== "") this.#begin(partial, ends);
    this.safeEnd = isKnown ? text.length : this.#lineStart;
    return ends;
  }

  /**
   * @param {string} line
   * @param {number} next
   * @param {number[]} ends
   */
  #line(line, next, ends) {
    if (this.#fence && this.#fence.start !== this.#lineStart) this.#inFence(line, next, ends);
    else if (line.trim() === "") this.#afterBlank = true;
    else this.#begin(line, ends);
  }

  /**
   * @param {string} line
   * @param {number} next
   * @param {number[]} ends
   */
  #inFence(line, next, ends) {
    if (!this.#fence || !closes(line, this.#fence)) return;
    const isOwnBlock = this.#fence.start === this.#start;
    this.#fence = null;
    this.#afterBlank = false;
    if (isOwnBlock) this.#end(next, ends);
  }

  /**
   * Check the start of a line, which determines its block. This is done once, even before the line is complete.
   *
   * @param {string} line
   * @param {number[]} ends
   */
  #begin(line, ends) {
    if (this.#decided || this.#fence) return;
    this.#decided = true;
    const start = this.#lineStart;
    const fence = FENCE.exec(line);
    if (fence || HEADING.test(line) || (this.#afterBlank && !this.#continuesList(line))) this.#end(start, ends);
    if (start === this.#start) this.#inList = LIST_ITEM.test(line);
    this.#afterBlank = false;
    const inner = fence ?? FENCE.exec(line.trimStart().replace(LIST_ITEM, ""));
    if (inner) this.#fence = { mark: inner[1], start };
  }

  /** @param {string} line */
  #continuesList(line) {
    return this.#inList && (/^\s/.test(line) || LIST_ITEM.test(line));
  }

  /**
   * @param {number} offset
   * @param {number[]} ends
   */
  #end(offset, ends) {
    if (offset <= this.#start) return;
    ends.push(offset);
    this.#start = offset;
    this.#inList = false;
  }
}

/**
 * @param {string} line
 * @param {{ mark: string }} fence
 */
function closes(line, { mark }) {
  const bare = line.trim();
  return bare.length >= mark.length && bare === mark[0].repeat(bare.length);
}
