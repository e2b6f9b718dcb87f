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
    const last = this.#part.lastChild;
    if (last instanceof Text) last.appendData(text);
    else this.#part.append(text);
    this.#length += text.length;
    if (this.#length > PART_CHARS && this.#breaksAt.test(text)) this.#begin();
  }

  #begin() {
    this.#part = el("div");
    this.#element.append(this.#part);
    this.#length = 0;
  }
}
