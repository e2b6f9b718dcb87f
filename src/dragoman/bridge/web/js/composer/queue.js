/** The waiting messages: at the bridge for the end of the turn, or on this page for the connection. */

import { el, fill, icon, iconButton } from "../page/dom.js";
import { explain } from "../connection/failure.js";
import { cleanText, oneLine } from "../text/safe.js";

/**
 * @typedef {{ id: string, text: string, attachments: string[], isHere: boolean }} Row
 * @typedef {{ edit: (id: string) => void, remove: (id: string) => void }} Here what can be done with those that wait here
 */

export class Queue {
  /** @type {page.App} */
  #app;
  #here;
  #drawn = "";
  /** @type {string | null} */
  #editing = null;
  #heading = el("span", {});
  #resume;
  #list = el("ol", { class: "queue-list" });

  /**
   * @param {page.App} app
   * @param {Here} here
   */
  constructor(app, here) {
    this.#app = app;
    this.#here = here;
    this.#resume = el(
      "button",
      { type: "button", class: "button", onclick: () => this.#try((session) => session.resumeQueue()) },
      "Continue",
    );
    const head = el("div", { class: "queue-head" }, icon("clock"), this.#heading, this.#resume);
    this.element = el("section", { class: "queue", "aria-label": "Queued messages", hidden: true }, head, this.#list);
  }

  /** @param {Row[]} pending the messages that wait for the connection */
  draw(pending) {
    const { session } = this.#app.state;
    const { prompts, held } = session?.queue ?? { prompts: [], held: false };
    const rows = [...prompts.map((one) => ({ ...one, isHere: false })), ...pending];
    const key = JSON.stringify([rows, held, this.#app.canSteer, session?.running]);
    if (key === this.#drawn) return;
    // A row that is being edited stays, unless its message was sent.
    if (this.#editing !== null && rows.some(({ id }) => id === this.#editing)) return;
    if (this.#editing !== null) this.#app.toast("The message was sent before you changed it.", "hint");
    this.#editing = null;
    this.#drawn = key;
    this.element.hidden = rows.length === 0;
    this.#heading.textContent = words(prompts.length, pending.length, held);
    this.#resume.hidden = !held || prompts.length === 0 || this.#app.readOnly;
    fill(this.#list, rows.map((row) => this.#row(row)));
  }

  /** @param {Row} row */
  #row(row) {
    const { id, text, attachments, isHere } = row;
    const shown = oneLine(text) || "Attachments";
    const more = attachments.map((name) => el("span", { class: "chip" }, oneLine(name)));
    const item = el("li", { class: "queue-row" }, el("span", { class: "queue-text", title: cleanText(text) }, shown), more);
    if (this.#app.readOnly) return item;
    const edit = () => (isHere ? this.#here.edit(id) : this.#edit(item, row));
    const remove = () => (isHere ? this.#here.remove(id) : this.#try((session) => session.changeQueued(id, null)));
    item.append(
      iconButton("pencil", `Edit: ${shown}`, edit, { class: "small" }),
      iconButton("close", `Remove: ${shown}`, remove, { class: "small" }),
    );
    return item;
  }

  /**
   * @param {HTMLElement} item
   * @param {Row} row
   */
  #edit(item, { id, text }) {
    this.#editing = id;
    const field = el("textarea", { class: "input queue-field", rows: "2", "aria-label": "Queued message" });
    field.value = text;
    const end = () => {
      this.#editing = null;
      this.#drawn = "";
      this.#app.state.touchSession();
      this.#app.focusComposer();
    };
    const save = async () => {
      await this.#try((session) => session.changeQueued(id, field.value.trim() === "" ? null : field.value));
      end();
    };
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey))) return;
      event.preventDefault();
      if (event.key === "Enter") save();
      else end();
    });
    fill(
      item,
      field,
      el("button", { type: "button", class: "button button-primary", onclick: save }, "Save"),
      el("button", { type: "button", class: "button", onclick: end }, "Cancel"),
    );
    field.focus();
  }

  /** @param {(session: page.Session) => Promise<unknown>} work */
  async #try(work) {
    const { session } = this.#app.state;
    try {
      if (session) await work(session);
    } catch (error) {
      this.#app.toast(explain(error), "error");
    }
  }
}

/**
 * @param {number} queued
 * @param {number} pending
 * @param {boolean} held
 */
function words(queued, pending, held) {
  if (queued === 0) return "Will be sent when connected";
  if (held) return "Not sent, because the last turn failed";
  return pending === 0 ? "Will be sent after this turn" : "Will be sent after this turn, when connected";
}
