/** The selection of several sessions, to delete them with one confirmation. */

import { explain } from "../connection/failure.js";
import { el, fill, iconButton } from "../page/dom.js";
import { confirmDeleteMany } from "./session_actions.js";

export class Selection {
  /** @type {Map<string, bridge.SessionFacts> | null} */
  #chosen = null;
  #count = el("span", { class: "selection-count", role: "status" });
  #all = el("button", { type: "button", class: "button", onclick: () => this.#chooseAll() }, "All");
  #delete = el("button", { type: "button", class: "button button-danger", onclick: () => this.#remove() }, "Delete…");

  /**
   * `all` returns all sessions of the current list, including unloaded ones.
   *
   * @param {page.App} app
   * @param {{ changed: () => void, all: () => Promise<bridge.SessionFacts[]> }} list
   */
  constructor(app, { changed, all }) {
    this.app = app;
    this.changed = changed;
    this.all = all;
    this.button = iconButton("check", "Select sessions", () => this.#set(this.isOn ? null : new Map()), { class: "sidebar-select", "aria-pressed": "false" });
    this.bar = el("div", { class: "selection-bar", role: "group", "aria-label": "Selected sessions", hidden: true }, this.#count, this.#all,
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
    const chosen = new Map(this.#chosen ?? []);
    const facts = this.app.state.sessions.get(id);
    if (!chosen.delete(id) && facts) chosen.set(id, facts);
    this.#set(chosen);
  }

  async #chooseAll() {
    this.#all.disabled = true;
    try {
      const all = await this.all();
      if (this.isOn) this.#set(new Map(all.map((facts) => [facts.sessionId, facts])));
    } catch (error) {
      this.app.toast(explain(error), "error");
    } finally {
      this.#all.disabled = false;
    }
  }

  /** @param {Map<string, bridge.SessionFacts> | null} chosen */
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

  /** Remove sessions that were deleted elsewhere from the selection. */
  #forgetGone() {
    const chosen = [...(this.#chosen ?? [])];
    const there = chosen.filter(([id]) => !this.app.state.isDeleted(id));
    if (there.length !== chosen.length) this.#set(new Map(there));
  }

  async #remove() {
    // Use the current facts if they are known, because a session may have started to run.
    const chosen = [...(this.#chosen ?? [])].map(([id, facts]) => this.app.state.sessions.get(id) ?? facts);
    if (chosen.length > 0 && (await confirmDeleteMany(this.app, chosen))) this.#leave();
  }
}
