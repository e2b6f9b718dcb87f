/** The sequence diagram: bridge on the left, agent on the right, time downwards. Only visible rows exist. */

import { closestTo, el } from "../page/dom.js";
import { sentence } from "./format.js";
import { ROW, drawBar, drawLifelines, drawMessage, lanes, shape } from "./sequence.js";
import { RowWindow } from "./window.js";

export class SequenceDiagram {
  #window;
  /** @type {Map<number, number>} */
  #index = new Map();

  /**
   * `choose(entry)` is called when a message is clicked. `names()` returns the labels of the two lines.
   *
   * @param {page.WireLog} log
   * @param {(entry: page.WireEntry) => void} choose
   * @param {() => string[]} names
   */
  constructor(log, choose, names) {
    this.log = log;
    this.choose = choose;
    this.names = names;
    /** @type {page.WireEntry | null} */
    this.chosen = null;
    this.svg = shape("svg", { class: "seq", role: "presentation" });
    this.canvas = el("div", { class: "wire-canvas" }, this.svg);
    this.scroller = el(
      "div",
      { class: "seq-scroller", tabindex: "0", role: "img", "aria-label": "Sequence of messages", onclick: (event) => this.#click(event) },
      this.canvas,
    );
    this.head = shape("svg", { class: "seq-heads", "aria-hidden": "true" });
    this.element = el("div", { class: "seq-frame" }, this.head, this.scroller);
    this.#window = new RowWindow(this.scroller, this.canvas, ROW, (first, last) => this.#draw(first, last));
  }

  refresh() {
    this.#index = new Map(this.log.shown.map((entry, index) => [entry.n, index]));
    this.#window.setCount(this.log.shown.length);
  }

  /** @param {page.WireEntry | null} entry */
  select(entry) {
    this.chosen = entry;
    const index = entry ? this.#index.get(entry.n) : undefined;
    if (index === undefined) this.#window.refresh();
    else this.#window.reveal(index);
    this.scroller.setAttribute("aria-label", entry ? `Sequence of messages. Selected: ${sentence(entry)}` : "Sequence of messages");
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  #draw(first, last) {
    const width = this.scroller.clientWidth;
    if (width === 0) return;
    const places = lanes(width);
    const height = (last - first) * ROW;
    this.svg.setAttribute("width", String(Math.max(width, places.right + 64)));
    this.svg.setAttribute("height", String(height));
    this.svg.setAttribute("viewBox", `0 ${first * ROW} ${Math.max(width, places.right + 64)} ${height}`);
    this.svg.style.transform = `translateY(${first * ROW}px)`;
    const entries = this.log.shown.slice(first, last);
    const messages = entries.map((entry, offset) => drawMessage(entry, (first + offset) * ROW, places));
    const chosen = entries.findIndex((entry) => entry === this.chosen);
    if (chosen >= 0) messages[chosen].classList.add("chosen");
    const lines = drawLifelines(last * ROW, places);
    this.svg.replaceChildren(...lines, ...this.#bars(first, last, places), ...messages);
    this.#drawHeads(places);
  }

  /**
   * @param {number} first
   * @param {number} last
   * @param {{ left: number, right: number }} places
   */
  #bars(first, last, places) {
    const bars = [];
    for (const entry of openAround(this.log.shown, first, last)) {
      const from = this.#index.get(entry.n);
      const to = entry.partner ? this.#index.get(entry.partner.n) : last;
      if (from === undefined || to === undefined || to < first || from > last) continue;
      bars.push(drawBar(entry, Math.max(from, first - 1), Math.min(to, last), places));
    }
    return bars;
  }

  /** @param {{ left: number, right: number }} places */
  #drawHeads({ left, right }) {
    const [bridge, agent] = this.names();
    this.head.replaceChildren(
      shape("text", { x: left, y: 20, "text-anchor": "middle" }, bridge),
      shape("text", { x: right, y: 20, "text-anchor": "middle" }, agent),
    );
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const message = closestTo(event, ".seq-message");
    const index = message ? this.#index.get(Number(message.getAttribute("data-n"))) : undefined;
    if (index !== undefined) this.choose(this.log.shown[index]);
  }
}

// The request of a turn can be thousands of rows above. The search goes this far back.
const LOOK_BACK = 2_000;

/**
 * @param {page.WireEntry[]} shown
 * @param {number} first
 * @param {number} last
 */
function* openAround(shown, first, last) {
  for (let index = Math.max(0, first - LOOK_BACK); index < last; index += 1) {
    const entry = shown[index];
    if (entry?.kind === "request") yield entry;
  }
}
