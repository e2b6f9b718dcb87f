/** Several sessions chosen at once, to delete them with one question. */

import { el, fill, iconButton } from "../page/dom.js";
import { confirmDeleteMany } from "./session_actions.js";

export class Selection {
  /** @type {Set<string> | null} */
  #chosen = null;
  #count = el("span", { class: "selection-count", role: "status" });
  #delete = el("button", { type: "button", class: "button button-danger", onclick: () => this.#remove() }, "Delete…");

  /**
   * @param {page.App} app
   * @param {() => void} changed
   */
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    this.button = iconButton("check", "Select sessions", () => this.#set(this.isOn ? null : new Set()), { class: "sidebar-select", "aria-pressed": "false" });
    this.bar = el("div", { class: "selection-bar", role: "group", "aria-label": "Selected sessions", hidden: true }, this.#count,
      el("button", { type: "button", class: "button", onclick: () => this.#leave() }, "Cancel"), this.#delete);
    app.state.addEventListener("sessions", () => this.#forgetGone());
  }

  get isOn() {
    return this.#chosen !== null;
  }

  /** @param {string} id */
  has(id) {
    return this.#chosen?.has(id) ?? false;
  }

  /** @param {string} id */
  toggle(id) {
    const chosen = new Set(this.#chosen ?? []);
    if (!chosen.delete(id)) chosen.add(id);
    this.#set(chosen);
  }

  /** @param {Set<string> | null} chosen */
  #set(chosen) {
    this.#chosen = chosen;
    this.button.setAttribute("aria-pressed", String(this.isOn));
    this.bar.hidden = !this.isOn;
    fill(this.#count, `${chosen?.size ?? 0} selected`);
    this.#delete.disabled = !chosen?.size;
    this.changed();
  }

  #leave() {
    this.#set(null);
    this.button.focus();
  }

  /** Sessions may be deleted elsewhere meanwhile. */
  #forgetGone() {
    const chosen = [...(this.#chosen ?? [])];
    const there = chosen.filter((id) => this.app.state.sessions.has(id));
    if (there.length !== chosen.length) this.#set(new Set(there));
  }

  async #remove() {
    const chosen = [...(this.#chosen ?? [])].map((id) => this.app.state.sessions.get(id)).filter((facts) => facts !== undefined);
    if (chosen.length > 0 && (await confirmDeleteMany(this.app, chosen))) this.#leave();
  }
}
