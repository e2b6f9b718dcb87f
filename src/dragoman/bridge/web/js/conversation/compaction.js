/** A divider in the conversation: everything above was summarized for the model. It opens to the summary. */

import { el, fill, icon } from "../page/dom.js";
import { cleanText } from "../text/safe.js";
import { BlocksView } from "./blocks_view.js";

/** @type {Record<string, string>} */
const WORDS = {
  in_progress: "Summarizing the conversation…",
  completed: "The conversation before this point was summarized",
  failed: "The conversation could not be summarized",
  cancelled: "Summarizing was stopped",
};

export class CompactionView {
  /** @type {page.CompactionItem} */
  #item;
  #seen = -1;
  #words = el("span", { class: "compaction-words" });
  #summary = el("summary", {}, this.#words, icon("chevron", "compaction-arrow"));
  #blocks = new BlocksView("compaction-body");
  #details = el("details", {}, this.#summary, this.#blocks.element);
  #plain = el("div", { class: "compaction-plain" });

  /** @param {page.CompactionItem} item */
  constructor(item) {
    this.#item = item;
    this.element = el("section", { class: "item compaction", "aria-label": "Summary of the conversation" });
  }

  /** @param {boolean} live */
  update(live) {
    if (this.#seen === this.#item.version) return;
    this.#seen = this.#item.version;
    const { status, summary, error, round } = this.#item;
    this.element.dataset.status = status;
    const words = [WORDS[status] ?? `Summarizing: ${cleanText(status)}`, error && cleanText(error)].filter(Boolean).join(": ");
    const sign = status === "in_progress" && el("span", { class: "dot dot-busy" });
    const hasSummary = summary.length > 0;
    fill(hasSummary ? this.#words : this.#plain, sign, words);
    const shown = hasSummary ? this.#details : this.#plain;
    if (this.element.firstChild !== shown) this.element.replaceChildren(shown);
    this.#blocks.update(summary, round, live);
  }
}
