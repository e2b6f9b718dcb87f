/**
 * The object that all parts of the page share. Each part receives `app` in its constructor.
 *
 *   app.config        the answer of ./config.json: {agents: [{name, title}], cwd, version, role}
 *   app.readOnly      true for a reader, who may only send initialize, list, load and resume
 *   app.agentName     the selected agent's name; `app.chooseAgent(name)` connects to another one
 *   app.initialized   the result of initialize, null before it
 *   app.capabilities  its agentCapabilities, {} before it
 *   app.connection    `.request(method, params)` → Promise (rejects with a Failure), `.notify`, `.on(method, fn)`,
 *                     `.onRequest(method, fn)`, `.state` ({phase, …}, see connection.js), `.isOpen`
 *   app.state         an EventTarget (state.js) with the shown state. Its events have no detail, so read the field:
 *                       "connection"  state.connection   the same as connection.state
 *                       "agent"       state.agent        the last `_dragoman/agent`: {state, reason, stderr, retryInS}
 *                       "auth"        state.auth         the last auth/status of the agent, null if it sends none
 *                       "sessions"    state.sessions     Map of id → the last `_dragoman/session` (state.js) of the
 *                                                        known sessions; app.lists requests others
 *                       "news"        state.news         the last `_dragoman/session`, before it is stored
 *                       "session"     state.session      the open session (session.js) or null; also fired when the
 *                                                        facts about it change (title, running, options)
 *                       "view"        state.view         "conversation" or "inspector"
 *                       "introduction"  app.introductions  the agent's introduction for an empty conversation
 *   app.lists                  the session lists, each loaded up to some point (lists/session_lists.js)
 *   app.openSession(id)        shows a session; resolves when its history has arrived
 *   app.newSession(params)     session/new with {cwd, mcpServers}, both optional; shows it, resolves to its id
 *   app.canSteer               whether the agent accepts messages during a running turn
 *   app.findFiles(query)       the matching files in the session's directories, from the bridge
 *   app.forkSession(id)        session/fork; shows the copy
 *   app.deleteSession(id)      session/delete; leaves the session if it is open
 *   app.renameSession(id, title)                    session/set_title
 *   app.archiveSession(id), app.unarchiveSession(id)
 *   app.show(view)             "conversation", "review" or "inspector"
 *   app.closeDrawer()          on a phone, hides the sidebar again
 *   app.find()                 opens the find box of the conversation
 *   app.propose(text)          puts a message into the composer for the user to send
 *   app.composer               the message field, once it is loaded
 *   app.toast(words, kind)     shows a short note of kind "info", "hint" or "error", which is also read aloud
 *   app.announce(words)        only read aloud
 */

import { Connection } from "../connection/connection.js";
import { sentence } from "../connection/failure.js";
import { AppState } from "./state.js";
import { Introductions } from "../start/introduction.js";
import { SessionLists } from "../lists/session_lists.js";
import { Session } from "../session/session.js";
import { readPlace, writePlace } from "./fragment.js";

const CLIENT = {
  protocolVersion: 1,
  clientInfo: { name: "dragoman-page", title: "Dragoman page", version: "1" },
  clientCapabilities: {
    fs: { readTextFile: false, writeTextFile: false },
    terminal: false,
    session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
    subagents: {},
    elicitation: { form: {}, url: {} },
    _meta: { dragoman: { viewer: 1 }, terminal_output: true },
  },
};

/** @type {Array<page.Question["method"]>} */
const QUESTIONS = ["session/request_permission", "elicitation/create"];

// Cached sessions, each with its whole transcript in memory.
const MOST_KNOWN = 20;

export class App {
  /** @type {Map<string, Session>} */
  #known = new Map();
  // Incremented on each navigation, so that a session found for an earlier one is not shown.
  #navigations = 0;

