/**
 * Finds a text in the whole session, also in parts of the history that are not loaded. The bridge searches, and the
 * page shows one place after the other. All places in the document are marked.
 */

import { explain } from "../connection/failure.js";
import { el, iconButton } from "../page/dom.js";
import { onFrame } from "../page/scheduling.js";
import { findRanges, highlight } from "./highlights.js";

const PAUSE_MS = 250;
const MARGIN_PX = 60;

export class FindBar {
  /** @type {page.App} */
  #app;
  #parts;
  #input = el("input", { class: "input find-input", type: "search", "aria-label": "Find in this session", placeholder: "Find in this session", autocomplete: "off", spellcheck: "false" });
  #status = el("span", { class: "find-status", role: "status" });
  /** @type {bridge.FoundPlace[]} */
  #hits = [];
  #isComplete = true;
  #at = -1;
  /** The latest request, so that answers to earlier ones are dropped. */
  #number = 0;
  #timer = 0;
  /** @type {page.Item | null} */
  #item = null;
  /** Whether the current place must be scrolled to, until the user scrolls. */
  #isMoving = false;
  #paint = () => this.#mark();

  /**
   * @param {page.App} app
   * @param {{ box: HTMLElement, list: HTMLElement, viewOf: (item: page.Item) => page.ItemView | undefined }} parts
   */
  constructor(app, parts) {
    this.#app = app;
    this.#parts = parts;
    this.element = el(
      "search",
      { class: "find-bar", hidden: true },
      this.#input,
      this.#status,
      iconButton("up", "Previous match", () => this.#step(-1)),
      iconButton("down", "Next match", () => this.#step(1)),
      iconButton("close", "Close", () => this.close()),
    );
    this.#input.addEventListener("input", () => this.#search());
    this.element.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["wheel", "touchmove", "pointerdown"]) {
      parts.box.addEventListener(name, () => (this.#isMoving = false), { passive: true });
    }
    // Items come and go, and their text is rendered late.
    new MutationObserver(() => !this.element.hidden && onFrame(this.#paint)).observe(parts.list, { childList: true, subtree: true });
    app.state.addEventListener("session", () => this.#session !== app.state.session && this.close());
  }

  /** @type {page.Session | null} */
  #session = null;

  open() {
    this.#session = this.#app.state.session;
    this.element.hidden = false;
    this.#input.select();
    this.#input.focus();
    if (this.#input.value !== "") this.#search();
  }

  close() {
    if (this.element.hidden) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.#forget();
    this.#status.textContent = "";
    highlight([], null);
    if (hadFocus) this.#parts.box.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.#input) this.#step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#number += 1;
    this.#hits = [];
    this.#at = -1;
    this.#item = null;
  }

  #search() {
    this.#forget();
    const query = this.#input.value.trim();
    onFrame(this.#paint);
    this.#status.textContent = query === "" ? "" : "…";
    if (query !== "") this.#timer = setTimeout(() => this.#ask(query), PAUSE_MS);
  }

  /** @param {string} query */
  async #ask(query) {
    const session = this.#session;
    const number = this.#number;
    if (!session) return;
    try {
      const found = await this.#app.connection.request("_dragoman/find", { sessionId: session.id, query });
      if (number !== this.#number) return;
      this.#hits = found.hits;
      this.#isComplete = found.complete;
      if (this.#hits.length === 0) this.#status.textContent = "No matches";
      else await this.#go(this.#nearest(session));
    } catch (error) {
      if (number === this.#number) this.#status.textContent = explain(error);
    }
  }

  /**
   * The first hit that is visible or follows, else the last one.
   *
   * @param {page.Session} session
   */
  #nearest(session) {
    const { top } = this.#parts.box.getBoundingClientRect();
    const item = session.transcript.items.find((one) => {
      const element = this.#parts.viewOf(one)?.element;
      return element?.isConnected && element.getBoundingClientRect().bottom > top;
    });
    const at = this.#hits.findIndex(({ seq }) => seq >= (item?.place ?? Infinity));
    return at < 0 ? this.#hits.length - 1 : at;
  }

  /** @param {number} by */
  #step(by) {
    const count = this.#hits.length;
    if (count > 0) this.#go((this.#at + by + count) % count).catch((error) => this.#app.toast(explain(error), "error"));
  }

  /** @param {number} at */
  async #go(at) {
    const number = this.#number;
    this.#at = at;
    const count = `${this.#hits.length.toLocaleString()}${this.#isComplete ? "" : "+"}`;
    this.#status.textContent = `${(at + 1).toLocaleString()} of ${count}`;
    this.#item = (await this.#session?.reveal(this.#hits[at].seq)) ?? null;
    if (number !== this.#number || at !== this.#at || !this.#item) return;
    this.#parts.viewOf(this.#item)?.open?.();
    this.#isMoving = true;
    this.#mark();
  }

  /** Mark the places in the document, and scroll to the current one. */
  #mark() {
    const query = this.element.hidden ? "" : this.#input.value.trim();
    const current = this.#item && this.#parts.viewOf(this.#item)?.element;
    /** @type {Range[]} */
    const all = [];
    /** @type {Range | null} */
    let here = null;
    for (const element of query === "" ? [] : this.#parts.list.children) {
      const ranges = findRanges(element, query);
      all.push(...ranges);
      // Rendered text has no marks, so it may have fewer places than the source.
      if (element === current) here = ranges[Math.min(this.#hits[this.#at]?.nth ?? 0, ranges.length - 1)] ?? null;
    }
    highlight(all, here);
    if (here && this.#isMoving) this.#scrollTo(here);
    return false;
  }

  /** @param {Range} range */
  #scrollTo(range) {
    const box = this.#parts.box.getBoundingClientRect();
    const { top, bottom } = range.getBoundingClientRect();
    if (top < box.top + MARGIN_PX || bottom > box.bottom - MARGIN_PX) this.#parts.box.scrollTop += top - box.top - box.height / 3;
  }
}
