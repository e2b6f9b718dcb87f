/** Stays at the end of what grows, unless a person scrolls away from it. */

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
    // After layout and before paint: the height is known without asking for another layout.
    const observer = new ResizeObserver(() => this.following && this.#toEnd());
    observer.observe(content);
    observer.observe(box);
  }

  /** The button that goes back to the end; shown while the person is elsewhere. */
  get button() {
    return this.#newest;
  }

  /** Something came at the end. */
  noteNews() {
    if (!this.following && this.#words.textContent !== TO_NEWS) this.#words.textContent = TO_NEWS;
  }

  follow() {
    this.#setFollowing(true);
    this.#toEnd();
  }

  /** Stay where one is, whatever comes at the end. */
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
    // Only a way up is a person's wish: growth moves the end away without one.
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