  /** @param {bridge.Config} config */
  constructor(config) {
    this.config = config;
    this.readOnly = config.role === "reader";
    /** @type {acp.InitializeResponse | null} */
    this.initialized = null;
    /** @type {string | null} */
    this.agentName = readPlace().agent ?? config.agents?.[0]?.name ?? null;
    this.state = new AppState();
    this.lists = new SessionLists(this);
    this.introductions = new Introductions(this);
    this.connection = this.#connect();
    /** @type {(words: string, kind?: "info" | "hint" | "error") => void} */
    this.toast = () => {};
    /** @type {(words: string) => void} */
    this.announce = () => {};
    /** @type {() => void} */
    this.focusComposer = () => {};
    /** @type {(text: string) => void} */
    this.propose = () => {};
    this.closeDrawer = () => {};
    this.find = () => {};
    /** @type {page.Composer | null} */
    this.composer = null;
  }

  /**
   * Whether an answer link is possible: the bridge supports it, and some option applies only once.
   *
   * @param {acp.PermissionOption[]} options
   */
  offersLinks(options) {
    const canLink = !this.readOnly && Boolean(this.initialized?._meta?.dragoman?.questionLinks);
    return canLink && options.some(({ kind }) => kind === "allow_once" || kind === "reject_once");
  }

  get capabilities() {
    return this.initialized?.agentCapabilities ?? {};
  }

  /**
   * Set the content types that the current model accepts. They can change with the model.
   *
   * @param {string[]} types
   */
  setContentTypes(types) {
    const supported = this.capabilities.promptCapabilities;
    if (supported) Object.assign(supported, { image: types.includes("image"), audio: types.includes("audio") });
  }

  get canSteer() {
    return this.initialized?._meta?.steering?.supported === true;
  }

