/**
 * One list of the bridge, loaded in parts, latest sessions first.
 *
 * The facts of all sessions are in `app.state.sessions`, from lists, searches and updates of single sessions. A
 * list only knows how far it is loaded. A changed session is therefore in the list if it is before that point, and a
 * session that moved up appears without a request.
 */

import { comparePlaces, projectOf } from "../sidebar/groups.js";

export const FIRST = 100;
/** The bridge's limit per request. */
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
      this.add(await this.#app.connection.request("_dragoman/sessions", { ...this.#params, limit, cursor: this.#cursor }));
    } finally {
      this.isLoading = false;
    }
  }

  /** @param {bridge.SessionPage} page */
  add({ sessions, nextCursor }) {
    this.#cursor = nextCursor;
    this.#last = sessions.at(-1) ?? this.#last;
    this.count += sessions.length;
    this.isLoaded = true;
    this.isComplete = nextCursor === undefined;
    this.#app.state.noteSessions(sessions);
  }

  /**
   * Whether a session is in the loaded part.
   *
   * @param {bridge.SessionFacts} facts
   */
  has(facts) {
    return this.isComplete || (this.#last !== null && comparePlaces(facts, this.#last) <= 0);
  }
}

/** The projects of the bridge, loaded in parts. Each project has a session list. */
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
      for (const { cwd, ...page } of projects) this.#addProject(cwd, page);
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
  #addProject(cwd, page) {
    const list = new SessionList(this.#app, { groups: ["sessions"], cwd });
    list.add(page);
    this.#lists.set(projectOf(cwd), list);
    this.#last = page.sessions[0] ?? this.#last;
  }

  /**
   * The list of a project, if it is loaded.
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
    // Projects are sorted by their latest session, so an unknown project above the loaded part is new.
    return this.isComplete || (this.#last !== null && comparePlaces(facts, this.#last) <= 0);
  }
}
