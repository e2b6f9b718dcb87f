/** The agent's own list of sessions, page by page, beside what the bridge knows. */

/** Loads pages of session/list and adds the sessions that the bridge did not tell of. */
export class Listing {
  /** @type {string | null} */
  #cursor = null;
  #round = 0;

  /** @param {page.App} app */
  constructor(app) {
    this.app = app;
    this.hasMore = false;
    this.loading = false;
  }

  async restart() {
    this.#cursor = null;
    this.#round += 1;
    this.hasMore = false;
    this.loading = false;
    if (this.app.capabilities.sessionCapabilities?.list) await this.more();
  }

  async more() {
    if (this.loading) return;
    const round = this.#round;
    this.loading = true;
    try {
      /** @type {bridge.Requests["session/list"]["params"]} */
      const params = this.#cursor === null ? { archived: "include" } : { archived: "include", cursor: this.#cursor };
      const { sessions = [], nextCursor = null } = await this.app.connection.request("session/list", params);
      if (round !== this.#round) return;
      for (const { sessionId, cwd, title, updatedAt, archived, _meta } of sessions) {
        this.#note({ sessionId, cwd, title, updatedAt, archived: archived ?? false, origin: _meta?.["dragoman/origin"] });
      }
      this.#cursor = nextCursor;
      this.hasMore = nextCursor !== null;
    } finally {
      if (round === this.#round) this.loading = false;
    }
  }

  /** @param {acp.SessionInfo & { archived: boolean, origin?: string }} facts */
  #note(facts) {
    const { state } = this.app;
    const known = state.sessions.get(facts.sessionId);
    if (!known) state.noteSession({ ...facts, state: "asleep", pending: 0, viewers: 0 });
    // Of a session that nobody has open the agent may know more: it may have been renamed elsewhere.
    else if (known.state === "asleep") state.noteSession({ ...known, title: facts.title ?? known.title, archived: facts.archived, origin: facts.origin ?? known.origin });
    else if (!known.title && facts.title) state.noteSession({ ...known, title: facts.title });
  }
}
