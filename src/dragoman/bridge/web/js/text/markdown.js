/**
 * A text that is shown as Markdown. Raw marks are never visible, unless rendering fails.
 *
 * The text grows at its end. Complete blocks are rendered once, when they approach the visible part. The last block is
 * rendered a few times per second while it grows, without its half-written marks (`unfinished.js`). New words
 * without marks are appended to the rendered text at once. Others wait for the next rendering.
 */

import { BlockScanner } from "./blocks.js";
import { el, icon } from "../page/dom.js";
import { whenNear } from "../page/scheduling.js";
import { LONGEST_CHARS, renderMarkdown } from "./render.js";
import { GrowingText } from "./growing_text.js";
import { renderedNodes } from "./sanitize.js";
import { Sections } from "./sections.js";
import { canAppend, isInFence, isPlainParagraph, settle } from "./unfinished.js";

const LIVE_EVERY_MS = 150;
// A longer block is rendered less often, because it takes longer.
const LIVE_CHARS = 8_000;
const WHOLE_CHARS = 30_000;
// After this time without HTML, the raw text is shown.
const PATIENCE_MS = 4_000;

export class MarkdownText {
  #sections;
  #scanner = new BlockScanner();
  #shown = 0;
  /** @type {Block | null} */
  #block = null;
  /** @type {Block | null} */
  #last = null;

  /** @param {HTMLElement} element */
  constructor(element) {
    this.#sections = new Sections(element);
    element.classList.add("prose");
  }

  /**
   * Show the text. `live` means that it may still grow.
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

  /** Reopen the last block, because a finished text grew after all. */
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
    this.#block ??= new Block(this.#sections);
    this.#sections.grow(end - this.#shown);
    this.#block.extend(text.slice(this.#shown, end));
    this.#shown = end;
  }

  #finish() {
    this.#block?.finish();
    this.#block = null;
  }
}

/**
 * One block. Its states are: first invisible (`data-state="waiting"`) or a paragraph of plain words, then
 * HTML (`rendered`), or the raw text (`plain`) if rendering failed.
 */
class Block {
  #element = el("div", { class: "block raw" });
  /** @type {GrowingText | null} */
  #grown = new GrowingText(this.#element);
  #text = "";
  /** The part of the text that is in the DOM. */
  #shown = "";
  #finished = false;
  /** @type {number | undefined} */
  #timer = undefined;
  /** @type {number | undefined} */
  #patience = undefined;
  #renderedAt = 0;
  #asking = false;
  /** Whether the part in the DOM ends within a fence. */
  #inFence = false;

  /** @param {Sections} sections */
  constructor(sections) {
    sections.append(this.#element);
    this.#enter("words");
  }

  /** @param {string} more */
  extend(more) {
    this.#text += more;
    this.#showMore();
    this.#renderSoon();
  }

  reopen() {
    this.#finished = false;
  }

  finish() {
    this.#finished = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    whenNear(this.#element, () => this.#render());
  }

  /** @param {"words" | "waiting" | "rendered" | "plain"} state */
  #enter(state) {
    this.#element.dataset.state = state;
    this.#element.classList.toggle("raw", state !== "rendered");
  }

  /** Show the text since the last rendering, if it needs no new rendering. */
  #showMore() {
    const { state } = this.#element.dataset;
    if (state === "words" && !isPlainParagraph(this.#text)) return this.#wait();
    if (state === "rendered" && !this.#continues()) {
      if (this.#text.length > LONGEST_CHARS) this.#showPlain();
      return;
    }
    this.#grown?.append(this.#text.slice(this.#shown.length));
    this.#shown = this.#text;
  }

  #continues() {
    return this.#grown !== null && canAppend(this.#inFence, this.#text.slice(this.#shown.length));
  }

  /** Hide a text that begins with marks until it is rendered. Words that are already visible stay. */
  #wait() {
    if (this.#shown !== "") return;
    this.#enter("waiting");
    this.#showMore();
  }

  #showPlain() {
    this.#enter("plain");
    this.#element.replaceChildren();
    this.#grown = new GrowingText(this.#element);
    this.#shown = "";
    this.#showMore();
  }

  #renderSoon() {
    if (this.#timer !== undefined || this.#finished || this.#text.length > LONGEST_CHARS) return;
    const everyMs = LIVE_EVERY_MS * Math.max(1, this.#text.length / LIVE_CHARS);
    this.#timer = setTimeout(() => this.#renderLive(), Math.max(0, this.#renderedAt + everyMs - performance.now()));
  }

  #renderLive() {
    this.#timer = undefined;
    if (this.#finished) return;
    this.#renderedAt = performance.now();
    if (this.#asking || document.visibilityState !== "visible") this.#renderSoon();
    else this.#render();
  }

  async #render() {
    const text = this.#text;
    const isWhole = this.#finished;
    const settled = isWhole ? text : settle(text);
    // Nothing is visible yet, or the result would be the same.
    if (!isWhole && (settled.trim() === "" || (settled === this.#shown && !this.#isWaiting()))) return;
    this.#asking = true;
    this.#patience ??= setTimeout(() => this.#showPlain(), PATIENCE_MS);
    const html = await renderMarkdown(isWhole ? settled.trimEnd() : settled);
    this.#asking = false;
    if (this.#finished && (!isWhole || text !== this.#text)) return;
    if (html !== null) this.#show(html, settled);
    else if (isWhole) this.#showPlain();
    if (!isWhole && this.#shown !== this.#text) this.#renderSoon();
  }

  #isWaiting() {
    return this.#element.dataset.state === "waiting";
  }

  /**
   * @param {string} html of the text `settled`
   * @param {string} settled
   */
  #show(html, settled) {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#enter("rendered");
    this.#element.replaceChildren(renderedNodes(html));
    decorate(this.#element);
    // If a mark was closed or omitted, no text can be appended before the next rendering.
    const end = this.#text.startsWith(settled) ? deepestEnd(this.#element) : null;
    this.#grown = end && new GrowingText(end);
    this.#shown = end?.localName === "code" ? settled : settled.trimEnd();
    this.#inFence = isInFence(this.#shown);
    this.#showMore();
  }
}

const HOLDERS = new Set(["p", "li", "ul", "ol", "blockquote", "pre", "code", "div", "h1", "h2", "h3", "h4", "h5", "h6"]);

/**
 * The element to which following words can be appended, or null if that is unknown.
 *
 * @param {Element} element
 */
function deepestEnd(element) {
  let end = element;
  while (end.lastElementChild && isAtEnd(end.lastElementChild)) {
    const { localName } = end.lastElementChild;
    if (localName === "div" && end.lastElementChild.className === "table-scroll") return null;
    if (!HOLDERS.has(localName) || (localName === "code" && end.localName !== "pre")) break;
    end = end.lastElementChild;
  }
  return end === element ? null : end;
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
    words.textContent = done ? "Copied" : "Copying is not allowed";
    setTimeout(() => {
      words.textContent = label;
    }, 1500);
  });
  return button;
}
