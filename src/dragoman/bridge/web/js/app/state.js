/**
 * The state of the page outside of one conversation. app.js lists the fields and events.
 *
 * A session's facts, as the bridge sends them: {sessionId, cwd, title, state: "idle" | "running" | "asleep" | "gone",
 * pending, viewers, updatedAt, archived?, stopReason?, error?}.
 */

const MOST_EARLY = 10_000;

export class AppState extends EventTarget {
  /** @type {acp.SessionNotification[] | null} */
  #early = null;
  /** @type {Array<{ method: any, params: any, answer: page.Answer }>} */
  #questions = [];
  // A late update of a session that is being deleted must not return it to the list.
  #deleted = new Set();

  constructor() {
    super();
    /** @type {page.ConnectionState} */
    this.connection = { phase: "idle" };
    /** @type {bridge.AgentFacts | null} */
    this.agent = null;
    /** @type {acp.AuthStatusResponse | null} */
    this.auth = null;
    /** @type {Map<string, bridge.SessionFacts>} */
    this.sessions = new Map();
    /** @type {bridge.SessionFacts | null} */
    this.news = null;
    /** @type {page.Session | null} */
    this.session = null;
    /** @type {page.View} */
    this.view = "conversation";
  }

  /** @param {page.ConnectionState} connection */
  setConnection(connection) {
    this.connection = connection;
    // Requests of a broken connection cannot be answered. The bridge sends them again.
    if (connection.phase !== "open") this.#questions = [];
    this.#fire("connection");
  }

  /** @param {bridge.AgentFacts} agent */
  setAgent(agent) {
    this.agent = agent;
    this.#fire("agent");
  }

  /** @param {acp.AuthStatusResponse | null} auth */
  setAuth(auth) {
    this.auth = auth;
    this.#fire("auth");
  }

  /** @param {page.Session | null} session */
  setSession(session) {
    this.session = session;
    const kept = this.#questions;
    /** @param {{ params: any }} question */
    const isHere = ({ params }) => session !== null && params.sessionId === session.id;
    this.#questions = kept.filter((one) => !isHere(one));
    for (const { method, params, answer } of kept.filter(isHere)) session?.receiveQuestion(method, params, answer);
    this.#fire("session");
  }

  touchIntroduction() {
    this.#fire("introduction");
  }

  touchSession() {
    this.#fire("session");
  }

  /** @param {page.View} view */
  setView(view) {
    if (view === this.view) return;
    this.view = view;
    this.#fire("view");
  }

  /** @param {bridge.SessionFacts[]} list */
  setSessions(list) {
    this.#deleted.clear();
    this.sessions = new Map(list.map((facts) => [facts.sessionId, facts]));
    this.#fire("sessions");
    if (this.session) this.#fire("session");
  }

  /**
   * Handle a changed session.
   *
   * @param {bridge.SessionFacts} facts
   */
  noteNews(facts) {
    this.news = facts;
    this.#fire("news");
    this.noteSession(facts);
  }

  /** @param {bridge.SessionFacts} facts */
  noteSession(facts) {
    this.noteSessions([facts]);
  }

  /** @param {bridge.SessionFacts[]} list */
  noteSessions(list) {
    for (const { reset, _meta, ...kept } of list) if (!this.#deleted.has(kept.sessionId)) this.sessions.set(kept.sessionId, kept);
    this.#fire("sessions");
    if (list.some(({ sessionId }) => sessionId === this.session?.id)) this.#fire("session");
  }

  /** @param {string} id */
  isDeleted(id) {
    return this.#deleted.has(id);
  }

  touchSessions() {
    this.#fire("sessions");
  }

  /** @param {string} id */
  forgetSession(id) {
    this.#deleted.add(id);
    this.sessions.delete(id);
    this.#fire("sessions");
  }

  forgetAgent() {
    this.session = null;
    this.agent = null;
    this.auth = null;
    this.sessions = new Map();
    for (const name of ["session", "agent", "sessions"]) this.#fire(name);
  }

  /** Keep updates of sessions that are not shown, until `stop` is called. */
  keepEarly() {
    /** @type {acp.SessionNotification[]} */
    const kept = [];
    this.#early = kept;
    return {
      find: (/** @type {string} */ id) => kept.filter((params) => params.sessionId === id),
      stop: () => {
        if (this.#early === kept) this.#early = null;
      },
    };
  }

  /** @param {acp.SessionNotification} params */
  receiveEarly(params) {
    if (this.#early && this.#early.length < MOST_EARLY) this.#early.push(params);
  }

  /**
   * @param {string} method
   * @param {any} params
   * @param {page.Answer} answer
   */
  keepQuestion(method, params, answer) {
    this.#questions.push({ method, params, answer });
  }

  /** @param {acp.RequestId} requestId */
  dropQuestion(requestId) {
    this.#questions = this.#questions.filter((question) => question.answer.id !== requestId);
  }

  /** @param {string} name */
  #fire(name) {
    this.dispatchEvent(new Event(name));
  }
}
