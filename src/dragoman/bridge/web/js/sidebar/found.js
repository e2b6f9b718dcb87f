/** Search results in the messages of all sessions, from the bridge: each with its surrounding words. */

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
    this.element = el("section", { class: "found", "aria-label": "In conversations", hidden: true },
      el("h2", { class: "session-heading" }, "In conversations"), this.#list, this.#status);
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
    this.#draw("Searching…");
    try {
      const { complete } = await this.app.connection.request("_dragoman/search", { query, searchId });
      if (searchId !== this.#searchId) return;
      const nothing = this.#hits.length === 0 ? "No conversation contains this." : "";
      this.#draw(complete ? nothing : "There are more results. Add words to narrow the search.");
    } catch (error) {
      if (searchId === this.#searchId) this.#draw(explain(error));
    }
  }

  /** @param {{ searchId: number, hits: bridge.SearchHit[] }} params */
  #found({ searchId, hits }) {
    if (searchId !== this.#searchId) return;
    this.#hits.push(...hits);
    this.#draw("Searching…");
    this.#name();
  }

  /** Add the session titles to the hits, including sessions that are not loaded yet. */
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
    // Existing results keep their position and the focus.
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