  start() {
    this.connection.start();
    // The user followed a link to another session in this tab. Our own changes fire no event.
    addEventListener("hashchange", () => (readPlace().agent === this.agentName ? this.#openPlace() : location.reload()));
  }

  /** @param {string | null} name */
  chooseAgent(name) {
    if (name === this.agentName) return;
    this.#navigations += 1;
    this.connection.stop();
    this.agentName = name;
    this.initialized = null;
    this.#known.clear();
    this.lists.forget();
    writePlace({ agent: name, session: null });
    this.state.forgetAgent();
    this.connection.start();
  }

  /** @param {string} id */
  async openSession(id) {
    const wish = (this.#navigations += 1);
    // Loading a session needs its directory. If the bridge does not know it, the agent may.
    if (!this.#known.has(id)) await this.lists.lookUp([id]).catch(() => {});
    if (wish !== this.#navigations) return;
    const session = this.#known.get(id) ?? this.#remember(new Session(this, id, { cwd: this.#cwdOf(id) }));
    this.#enter(session);
    await session.attach();
    // The user may have opened another session before the history arrived.
    if (this.state.session !== session) this.#leave(session);
  }

  /** @param {{ cwd?: string, mcpServers?: acp.McpServer[] }} params */
  async newSession({ cwd, mcpServers } = {}) {
    const params = { cwd: cwd || this.config.cwd, mcpServers: mcpServers ?? [] };
    // Updates may arrive before the answer that names the session, so they are kept from here on.
    const early = this.state.keepEarly();
    try {
      const result = await this.connection.request("session/new", params);
      const session = this.#remember(new Session(this, result.sessionId, params));
      session.begin(result, early.find(result.sessionId));
      this.#enter(session);
      return session.id;
    } finally {
      early.stop();
    }
  }

  /**
   * Copy a session, all of it or the part before a message, and show the copy.
   *
   * @param {string} id
   * @param {bridge.NamedMessage | null} before
   */
  async forkSession(id, before = null) {
    const known = this.state.sessions.get(id);
    const meta = before && { _meta: { "dragoman/fork": { before } } };
    const params = { sessionId: id, cwd: this.#cwdOf(id), mcpServers: [], ...meta };
    const result = await this.connection.request("session/fork", params);
    // The answer does not contain the copy's history, so it is loaded like any other session.
    this.state.noteSession({ viewers: 0, ...known, sessionId: result.sessionId, cwd: params.cwd, state: "idle", pending: 0 });
    await this.openSession(result.sessionId);
    return result.sessionId;
  }

  /**
   * @param {string} query
   * @returns {Promise<{ files: string[], isWhole: boolean }>}
   */
  findFiles(query) {
    const { session } = this.state;
    return this.connection.request("_dragoman/files", session ? { sessionId: session.id, query } : { query });
  }

  /** @param {string} id */
  async deleteSession(id) {
    await this.connection.request("session/delete", { sessionId: id });
    this.#forgetSession(id);
  }

  /**
   * @param {string} id
   * @param {string} title
   */
  async renameSession(id, title) {
    const result = await this.connection.request("session/set_title", { sessionId: id, title });
    this.#changeFacts(id, { title: result.title });
  }

  /** @param {string} id */
  async archiveSession(id) {
    await this.connection.request("session/archive", { sessionId: id });
    this.#changeFacts(id, { archived: true });
  }

  /** @param {string} id */
  async unarchiveSession(id) {
    await this.connection.request("session/unarchive", { sessionId: id });
    this.#changeFacts(id, { archived: false });
  }

  /**
   * Update the facts of a session that only the agent's list has. The bridge reports changes of its own sessions.
   *
   * @param {string} id
   * @param {Partial<bridge.SessionFacts>} changes
   */
  #changeFacts(id, changes) {
    const facts = this.state.sessions.get(id);
    if (!facts) return;
    this.lists.apply({ ...facts, ...changes });
    this.state.noteSession({ ...facts, ...changes });
  }

  /**
   * Log the user in at the agent.
   *
   * @param {string} methodId
   */
  async logIn(methodId) {
    await this.connection.request("authenticate", { methodId });
    await this.#askForLogin();
  }

  /** Request the login status. An agent without it reports a missing login at the first prompt. */
  async #askForLogin() {
    if (this.readOnly || !this.capabilities.auth?.status) return this.state.setAuth(null);
    try {
      this.state.setAuth(await this.connection.request("auth/status", {}));
    } catch {
      this.state.setAuth(null);
    }
  }

  leaveSession() {
    this.#navigations += 1;
    this.#leaveOpen();
  }

  #leaveOpen() {
    this.#leave(this.state.session);
    this.state.setSession(null);
    writePlace({ agent: this.agentName, session: null });
  }

  /** @param {page.View} view */
  show(view) {
    this.state.setView(this.readOnly ? "conversation" : view);
    this.closeDrawer();
  }

  /** @param {Session} session */
  #enter(session) {
    this.#navigations += 1;
    if (this.state.session !== session) this.#leave(this.state.session);
    this.state.setSession(session);
    this.state.setView("conversation");
    writePlace({ agent: this.agentName, session: session.id });
    this.closeDrawer();
  }

  /**
   * Notify the bridge that this page no longer shows a session.
   *
   * @param {Session | null} session
   */
  #leave(session) {
    if (!session || !this.#known.has(session.id)) return;
    session.leave();
    this.connection.notify("_dragoman/leave", { sessionId: session.id });
  }

  /**
   * The known transcripts of the sessions in a directory, the open one first.
   *
   * @param {string} cwd
   */
  transcriptsIn(cwd) {
    const open = this.state.session;
    const others = [...this.#known.values()].filter((one) => one !== open && one.cwd === cwd).reverse();
    return (open ? [open, ...others] : others).map((one) => one.transcript);
  }

  /** @param {string} id */
  #cwdOf(id) {
    return this.state.sessions.get(id)?.cwd ?? this.config.cwd;
  }

  /**
   * Cache a session, so that opening it again loads only newer updates.
   *
   * @param {page.Session} session
   */
  #remember(session) {
    this.#known.set(session.id, session);
    for (const [id, old] of this.#known) {
      if (this.#known.size <= MOST_KNOWN) break;
      if (old !== this.state.session && old !== session && old.questions.length === 0) this.#known.delete(id);
    }
    return session;
  }

  #connect() {
    const connection = new Connection({
      url: () => this.#address(),
      greet: (send) => this.#greet(send),
      allowed: stillAllowed,
    });
    connection.addEventListener("state", () => this.#connectionMoved());
    connection.on("_dragoman/agent", (params) => this.#agentTold(params));
    connection.on("_dragoman/session", (params) => this.#noteSession(params));
    connection.on("auth/status_update", (params) => this.state.setAuth(params));
    connection.on("_dragoman/queue", (params) => this.#known.get(params.sessionId)?.receiveQueue(params));
    connection.on("_dragoman/settled", (params) => this.#settled(params));
    connection.on("$/cancel_request", ({ requestId }) => this.#settled({ requestId, by: "agent" }));
    connection.on("session/update", (params) => this.#update(params));
    connection.on("elicitation/complete", (params) => this.#eachKnown((one) => one.completed(params)));
    for (const method of QUESTIONS) {
      connection.onRequest(method, (params, answer) => this.#receiveQuestion(method, params, answer));
    }
    return connection;
  }

  #address() {
    const path = this.agentName ? `acp/${encodeURIComponent(this.agentName)}` : "acp";
    const url = new URL(path, document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url;
  }

  /** @param {page.Connection["request"]} send */
  async #greet(send) {
    this.initialized = await send("initialize", CLIENT);
    const extension = this.initialized?._meta?.dragoman;
    if (extension?.readOnly) this.readOnly = true;
    if (this.state.agent?.state !== "ready") this.state.setAgent({ state: "ready" });
    await this.lists.begin(send);
  }

  #connectionMoved() {
    this.state.setConnection(this.connection.state);
    if (!this.connection.isOpen) return this.#eachKnown((session) => session.lose());
    this.#askForLogin();
    const session = this.state.session;
    if (session) session.attach().catch(() => {});
    else this.#openPlace();
  }

  #openPlace() {
    const { session } = readPlace();
    if (session) this.openSession(session).catch(() => {});
  }

  /** @param {bridge.AgentFacts} params */
  #agentTold(params) {
    this.state.setAgent(params);
    // A reason while the agent runs explains a lost message.
    if (params.state === "ready" && params.reason) this.toast(sentence(params.reason), "error");
  }

  /** @param {(session: Session) => void} fn */
  #eachKnown(fn) {
    for (const session of this.#known.values()) fn(session);
  }

  /** @param {bridge.SessionFacts} params */
  #noteSession(params) {
    this.lists.apply(params);
    if (params.deleted) return this.#forgetSession(params.sessionId);
    this.state.noteNews(params);
    this.#known.get(params.sessionId)?.applyFacts(params);
  }

  /**
   * Handle a session that was deleted, perhaps in another window.
   *
   * @param {string} id
   */
  #forgetSession(id) {
    this.state.forgetSession(id);
    this.#known.delete(id);
    if (this.state.session?.id === id) this.#leaveOpen();
  }

  /** @param {acp.SessionNotification} params */
  #update(params) {
    const session = this.#known.get(params.sessionId);
    if (session) session.receive(params);
    else this.state.receiveEarly(params);
  }

  /**
   * The session that shows a question: the open one if the question names none, and the parent of a subagent.
   *
   * @param {string | undefined} id
   */
  #sessionOfQuestion(id) {
    if (id === undefined || id === this.state.session?.id) return this.state.session;
    const parent = this.state.sessions.get(id)?.parent;
    return this.#known.get(parent !== undefined && parent === this.state.session?.id ? parent : id);
  }

  /** @param {bridge.Settled} params */
  #settled(params) {
    this.state.dropQuestion(params.requestId);
    this.#eachKnown((session) => session.settled(params));
  }

  /**
   * @param {page.Question["method"]} method
   * @param {any} params
   * @param {page.Answer} answer
   */
  #receiveQuestion(method, params, answer) {
    const session = this.#sessionOfQuestion(params.sessionId);
    if (session) session.receiveQuestion(method, params, answer);
    else this.state.keepQuestion(method, params, answer);
  }
}

/** Resolves to false if the bridge requires a login, and to null if it cannot be reached. */
async function stillAllowed() {
  try {
    const response = await fetch("./config.json", { cache: "no-store" });
    return response.status !== 401 && response.status !== 403;
  } catch {
    return null;
  }
}
