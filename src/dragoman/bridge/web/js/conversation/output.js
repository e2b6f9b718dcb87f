/** Growing terminal output with colours. Complete lines are rendered once. */

import { PLAIN, collapseReturns, parseAnsi } from "./ansi.js";
import { el } from "../page/dom.js";

// The agent keeps more. A page with megabytes of output would be unusable.
const MOST_CHARS = 300_000;
const KEPT_CHARS = 150_000;
// Browsers make a layer for every scrolling box, so only long output scrolls.
const LONG_LINES = 14;
const LONG_CHARS = 1_400;

export class Output {
  #text = "";
  #written = 0;
  #style = PLAIN;
  #body = el("span");
  #tail = el("span");
  #cut = el("div", { class: "output-cut", hidden: true });
  #isLong = false;

  /** With `fromEnd` the end stays visible while the output grows. The style sheet does that without measuring. */
  constructor(label = "Output", { fromEnd = false } = {}) {
    const attributes = {
      class: fromEnd ? "output output-from-end" : "output",
      tabindex: "0",
      role: "group",
      "aria-label": label,
    };
    const pre = el("pre", {}, this.#body, this.#tail);
    this.element = el("div", attributes, el("div", {}, this.#cut, pre));
  }

  /** @param {string} text */
  update(text) {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text.slice(0, this.#written))) this.#restart(0);
    this.#text = text;
    if (text.length - this.#written > MOST_CHARS) this.#skip(text);
    this.#writeLines(text);
    this.#writeTail(text);
    if (!this.#isLong) this.#measure(text);
  }

  /** @param {string} text */
  #measure(text) {
    this.#isLong = text.length > LONG_CHARS || text.split("\n").length > LONG_LINES;
    if (this.#isLong) this.element.classList.add("output-long");
  }

  /** @param {number} written */
  #restart(written) {
    this.#written = written;
    this.#style = PLAIN;
    this.#body.replaceChildren();
  }

  /** @param {string} text */
  #skip(text) {
    const start = text.indexOf("\n", text.length - KEPT_CHARS) + 1;
    this.#restart(start);
    this.#cut.hidden = false;
    this.#cut.textContent = `The first ${start.toLocaleString()} characters are not shown.`;
  }

  /** @param {string} text */
  #writeLines(text) {
    // Complete lines are appended once. The last line is redrawn each time, because a carriage return may replace it.
    const end = text.lastIndexOf("\n") + 1;
    if (end <= this.#written) return;
    const fresh = text.slice(this.#written, end);
    const lines = fresh.includes("\r") ? fresh.split("\n").map(collapseReturns).join("\n") : fresh;
    const { pieces, style } = parseAnsi(lines, this.#style);
    this.#style = style;
    this.#body.append(...toNodes(pieces));
    this.#written = end;
  }

  /** @param {string} text */
  #writeTail(text) {
    const { pieces } = parseAnsi(collapseReturns(text.slice(this.#written)), this.#style);
    this.#tail.replaceChildren(...toNodes(pieces));
  }
}

/** @param {Array<{ text: string, classes: string }>} pieces */
function toNodes(pieces) {
  return pieces.map(({ text, classes }) =>
    classes ? el("span", { class: classes }, text) : document.createTextNode(text),
  );
}
