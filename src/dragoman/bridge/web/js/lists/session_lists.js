/**
 * The lists in the sidebar, each loaded as far as the user scrolled: by day or by project, with the
 * sessions of programs and the archived ones in separate groups, or the results of a search.
 */

import { fits, groupOf, millis, wordsOf } from "../sidebar/groups.js";
import { AgentList } from "./agent_list.js";
import { FIRST, MOST, ProjectList, SessionList } from "./session_list.js";

const COUNT_AFTER_MS = 300;
// Pages of the agent's list per request for older sessions.
const MOST_PAGES = 5;
const NONE = { sessions: 0, runs: 0, archived: 0 };

export class SessionLists {
  /** @type {page.App} */
  #app;
  #counting = 0;
  /** @type {Record<bridge.SessionGroup, number>} */
  #counts = NONE;

  /** @param {page.App} app */
  constructor(app) {
    this.#app = app;
    this.agent = new AgentList(app);
    this.groups = makeGroups(app);
    this.projects = new ProjectList(app);
    /** @type {SessionList | null} */
    this.found = null;
  }

  /**
   * Load the list again over a new connection, up to the same point.
   *
   * @param {page.Connection["request"]} send
   */
  async begin(send) {
    const limit = Math.max(FIRST, Math.min(MOST, this.groups.sessions.count));
    const page = await send("_dragoman/sessions", { groups: ["sessions"], limit });
    this.#clear();
    this.#app.state.setSessions(page.busy ?? []);
    this.#counts = page.counts ?? this.#counts;
    this.groups.sessions.add(page);
  }

  /** Drop the lists of the previous agent. */
  forget() {
    this.#clear();
    this.#counts = NONE;
    this.agent.forget();
  }

  #clear() {
    this.groups = makeGroups(this.#app);
    this.projects = new ProjectList(this.#app);
    this.found = null;
  }

  /**
   * Load older sessions from the bridge, and those of the same period from the agent's list.
   *
   * @param {SessionList | ProjectList} list
   */
  async older(list) {
    await list.more();
    const shown = [...this.#app.state.sessions.values()].filter((facts) => list.has(facts));
    const oldestMs = list.isComplete ? 0 : Math.min(...shown.map(({ updatedAt }) => millis(updatedAt)));
    for (let page = 0; page < MOST_PAGES && this.agent.hasMore && this.agent.reachedMs > oldestMs; page += 1) await this.agent.more();
  }

  /**
   * Find the sessions whose title or project contains all words, loaded or not.
   *
   * @param {string} search
   */
  async search(search) {
    const found = wordsOf(search).length === 0 ? null : new SessionList(this.#app, { search });
    this.found = found;
    await found?.more();
  }

  /**
   * All sessions of some groups, or all results of a search.
   *
   * @param {{ search: string, groups: bridge.SessionGroup[] }} wanted
   */
  async all({ search, groups }) {
    const words = wordsOf(search);
    const list = new SessionList(this.#app, words.length > 0 ? { search } : { groups });
    while (!list.isComplete) await list.more(MOST);
    while (this.agent.hasMore || this.agent.isLoading) await this.agent.more();
    const known = [...this.#app.state.sessions.values()].filter(({ parent }) => !parent);
    return known.filter((facts) => (words.length > 0 ? fits(facts, words) : groups.includes(groupOf(facts))));
  }

  /**
   * Request the facts of unknown sessions.
   *
   * @param {string[]} ids
   */
  async lookUp(ids) {
    const missing = ids.filter((id) => !this.#app.state.sessions.has(id));
    if (missing.length === 0) return;
    const { sessions } = await this.#app.connection.request("_dragoman/sessions", { ids: missing });
    this.#app.state.noteSessions(sessions);
  }

  /**
   * Whether a session is in the loaded part of its list. Open and running sessions are always shown.
   *
   * @param {bridge.SessionFacts} facts
   * @param {string} by
   */
  shows(facts, by) {
    const isOpen = this.#app.state.session?.id === facts.sessionId;
    if (isOpen || facts.state === "running" || facts.pending > 0 || millis(facts.updatedAt) === 0) return true;
    const group = groupOf(facts);
    return group === "sessions" && by === "directory" ? this.projects.has(facts) : this.groups[group].has(facts);
  }

  /**
   * The number of sessions in a group, and whether the agent may have more.
   *
   * @param {bridge.SessionGroup} group
   */
  count(group) {
    const known = [...this.#app.state.sessions.values()].filter((facts) => !facts.parent && groupOf(facts) === group);
    const elsewhere = known.filter((facts) => facts.elsewhere).length;
    return Math.max(this.#counts[group] + elsewhere, known.length);
  }

  get isEmpty() {
    return this.#app.state.sessions.size === 0 && Object.values(this.#counts).every((count) => count === 0);
  }

  /**
   * Update the counts of groups for a changed session, before its new facts are stored.
   *
   * @param {bridge.SessionFacts} facts
   */
  apply(facts) {
    const known = this.#app.state.sessions.get(facts.sessionId);
    // The bridge did not count a session from the agent's list.
    const isSame = known && !known.elsewhere && !facts.deleted && groupOf(known) === groupOf(facts);
    if (facts.parent || isSame || this.#counting) return;
    this.#counting = setTimeout(() => this.#count(), COUNT_AFTER_MS);
  }

  async #count() {
    this.#counting = 0;
    try {
      const { counts } = await this.#app.connection.request("_dragoman/sessions", { limit: 0 });
      this.#counts = counts ?? this.#counts;
      this.#app.state.touchSessions();
    } catch {
      // The next connection starts with a count.
    }
  }
}

/** @param {page.App} app */
function makeGroups(app) {
  return {
    sessions: new SessionList(app, { groups: ["sessions"] }),
    runs: new SessionList(app, { groups: ["runs"] }),
    archived: new SessionList(app, { groups: ["archived"] }),
  };
}
