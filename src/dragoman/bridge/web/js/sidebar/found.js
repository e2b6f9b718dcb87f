/** What was said, found by the bridge in all sessions while one types: each place with the words around it. */

import { explain } from "../connection/failure.js";
import { el, fill } from "../page/dom.js";
import { visible } from "../text/safe.js";
import { titleOf } from "./row.js";

const PAUSE_MS = 250;
const MIN_CHARS = 2;
const ROLES = { user: "You", agent: "Agent" };

export class FoundList {
  /** @type {bridge.SearchHit[]} */
  #hits = [];
  #searchId = 0;
  #timer = 0;
  #status = el("p", { class: "found-status", role: "status" });
  #list = el("ul", { class: "found-list" });

  /**
   * @param {page.App} app
   * @param {(hit: bridge.SearchHit) => void} open
   */
  constructor(app, open) {
    this.app = app;
    this.open = open;
    this.element = el("section", { class: "found", "aria-label": "Said in sessions", hidden: true },
      el("h2", { class: "session-heading" }, "Said in sessions"), this.#list, this.#status);
    app.connection.on("_dragoman/found", (params) => this.#found(params));
  }

  /** @param {string} query */
  search(query) {
    clearTimeout(this.#timer);
    this.#searchId += 1;
    this.#hits = [];
    const words = query.trim();
    this.element.hidden = words.length < MIN_CHARS;
    this.#draw("");
    if (!this.element.hidden) this.#timer = setTimeout(() => this.#ask(words), PAUSE_MS);
  }

  /** @param {string} query */
  async #ask(query) {
    const searchId = this.#searchId;
    this.#draw("Searching …");
    try {
      const { complete } = await this.app.connection.request("_dragoman/search", { query, searchId });
      if (searchId !== this.#searchId) return;
      const nothing = this.#hits.length === 0 ? "Nothing was said like this." : "";
      this.#draw(complete ? nothing : "There is more: write more words to narrow it.");
    } catch (error) {
      if (searchId === this.#searchId) this.#draw(explain(error));
    }
  }

  /** @param {{ searchId: number, hits: bridge.SearchHit[] }} params */
  #found({ searchId, hits }) {
    if (searchId !== this.#searchId) return;
    this.#hits.push(...hits);
    this.#draw("Searching …");
    this.#name();
  }

  /** Give the hits the titles of their sessions, also of those that are not in the list yet. */
  async #name() {
    const searchId = this.#searchId;
    await this.app.lists.lookUp([...new Set(this.#hits.map((hit) => hit.sessionId))]).catch(() => {});
    if (searchId !== this.#searchId) return;
    for (const [at, hit] of this.#hits.entries()) {
      const title = this.#list.children[at]?.querySelector(".found-title");
      if (title) title.textContent = this.#titleOf(hit);
    }
  }

  /** @param {bridge.SearchHit} hit */
  #titleOf(hit) {
    const facts = this.app.state.sessions.get(hit.sessionId);
    return facts ? titleOf(facts) : "Session";
  }

  /** @param {string} status */
  #draw(status) {
    this.#status.textContent = status;
    // What is there already keeps its place, and the focus.
    while (this.#list.childElementCount > this.#hits.length) this.#list.lastElementChild?.remove();
    for (const hit of this.#hits.slice(this.#list.childElementCount)) this.#list.append(this.#row(hit));
    if (this.#hits.length === 0) fill(this.#list);
  }

  /** @param {bridge.SearchHit} hit */
  #row(hit) {
    return el("li", {}, el("button", { type: "button", class: "found-hit", onclick: () => this.open(hit) },
      el("span", { class: "found-title", dir: "auto" }, this.#titleOf(hit)),
      el("span", { class: "found-words", dir: "auto" },
        el("span", { class: "found-role" }, `${ROLES[hit.role]}: `), visible(hit.before), el("mark", {}, visible(hit.match)), visible(hit.after))));
  }
}
