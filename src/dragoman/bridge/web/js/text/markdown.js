/**
 * A text that is shown at once as it is, and as markdown as soon as its HTML is there.
 *
 * It grows at its end. Finished blocks are rendered once, when they come near the visible part. The last block is
 * rendered again while it grows, a few times a second; text that came since is appended to the rendered text.
 */

import { BlockScanner } from "./blocks.js";
import { el, icon } from "../page/dom.js";
import { whenNear } from "../page/scheduling.js";
import { renderMarkdown } from "./render.js";
import { GrowingText } from "./growing_text.js";
import { renderedNodes } from "./sanitize.js";

const LIVE_EVERY_MS = 300;
const LIVE_CHARS = 8_000;
const WHOLE_CHARS = 30_000;
const FENCE = /^(`{3}|~{3})/;

export class MarkdownText {
  #element;
  #scanner = new BlockScanner();
  #shown = 0;
  /** @type {Block | null} */
  #block = null;
  /** @type {Block | null} */
  #last = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#element = element;
    element.classList.add("prose");
  }

  /**
   * Show the text; `live` says that it may still grow.
   *
   * @param {string} text
   * @param {boolean} live
   */
  update(text, live) {
    if (text.length > this.#shown) this.#reopen();
    if (this.#shown > 0 || live || text.length > WHOLE_CHARS) this.#growByBlocks(text);
    if (live) return;
    this.#grow(text, text.length);
    this.#last = this.#block;
    this.#finish();
  }

  /** Go on with the last block: what was said to be all may not have been. */
  #reopen() {
    if (this.#last === null) return;
    this.#block = this.#last;
    this.#block.reopen();
    this.#last = null;
  }

  /** @param {string} text */
  #growByBlocks(text) {
    if (text.length === this.#shown) return;
    for (const end of this.#scanner.read(text)) {
      if (end < this.#shown) continue;
      this.#grow(text, end);
      this.#finish();
    }
    this.#grow(text, this.#scanner.safeEnd);
  }

  /**
   * @param {string} text
   * @param {number} end
   */
  #grow(text, end) {
    if (end <= this.#shown) return;
    this.#block ??= new Block(this.#element);
    this.#block.extend(text.slice(this.#shown, end));
    this.#shown = end;
  }

  #finish() {
    this.#block?.finish();
    this.#block = null;
  }
}

class Block {
  #element = el("div", { class: "block raw" });
  #grown = new GrowingText(this.#element);
  #text = "";
  #finished = false;
  /** @type {number | undefined} */
  #timer = undefined;
  #asking = false;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    parent.append(this.#element);
  }

  /** @param {string} more */
  extend(more) {
    if (this.#text === "") this.#element.classList.toggle("raw-code", FENCE.test(more));
    this.#text += more;
    this.#grown.append(more);
    this.#renderSoon();
  }

  reopen() {
    this.#finished = false;
  }

  finish() {
    this.#finished = true;
    clearTimeout(this.#timer);
    whenNear(this.#element, () => this.#render());
  }

  #renderSoon() {
    if (this.#timer !== undefined || this.#finished || this.#text.length > LIVE_CHARS) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#finished && !this.#asking && document.visibilityState === "visible") this.#render();
    }, LIVE_EVERY_MS);
  }

  async #render() {
    const text = this.#text;
    this.#asking = true;
    const html = await renderMarkdown(text.trimEnd());
    this.#asking = false;
    if (html === null || (this.#finished && text !== this.#text)) return;
    this.#element.classList.remove("raw", "raw-code");
    this.#element.replaceChildren(renderedNodes(html));
    decorate(this.#element);
    this.#grown = new GrowingText(deepestEnd(this.#element));
    if (this.#text.length > text.length) this.#grown.append(this.#text.slice(text.length));
  }
}

const HOLDERS = new Set(["p", "li", "ul", "ol", "blockquote", "pre", "code", "div", "td", "tr", "tbody", "table"]);

/**
 * Where text that follows belongs until it is rendered itself.
 *
 * @param {Element} element
 */
function deepestEnd(element) {
  let end = element;
  while (end.lastElementChild && isAtEnd(end.lastElementChild) && HOLDERS.has(end.lastElementChild.localName)) {
    end = end.lastElementChild;
  }
  return end;
}

/** @param {Element} element */
function isAtEnd(element) {
  const rest = element.nextSibling;
  return rest === null || (rest instanceof Text && rest.data.trim() === "" && rest.nextSibling === null);
}

/** @param {HTMLElement} element */
function decorate(element) {
  for (const frame of element.querySelectorAll(".code")) {
    const code = frame.querySelector("code");
    const language = frame.getAttribute("data-language");
    frame.prepend(
      el(
        "div",
        { class: "code-bar" },
        el("span", {}, language ?? ""),
        copyButton(() => code?.textContent ?? ""),
      ),
    );
    frame.querySelector("pre")?.setAttribute("tabindex", "0");
  }
  for (const table of element.querySelectorAll("table")) {
    const scroller = el("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": "Table" });
    table.replaceWith(scroller);
    scroller.append(table);
  }
}

/**
 * @param {() => string} getText
 * @param {string} label
 */
export function copyButton(getText, label = "Copy") {
  const words = el("span", { class: "copy-words" }, label);
  const button = el("button", { type: "button", class: "copy-button" }, icon("copy"), words);
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(getText()).then(
      () => true,
      () => false,
    );
    words.textContent = done ? "Copied" : "Copying is not allowed here";
    setTimeout(() => {
      words.textContent = label;
    }, 1500);
  });
  return button;
}
