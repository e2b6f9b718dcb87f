/** A subagent: its task, its state and a button that opens its session. */

import { el, fill, icon } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { cleanText, oneLine } from "../text/safe.js";

/** @type {Record<string, string>} */
const STATES = { running: "Working", idle: "Done", requires_action: "Waiting for an answer" };

export class SubagentView {
  /** @type {page.SubagentItem} */
  #item;
  #seen = -1;
  #sign = el("span", { class: "subagent-sign" });
  #title = el("span", { class: "subagent-title" });
  #state = el("span", { class: "subagent-state" });
  #description = el("p", { class: "subagent-description" });
  #open;

  /**
   * @param {page.SubagentItem} item
   * @param {page.App} app
   */
  constructor(item, app) {
    this.#item = item;
    const show = () => app.openSession(item.id).catch((error) => app.toast(explain(error), "error"));
    this.#open = el("button", { type: "button", class: "button subagent-open", onclick: show }, "Show work");
    this.element = el(
      "section",
      { class: "item subagent" },
      el("div", { class: "subagent-head" }, this.#sign, this.#title, this.#state, this.#open),
      this.#description,
    );
  }

  update() {
    if (this.#seen === this.#item.version) return;
    this.#seen = this.#item.version;
    const { title, description, state } = this.#item.fields;
    const name = oneLine(title ?? "") || "Subagent";
    this.#title.textContent = name;
    this.element.setAttribute("aria-label", `Subagent: ${name}`);
    this.#open.setAttribute("aria-label", `Show work of ${name}`);
    const now = state?.state ?? "";
    fill(this.#sign, now === "running" ? el("span", { class: "dot dot-busy" }) : icon("fork"));
    this.#state.textContent = STATES[now] ?? oneLine(now);
    this.#description.textContent = cleanText(description ?? "");
    this.#description.hidden = !description;
  }
}
