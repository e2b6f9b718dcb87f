/** The agent's own list of sessions, loaded page by page, in addition to the bridge's. */

import { millis } from "../sidebar/groups.js";

/** Loads pages of session/list and adds the sessions that the bridge does not know. */
export class AgentList {
  /** @type {string | null} */
  #cursor = null;
  #round = 0;
  /** @type {Promise<void> | null} */
  #loading = null;

  /** @param {page.App} app */
  constructor(app) {
    this.app = app;
    this.hasMore = false;
    /** The time back to which the list is loaded, in milliseconds since 1970. */
    this.reachedMs = Infinity;
  }

  get isLoading() {
    return this.#loading !== null;
  }

  async restart() {
    this.forget();
    // For an agent without session/list, the bridge's list is complete.
    if (this.app.initialized?._meta?.dragoman?.agentLists) await this.more();
  }

  /** Start again from the first page. A page that is being loaded is ignored. */
  forget() {
    this.#round += 1;
    this.#cursor = null;
    this.#loading = null;
    this.hasMore = false;
    this.reachedMs = Infinity;
  }

  /** Load the next page, or wait for the page that is being loaded. */
  more() {
    const round = this.#round;
    this.#loading ??= this.#load(round).finally(() => {
      if (round === this.#round) this.#loading = null;
    });
    return this.#loading;
  }

  /** @param {number} round */
  async #load(round) {
    /** @type {bridge.Requests["session/list"]["params"]} */
    const params = this.#cursor === null ? { archived: "include" } : { archived: "include", cursor: this.#cursor };
    const { sessions = [], nextCursor = null } = await this.app.connection.request("session/list", params);
    if (round !== this.#round) return;
    this.app.state.noteSessions(sessions.map((listed) => this.#factsOf(listed)));
    for (const { updatedAt } of sessions) this.reachedMs = Math.min(this.reachedMs, millis(updatedAt));
    this.#cursor = nextCursor;
    this.hasMore = nextCursor !== null;
  }

  /**
   * @param {acp.SessionInfo} listed
   * @returns {bridge.SessionFacts}
   */
  #factsOf({ sessionId, cwd, title, updatedAt, archived: isArchived, _meta }) {
    const archived = isArchived ?? false;
    const origin = _meta?.["dragoman/origin"];
    const known = this.app.state.sessions.get(sessionId);
    if (!known) {
      const elsewhere = _meta?.["dragoman/listed"] !== true;
      return { sessionId, cwd, title, updatedAt, archived, origin, elsewhere, state: "asleep", pending: 0, viewers: 0 };
    }
    // The agent may know more about a closed session, which may have been renamed elsewhere.
    if (known.state === "asleep") return { ...known, title: title ?? known.title, archived, origin: origin ?? known.origin };
    return known.title ? known : { ...known, title };
  }
}
