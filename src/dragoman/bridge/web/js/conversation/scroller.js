/** Keeps a growing box scrolled to its end, unless the user scrolls away. */

import { el, icon } from "../page/dom.js";

const NEAR_PX = 48;

const TO_END = "Newest";
const TO_NEWS = "New messages";

export class Scroller {
  #box;
  #newest;
  #words = el("span", {}, TO_END);
  #last = 0;

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} content
   */
  constructor(box, content) {
    this.#box = box;
    const shape = { type: "button", class: "button newest", hidden: true, onclick: () => this.follow() };
    this.#newest = el("button", shape, icon("down"), this.#words);
    this.following = true;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // Runs after layout and before paint, so reading the height causes no extra layout.
    const observer = new ResizeObserver(() => this.following && this.#toEnd());
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
   * Change the part above without moving the visible part.
   *
   * @param {() => void} change
   */
  keepPlace(change) {
    const fromEnd = this.#box.scrollHeight - this.#box.scrollTop;
    change();
    this.#box.scrollTop = this.#box.scrollHeight - fromEnd;
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
  }

  /** @param {boolean} following */
  #setFollowing(following) {
    this.following = following;
    this.#newest.hidden = following;
    if (following) this.#words.textContent = TO_END;
  }
}
