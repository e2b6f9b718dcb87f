/**
 * The blocks of a text, in sections. A long text has thousands of blocks, and each change at its end would lay out all
 * of them. A section that is far from the visible part therefore leaves the document, and keeps its height.
 *
 * The first blocks of a text are in no section, so a usual message has none.
 */

import { el } from "../page/dom.js";

const MOST_BLOCKS = 40;
const MOST_CHARS = 10_000;

/** @type {WeakMap<Element, Section>} */
const known = new WeakMap();
/** @type {Set<Section>} */
const parked = new Set();

const MARGIN = { rootMargin: "1500px 0px", scrollMargin: "1500px 0px" };
// Without a margin in the scrolling box, sections would appear too late.
const canPark = "scrollMargin" in IntersectionObserver.prototype;
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) known.get(target)?.restore();
    else if (target.isConnected) known.get(target)?.park();
  }
}, MARGIN);

export class Sections {
  #element;
  #holder;
  #blocks = 0;
  #chars = 0;
  /** @type {Section | null} */
  #section = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#element = element;
    this.#holder = element;
  }

  /**
   * Add a block at the end.
   *
   * @param {HTMLElement} block
   */
  append(block) {
    if (this.#blocks >= MOST_BLOCKS || this.#chars >= MOST_CHARS) this.#begin();
    this.#holder.append(block);
    this.#blocks += 1;
  }

  /**
   * Note that the last block grew.
   *
   * @param {number} chars
   */
  grow(chars) {
    this.#chars += chars;
  }

  #begin() {
    this.#section?.finish();
    this.#section = new Section();
    this.#holder = this.#section.element;
    this.#element.append(this.#holder);
    this.#blocks = this.#chars = 0;
  }
}

class Section {
  element = el("div", { class: "section" });
  #parts = document.createDocumentFragment();

  finish() {
    known.set(this.element, this);
    if (canPark) observer.observe(this.element);
  }

  park() {
    if (parked.has(this)) return;
    this.element.style.height = `${this.element.getBoundingClientRect().height}px`;
    this.#parts.append(...this.element.childNodes);
    parked.add(this);
  }

  restore() {
    if (!parked.delete(this)) return;
    this.element.append(this.#parts);
    this.element.style.height = "";
  }
}

/** Put all sections back into the document, for printing. */
export function restoreSections() {
  for (const section of [...parked]) section.restore();
}
