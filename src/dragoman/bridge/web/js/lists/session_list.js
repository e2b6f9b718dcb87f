/**
 * One list of the bridge, loaded a part at a time, the latest sessions first.
 *
 * The facts of sessions are in `app.state.sessions`, whoever told them: a list, a search, or news about one session. A
 * list only knows how far it was loaded. So a session that changed is in its list if it is before that place, and one
 * that moved up is there by itself.
 */

import { comparePlaces, projectOf } from "../sidebar/groups.js";

export const FIRST = 100;
/** The bridge gives no more at once. */
export const MOST = 1_000;

export class SessionList {
  /** @type {page.App} */
  #app;
  #params;
  /** @type {string | undefined} */
  #cursor;
  /** @type {bridge.SessionFacts | null} */
  #last = null;

  /**
   * @param {page.App} app
   * @param {{ groups?: bridge.SessionGroup[], cwd?: string, search?: string }} params
   */
  constructor(app, params) {
    this.#app = app;
    this.#params = params;
    this.count = 0;
    this.isLoaded = false;
    this.isComplete = false;
    this.isLoading = false;
  }

  get hasMore() {
    return this.isLoaded && !this.isComplete;
  }

  /** Load the next part. */
  async more(limit = FIRST) {
    if (this.isLoading || this.isComplete) return;
    this.isLoading = true;
    try {
      this.take(await this.#app.connection.request("_dragoman/sessions", { ...this.#params, limit, cursor: this.#cursor }));
    } finally {
      this.isLoading = false;
    }
  }

  /** @param {bridge.SessionPage} page */
  take({ sessions, nextCursor }) {
    this.#cursor = nextCursor;
    this.#last = sessions.at(-1) ?? this.#last;
    this.count += sessions.length;
    this.isLoaded = true;
    this.isComplete = nextCursor === undefined;
    this.#app.state.noteSessions(sessions);
  }

  /**
   * Whether a session is in the part that was loaded.
   *
   * @param {bridge.SessionFacts} facts
   */
  has(facts) {
    return this.isComplete || (this.#last !== null && comparePlaces(facts, this.#last) <= 0);
  }
}

/** The projects of the bridge, loaded a part at a time; each has a list of its own. */
export class ProjectList {
  /** @type {page.App} */
  #app;
  /** @type {string | undefined} */
  #cursor;
  /** @type {bridge.SessionFacts | null} */
  #last = null;
  /** @type {Map<string, SessionList>} */
  #lists = new Map();

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.isLoaded = false;
    this.isComplete = false;
    this.isLoading = false;
  }

  get hasMore() {
    return this.isLoaded && !this.isComplete;
  }

  async more() {
    if (this.isLoading || this.isComplete) return;
    this.isLoading = true;
    try {
      const { projects, nextCursor } = await this.#app.connection.request("_dragoman/projects", { cursor: this.#cursor });
      for (const { cwd, ...page } of projects) this.#take(cwd, page);
      this.#cursor = nextCursor;
      this.isLoaded = true;
      this.isComplete = nextCursor === undefined;
    } finally {
      this.isLoading = false;
    }
  }

  /**
   * @param {string} cwd
   * @param {bridge.SessionPage} page
   */
  #take(cwd, page) {
    const list = new SessionList(this.#app, { groups: ["sessions"], cwd });
    list.take(page);
    this.#lists.set(projectOf(cwd), list);
    this.#last = page.sessions[0] ?? this.#last;
  }

  /**
   * The list of a project, if it was loaded.
   *
   * @param {string} project
   */
  of(project) {
    return this.#lists.get(project);
  }

  /** @param {bridge.SessionFacts} facts */
  has(facts) {
    const list = this.#lists.get(projectOf(facts.cwd));
    if (list) return list.has(facts);
    // Projects stand where their latest session is: one that is not among those above is new.
    return this.isComplete || (this.#last !== null && comparePlaces(facts, this.#last) <= 0);
  }
}
