/**
 * Text that grows at the end of an element.
 *
 * A paragraph is laid out as a whole each time it grows. A very long one is therefore split into several, with line
 * breaks that it does not have, until it is complete and rendered.
 */

import { el } from "../page/dom.js";

const PART_CHARS = 4_000;
// A text without breaks is split anywhere.
const MOST_CHARS = 16_000;

export class GrowingText {
  #element;
  #part;
  #length = 0;
  #breaks;

  /** @param {Element} element */
  constructor(element) {
    this.#element = element;
    this.#part = element;
    this.#breaks = element.closest("pre") ? /\n/ : /\s/;
  }

  /** @param {string} text */
  append(text) {
    // A long text that comes at once is split as well.
    for (let end = this.#breakIn(text); end < text.length; end = this.#breakIn(text)) {
      this.#add(text.slice(0, end));
      text = text.slice(end);
    }
    this.#add(text);
  }

  /**
   * The offset of the first break at which a long text can be split, else its length.
   *
   * @param {string} text
   */
  #breakIn(text) {
    if (text.length <= 2 * PART_CHARS) return text.length;
    const found = text.slice(PART_CHARS, 2 * PART_CHARS).search(this.#breaks);
    return PART_CHARS + (found < 0 ? PART_CHARS : found + 1);
  }

  /** @param {string} text */
  #add(text) {
    const last = this.#part.lastChild;
    if (last instanceof Text) last.appendData(text);
    else this.#part.append(text);
    this.#length += text.length;
    if (this.#length > PART_CHARS && (this.#length > MOST_CHARS || this.#breaks.test(text.at(-1) ?? ""))) this.#begin();
  }

  #begin() {
    this.#part = el("div", { class: "text-part" });
    this.#element.append(this.#part);
    this.#length = 0;
  }
}
