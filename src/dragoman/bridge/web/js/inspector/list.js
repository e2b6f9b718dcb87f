/** The messages as rows, selected by arrows, Page Up and Down, Home and End. */

import { closestTo, el, fill } from "../page/dom.js";
import { DIRECTIONS, arrow, bytes, clock, duration, label } from "./format.js";
import { RowWindow } from "./window.js";

const ROW_HEIGHT = 28;

export class MessageList {
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();
  #window;

  /**
   * `choose(entry)` is called when a row is selected.
   *
   * @param {page.WireLog} log
   * @param {(entry: page.WireEntry) => void} choose
   */
  constructor(log, choose) {
    this.log = log;
    this.choose = choose;
    /** @type {page.WireEntry | null} */
    this.chosen = null;
    this.canvas = el("div", { class: "wire-canvas", role: "presentation" });
    this.element = el(
      "div",
      {
        class: "wire-list", role: "listbox", tabindex: "0", "aria-label": "Messages",
        onkeydown: (event) => this.#key(event), onclick: (event) => this.#click(event),
      },
      this.canvas,
    );
    this.#window = new RowWindow(this.element, this.canvas, ROW_HEIGHT, (first, last) => this.#draw(first, last));
  }

  refresh() {
    this.#window.setCount(this.log.shown.length);
  }

  /** @param {page.WireEntry | null} entry */
  select(entry) {
    this.chosen = entry;
    const index = entry ? this.log.shown.indexOf(entry) : -1;
    if (index >= 0) this.#window.reveal(index);
    else this.#window.refresh();
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  #draw(first, last) {
    const rows = new Map();
    for (let index = first; index < last; index += 1) {
      const entry = this.log.shown[index];
      if (!entry) continue;
      const row = this.#rows.get(entry.n) ?? makeRow(entry);
      row.style.transform = `translateY(${index * ROW_HEIGHT}px)`;
      row.setAttribute("aria-selected", String(entry === this.chosen));
      row.setAttribute("aria-posinset", String(index + 1));
      row.setAttribute("aria-setsize", String(this.log.shown.length));
      rows.set(entry.n, row);
    }
    for (const [n, row] of this.#rows) if (!rows.has(n)) row.remove();
    for (const [n, row] of rows) if (!this.#rows.has(n)) this.canvas.append(row);
    this.#rows = rows;
    const chosen = this.chosen && rows.get(this.chosen.n);
    if (chosen) this.element.setAttribute("aria-activedescendant", chosen.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const row = closestTo(event, ".wire-row");
    const entry = row && this.log.shown.find(({ n }) => n === Number(row.getAttribute("data-n")));
    if (entry) this.choose(entry);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { shown } = this.log;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowDown: 1, ArrowUp: -1, PageDown: this.#window.pageRows, PageUp: -this.#window.pageRows,
      Home: -shown.length, End: shown.length,
    };
    if (!(event.key in steps) || shown.length === 0) return;
    event.preventDefault();
    const at = this.chosen ? shown.indexOf(this.chosen) : -1;
    const next = Math.min(shown.length - 1, Math.max(0, at + steps[event.key]));
    this.choose(shown[next]);
  }
}

/** @param {page.WireEntry} entry */
function makeRow(entry) {
  const row = el("div", {
    class: `wire-row ${entry.direction} ${entry.kind}`, id: `wire-${entry.n}`, role: "option",
    dataset: { n: String(entry.n) },
  });
  row.classList.toggle("failed", entry.failed);
  return fill(
    row,
    el("span", { class: "wire-time" }, clock(entry.time)),
    el("span", { class: "wire-arrow" }, el("span", { "aria-hidden": "true" }, arrow(entry)),
      el("span", { class: "visually-hidden" }, DIRECTIONS[entry.direction] ?? "")),
    el("span", { class: "wire-method" }, label(entry)),
    el("span", { class: "wire-kind" }, entry.failed ? "error" : entry.kind),
    el("span", { class: "wire-size" }, bytes(entry.size)),
    el("span", { class: "wire-latency" }, duration(entry.latencyMs)),
  );
}
