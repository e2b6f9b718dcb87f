/**
 * The part of the conversation that is in the document: the items near the visible part.
 *
 * The items before and after are replaced by empty space of their height, as it was measured or is estimated. An item
 * that is selected, or that has the focus, stays in the document.
 */

import { el } from "../page/dom.js";
import { textOf } from "../session/blocks.js";

// In heights of the visible part: items are added up to NEAR, and removed beyond FAR.
const NEAR = 1;
const FAR = 2;
// If more new items than this are missing at the end, the end is drawn first.
const MOST_APPENDED = 40;
// A selection may keep this many items.
const MOST_PINNED = 200;
const LINE_PX = 26;
const LINE_CHARS = 90;

export class ItemWindow {
  /** @type {page.Item[]} */
  #items = [];
  #first = 0;
  #end = 0;
  /** @type {Map<page.Item, page.ItemView>} */
  #views = new Map();
  /** @type {WeakMap<page.Item, number>} */
  #heights = new WeakMap();
  #box;
  #scroller;
  #make;
  #above = el("div", { class: "gap" });
  #below = el("div", { class: "gap" });
  #isWhole = false;

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} list
   * @param {{ scroller: import("./scroller.js").Scroller, make: (item: page.Item) => page.ItemView }} parts
   */
  constructor(box, list, { scroller, make }) {
    this.#box = box;
    this.list = list;
    this.#scroller = scroller;
    this.#make = make;
    this.elements = [this.#above, list, this.#below];
  }

  /** Whether the first item is in the document, and not only for printing. */
  get isAtStart() {
    return this.#first === 0 && !this.#isWhole;
  }

  /** @param {page.Item} item */
  view(item) {
    return this.#views.get(item);
  }

  /**
   * Show the end of other items.
   *
   * @param {page.Item[]} items
   */
  restart(items) {
    this.#items = items;
    this.#views.clear();
    this.#clear(items.length);
    this.#drawGaps();
  }

  /**
   * Take over the items after some were added at the beginning or joined.
   *
   * @param {page.Item[]} items
   */
  sync(items) {
    this.#scroller.keepPlace(() => {
      const shown = this.#items.slice(this.#first, this.#end);
      this.#items = items;
      const kept = shown.filter((item) => items[item.n] === item);
      for (const item of shown) if (items[item.n] !== item) this.#drop(item);
      this.#first = kept.length > 0 ? kept[0].n : items.length;
      this.#end = this.#first + kept.length;
      this.#drawGaps();
    });
  }

  /**
   * Add the items that come near the visible part and remove those that are far from it. Return true if there is more
   * to do after the deadline.
   *
   * @param {number} deadline
   */
  fit(deadline) {
    const height = this.#box.clientHeight;
    if (height === 0 || this.#items.length === 0 || this.#isWhole) return false;
    if (this.#scroller.following && this.#items.length - this.#end > MOST_APPENDED) {
      this.#clear(this.#items.length);
      this.#drawGaps();
      this.#scroller.follow();
    }
    const { top, bottom } = this.#extent();
    if (!this.#scroller.following && (this.#first === this.#end || bottom < -FAR * height || top > (1 + FAR) * height)) {
      return this.#jump(deadline);
    }
    let more = false;
    if (this.#isDue(top, bottom, height)) {
      this.#scroller.keepPlace(() => {
        this.#shrink(height);
        more = this.#grow(top, bottom, height, deadline);
        this.#drawGaps();
      });
      const now = this.#extent();
      more ||= this.#isShort(now.top, now.bottom, height);
    }
    return more;
  }

  /**
   * Put an item into the middle of the visible part. Return its element.
   *
   * @param {page.Item} item
   */
  show(item) {
    if (item.n < this.#first || item.n >= this.#end) {
      this.#clear(item.n);
      this.#add(item.n, true);
      this.#drawGaps();
    }
    const element = /** @type {HTMLElement} */ (this.#views.get(item)?.element);
    element.scrollIntoView({ block: "center" });
    this.#scroller.noteMoved();
    this.fit(Infinity);
    return element;
  }

  /** Show all items, for printing. */
  showAll() {
    this.#isWhole = true;
    this.#grow(Infinity, -Infinity, this.#box.clientHeight, Infinity);
    this.#drawGaps();
  }

  /** Show only the items near the visible part again. */
  showPart() {
    this.#isWhole = false;
    this.fit(Infinity);
  }

  /** The items around the visible part after a jump of the scroll position. */
  #jump(/** @type {number} */ deadline) {
    const { scrollTop, clientHeight } = this.#box;
    const gapTop = this.#above.getBoundingClientRect().top - this.#box.getBoundingClientRect().top + scrollTop;
    let [at, y] = [0, gapTop];
    while (at < this.#items.length - 1 && y + this.#heightOf(this.#items[at]) <= scrollTop) y += this.#heightOf(this.#items[at++]);
    this.#clear(at);
    const anchor = { element: this.#add(at, true), top: y - scrollTop };
    const more = this.#grow(anchor.top, anchor.top + this.#heightOf(this.#items[at]), clientHeight, deadline);
    this.#drawGaps();
    this.#scroller.restore(anchor);
    return more;
  }

  /** @param {number} at */
  #clear(at) {
    for (const item of this.#items.slice(this.#first, this.#end)) this.#measure(item);
    for (const item of [...this.#views.keys()]) this.#drop(item);
    this.list.replaceChildren();
    this.#first = this.#end = at;
  }

  #extent() {
    const box = this.#box.getBoundingClientRect();
    const list = this.list.getBoundingClientRect();
    return { top: list.top - box.top, bottom: list.bottom - box.top };
  }

  /**
   * @param {number} top
   * @param {number} bottom
   * @param {number} height
   */
  #isShort(top, bottom, height) {
    return (top > -NEAR * height && this.#first > 0) || (bottom < (1 + NEAR) * height && this.#end < this.#items.length);
  }

  /**
   * @param {number} top
   * @param {number} bottom
   * @param {number} height
   */
  #isDue(top, bottom, height) {
    return this.#isShort(top, bottom, height) || top < -2 * FAR * height || bottom > (1 + 2 * FAR) * height;
  }

  /**
   * @param {number} top
   * @param {number} bottom
   * @param {number} height
   * @param {number} deadline
   */
  #grow(top, bottom, height, deadline) {
    while (this.#first > 0 && top > -NEAR * height) {
      this.#add(this.#first - 1, false);
      top -= this.#heightOf(this.#items[this.#first]);
      if (performance.now() > deadline) return true;
    }
    while (this.#end < this.#items.length && bottom < (1 + NEAR) * height) {
      this.#add(this.#end, true);
      bottom += this.#heightOf(this.#items[this.#end - 1]);
      if (performance.now() > deadline) return true;
    }
    return false;
  }

  /** @param {number} height */
  #shrink(height) {
    const { top } = this.#box.getBoundingClientRect();
    const shown = this.#items.slice(this.#first, this.#end);
    const rects = shown.map((item) => this.#views.get(item)?.element.getBoundingClientRect());
    const isPinned = shown.length < MOST_PINNED ? pins() : () => false;
    const isStaying = (/** @type {number} */ n) => {
      const rect = rects[n];
      if (!rect) return false;
      const isNear = rect.bottom - top > -FAR * height && rect.top - top < (1 + FAR) * height;
      return isNear || isPinned(/** @type {page.ItemView} */ (this.#views.get(shown[n])).element);
    };
    let [from, to] = [0, shown.length];
    while (from < to - 1 && !isStaying(from)) from += 1;
    while (to > from + 1 && !isStaying(to - 1)) to -= 1;
    shown.forEach((item, n) => {
      const rect = rects[n];
      if (rect) this.#heights.set(item, rect.height);
      if (n < from || n >= to) this.#drop(item);
    });
    this.#end = this.#first + to;
    this.#first += from;
  }

  /**
   * @param {number} at
   * @param {boolean} isAfter
   */
  #add(at, isAfter) {
    const item = this.#items[at];
    const view = this.#views.get(item) ?? this.#make(item);
    this.#views.set(item, view);
    if (isAfter) this.list.append(view.element);
    else this.list.prepend(view.element);
    if (isAfter) this.#end = at + 1;
    else this.#first = at;
    return view.element;
  }

  /** @param {page.Item} item */
  #drop(item) {
    const view = this.#views.get(item);
    view?.element.remove();
    // What the user has opened stays open.
    if (!view?.element.querySelector("details[open]") && !view?.element.matches("[open], [data-chosen]")) this.#views.delete(item);
  }

  /** @param {page.Item} item */
  #measure(item) {
    const element = this.#views.get(item)?.element;
    if (element?.isConnected) this.#heights.set(item, element.getBoundingClientRect().height);
  }

  /** @param {page.Item} item */
  #heightOf(item) {
    const known = this.#heights.get(item) ?? estimate(item);
    this.#heights.set(item, known);
    return known;
  }

  #drawGaps() {
    const sum = (/** @type {page.Item[]} */ items) => items.reduce((height, item) => height + this.#heightOf(item), 0);
    this.#above.style.height = `${sum(this.#items.slice(0, this.#first))}px`;
    this.#below.style.height = `${sum(this.#items.slice(this.#end))}px`;
  }
}

/** @param {page.Item} item */
function estimate(item) {
  if (item.type !== "message" || item.role === "thought") return 40;
  const chars = item.blocks.reduce((count, block) => count + textOf(block).length, 0);
  return 40 + Math.ceil(chars / LINE_CHARS) * LINE_PX;
}

/** Returns whether an element has the focus or a part of the selection. */
function pins() {
  const selection = getSelection();
  const hasSelection = selection !== null && !selection.isCollapsed;
  const focused = document.activeElement;
  return (/** @type {HTMLElement} */ element) => {
    if (focused !== document.body && element.contains(focused)) return true;
    return hasSelection && selection.containsNode(element, true);
  };
}
