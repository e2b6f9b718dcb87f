/**
 * The agent's plan above the composer: one line with its progress, or all steps if opened. A finished plan folds and is
 * removed with the next message.
 */

import { el, fill, icon } from "../page/dom.js";
import { oneLine } from "../text/safe.js";

const STATES = { pending: "To do", in_progress: "In progress", completed: "Done" };

export class Plan {
  /** @type {page.App} */
  #app;
  #drawn = "";
  #details = el("details", { class: "plan" });

  /**
   * @param {HTMLElement} root
   * @param {page.App} app
   */
  constructor(root, app) {
    this.#app = app;
    root.append(this.#details);
    app.state.addEventListener("session", () => this.#draw());
    this.#draw();
  }

  #draw() {
    const entries = this.#app.state.session?.transcript.plan ?? [];
    const key = JSON.stringify(entries);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const isDone = entries.every(({ status }) => status === "completed");
    this.#details.classList.toggle("plan-done", isDone);
    if (isDone) this.#details.open = false;
    this.#details.hidden = entries.length === 0;
    if (entries.length > 0) fill(this.#details, summary(entries), el("ol", {}, entries.map(step)));
  }
}

/** @param {acp.PlanEntry[]} entries */
function summary(entries) {
  const done = entries.filter((entry) => entry.status === "completed").length;
  const current =
    entries.find((entry) => entry.status === "in_progress") ?? entries.find((entry) => entry.status !== "completed");
  const words = current ? oneLine(current.content) : "All steps done";
  return el(
    "summary",
    {},
    el("span", { class: "plan-name" }, "Plan"),
    el("progress", { max: entries.length, value: done, "aria-label": `${done} of ${entries.length} steps done` }),
    el("span", { class: "plan-count" }, `${done}/${entries.length}`),
    el("span", { class: "plan-current" }, words),
    icon("chevron", "plan-arrow"),
  );
}

/** @param {acp.PlanEntry} entry */
function step(entry) {
  const status = STATES[entry.status] ? entry.status : "pending";
  const sign =
    status === "completed" ? icon("check") : el("span", { class: status === "in_progress" ? "dot dot-busy" : "dot" });
  return el(
    "li",
    { class: `step step-${status}` },
    el("span", { class: "step-sign" }, sign, el("span", { class: "visually-hidden" }, `${STATES[status]}: `)),
    el("span", {}, oneLine(entry.content)),
    entry.priority === "high" && el("span", { class: "chip chip-warn" }, "important"),
  );
}
