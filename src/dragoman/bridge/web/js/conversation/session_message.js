/** A message from one session to another, marked as such, because no user wrote it. */

import { el, fill, icon } from "../page/dom.js";
import { oneLine } from "../text/safe.js";
import { BlocksView } from "./blocks_view.js";

export class SessionMessageView {
  /** @type {page.SessionMessageItem} */
  #item;
  /** @type {page.Session} */
  #session;
  /** @type {page.App} */
  #app;
  #seen = -1;
  #head = el("h2", { class: "session-message-head" });
  #blocks = new BlocksView("session-message-body");

  /**
   * @param {page.SessionMessageItem} item
   * @param {page.Session} session
   * @param {page.App} app
   */
  constructor(item, session, app) {
    this.#item = item;
    this.#session = session;
    this.#app = app;
    this.element = el("article", { class: "item session-message" }, this.#head, this.#blocks.element);
  }

  /** @param {boolean} live */
  update(live) {
    if (this.#seen === this.#item.version) return;
    this.#seen = this.#item.version;
    const { fields, blocks, round } = this.#item;
    const isOurs = fields.senderSessionId === this.#session.id;
    const other = isOurs ? fields.recipientSessionId : fields.senderSessionId;
    this.element.dataset.direction = isOurs ? "out" : "in";
    fill(this.#head, icon("chat"), isOurs ? "Message to " : "Message from ", this.#link(other));
    this.#blocks.update(blocks, round, live);
  }

  /** @param {string | null | undefined} id */
  #link(id) {
    if (!id) return "another session";
    const name = this.#nameOf(id);
    return el("button", { type: "button", class: "session-link", onclick: () => this.#app.openSession(id).catch(() => {}) }, name);
  }

  /** @param {string} id */
  #nameOf(id) {
    const { sessions } = this.#app.state;
    if (sessions.get(this.#session.id)?.parent === id) return "the session that started it";
    const subagent = this.#session.transcript.entities.get(`subagent ${id}`);
    return oneLine(subagent?.fields.title ?? sessions.get(id)?.title ?? "") || "another session";
  }
}
