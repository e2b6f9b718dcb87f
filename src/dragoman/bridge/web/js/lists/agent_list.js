/** The agent's own list of sessions, page by page, beside what the bridge knows. */

import { millis } from "../sidebar/groups.js";

/** Loads pages of session/list and adds the sessions that the bridge did not tell of. */
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
    /** How far back it was loaded, in milliseconds since 1970. */
    this.reachedMs = Infinity;
  }

  get isLoading() {
    return this.#loading !== null;
  }

  async restart() {
    this.forget();
    // Of an agent without a list of its own, the bridge's is all there is.
    if (this.app.initialized?._meta?.dragoman?.agentLists) await this.more();
  }

  /** Forget how far it was loaded; a page that is on its way is not taken. */
  forget() {
    this.#round += 1;
    this.#cursor = null;
    this.#loading = null;
    this.hasMore = false;
    this.reachedMs = Infinity;
  }

  /** Load the next page. While one is on its way, that is the next. */
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
    // Of a session that nobody has open the agent may know more: it may have been renamed elsewhere.
    if (known.state === "asleep") return { ...known, title: title ?? known.title, archived, origin: origin ?? known.origin };
    return known.title ? known : { ...known, title };
  }
}
