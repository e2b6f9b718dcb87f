/**
 * Text that grows at the end of an element.
 *
 * A paragraph is laid out as a whole each time it grows. A very long one is therefore split into several, with line
 * breaks that it does not have, until it is complete and rendered.
 */

import { el } from "../page/dom.js";

const PART_CHARS = 4_000;

export class GrowingText {
  #element;
  #part;
  #length = 0;
  #breaksAt;

  /** @param {Element} element */
  constructor(element) {
    this.#element = element;
    this.#part = element;
    this.#breaksAt = element.closest("pre") ? /\n$/ : /\s$/;
  }

  /** @param {string} text */
  append(text) {
    // A long text that comes at once is split between its lines, so that it looks the same.
    for (let end = lineEnd(text); end < text.length; end = lineEnd(text)) {
      this.#add(text.slice(0, end));
      text = text.slice(end);
    }
    this.#add(text);
  }

  /** @param {string} text */
  #add(text) {
    const last = this.#part.lastChild;
    if (last instanceof Text) last.appendData(text);
    else this.#part.append(text);
    this.#length += text.length;
    if (this.#length > PART_CHARS && this.#breaksAt.test(text)) this.#begin();
  }

  #begin() {
    this.#part = el("div", { class: "text-part" });
    this.#element.append(this.#part);
    this.#length = 0;
  }
}

/**
 * The end of the first lines of a long text that fill a part, else its length.
 *
 * @param {string} text
 */
function lineEnd(text) {
  const at = text.length <= 2 * PART_CHARS ? -1 : text.indexOf("\n", PART_CHARS);
  return at < 0 ? text.length : at + 1;
}
