/** The agent's own list of sessions, page by page, beside what the bridge knows. */

import { millis } from "../sidebar/groups.js";

/** Loads pages of session/list and adds the sessions that the bridge did not tell of. */
export class AgentList {
  /** @type {string | null} */
  #cursor = null;
  #round = 0;

  /** @param {page.App} app */
  constructor(app) {
    this.app = app;
    this.hasMore = false;
    this.isLoading = false;
    /** How far back it was loaded, in milliseconds since 1970. */
    this.reachedMs = Infinity;
  }

  async restart() {
    this.#cursor = null;
    this.#round += 1;
    this.hasMore = false;
    this.isLoading = false;
    this.reachedMs = Infinity;
    // Of an agent without a list of its own, the bridge's is all there is.
    if (this.app.initialized?._meta?.dragoman?.agentLists) await this.more();
  }

  async more() {
    if (this.isLoading) return;
    const round = this.#round;
    this.isLoading = true;
    try {
      /** @type {bridge.Requests["session/list"]["params"]} */
      const params = this.#cursor === null ? { archived: "include" } : { archived: "include", cursor: this.#cursor };
      const { sessions = [], nextCursor = null } = await this.app.connection.request("session/list", params);
      if (round !== this.#round) return;
      this.app.state.noteSessions(sessions.map((listed) => this.#factsOf(listed)));
      for (const { updatedAt } of sessions) this.reachedMs = Math.min(this.reachedMs, millis(updatedAt));
      this.#cursor = nextCursor;
      this.hasMore = nextCursor !== null;
    } finally {
      if (round === this.#round) this.isLoading = false;
    }
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
