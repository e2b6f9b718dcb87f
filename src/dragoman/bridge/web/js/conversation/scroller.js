/**
 * Keeps a box scrolled to its end, unless the user scrolls away. Then the visible part keeps its place when the content
 * above it changes.
 */

import { el, icon } from "../page/dom.js";

const NEAR_PX = 48;

const TO_END = "Newest";
const TO_NEWS = "New messages";

/** @typedef {{ element: Element, top: number }} Anchor an element and its distance from the top of the box */

export class Scroller {
  #box;
  #list;
  #newest;
  #words = el("span", {}, TO_END);
  #last = 0;
  /** @type {Anchor | null} */
  #anchor = null;

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} content
   * @param {HTMLElement} list the items
   */
  constructor(box, content, list) {
    this.#box = box;
    this.#list = list;
    const shape = { type: "button", class: "button newest", hidden: true, onclick: () => this.follow() };
    this.#newest = el("button", shape, icon("down"), this.#words);
    this.following = true;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // Runs after layout and before paint, so reading the height causes no extra layout.
    const observer = new ResizeObserver(() => (this.following ? this.#toEnd() : this.#anchor && this.restore(this.#anchor)));
    observer.observe(content);
    observer.observe(box);
  }

  /** The button that scrolls to the end, shown while the user has scrolled away. */
  get button() {
    return this.#newest;
  }

  /** Mark the button, because content was added at the end. */
  noteNews() {
    if (!this.following && this.#words.textContent !== TO_NEWS) this.#words.textContent = TO_NEWS;
  }

  follow() {
    this.#setFollowing(true);
    this.#toEnd();
  }

  /** Stop following the end. */
  leave() {
    this.#setFollowing(false);
  }

  /**
   * Change the content without moving the visible part.
   *
   * @param {() => void} change
   */
  keepPlace(change) {
    const anchor = this.following ? null : this.#findAnchor();
    change();
    if (this.following) this.#toEnd();
    else if (anchor) this.restore(anchor);
  }

  /**
   * Scroll so that an element is where it was. It stays there.
   *
   * @param {Anchor} anchor
   */
  restore(anchor) {
    if (!anchor.element.isConnected) return;
    const moved = this.#topOf(anchor.element) - anchor.top;
    if (Math.abs(moved) >= 1) this.#box.scrollTop += moved;
    this.#anchor = anchor;
    this.#last = this.#box.scrollTop;
  }

  /** Note that the page has scrolled to another place. */
  noteMoved() {
    this.#anchor = this.#findAnchor();
    this.#last = this.#box.scrollTop;
  }

  #toEnd() {
    this.#box.scrollTop = this.#box.scrollHeight;
    this.#last = this.#box.scrollTop;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#box;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    // Only scrolling up is the user's action. Growth moves the end away as well.
    if (isNear) this.#setFollowing(true);
    else if (scrollTop < this.#last - 1) this.#setFollowing(false);
    this.#last = scrollTop;
    this.#anchor = this.following ? null : this.#findAnchor();
  }

  /** @param {Element} element */
  #topOf(element) {
    return element.getBoundingClientRect().top - this.#box.getBoundingClientRect().top;
  }

  /** The first element that is at least partly visible: an item, or a block of a long one. */
  #findAnchor() {
    const { top } = this.#box.getBoundingClientRect();
    let element = firstBelow(this.#list.children, top);
    if (element && element.getBoundingClientRect().top < top) {
      element = firstBelow(element.getElementsByClassName("block"), top) ?? element;
    }
    return element && { element, top: this.#topOf(element) };
  }

  /** @param {boolean} following */
  #setFollowing(following) {
    this.following = following;
    this.#newest.hidden = following;
    if (following) this.#words.textContent = TO_END;
  }
}

/**
 * The first of some elements, which are below each other, that ends below a line.
 *
 * @param {HTMLCollection} elements
 * @param {number} line
 */
function firstBelow(elements, line) {
  let [from, to] = [0, elements.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle].getBoundingClientRect().bottom > line) to = middle;
    else from = middle + 1;
  }
  return elements.item(from);
}
