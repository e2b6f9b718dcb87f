/**
 * The object that the parts of the page share. Every part gets the one `app` and builds itself from it.
 *
 *   app.config        the answer of ./config.json: {agents: [{name, title}], cwd, version, role}
 *   app.readOnly      true for a reader: nothing may be sent but initialize, list, load and resume
 *   app.agentName     the chosen agent's name; `app.chooseAgent(name)` connects to another one
 *   app.initialized   the whole result of initialize, null before it
 *   app.capabilities  agentCapabilities of it, {} before it
 *   app.connection    `.request(method, params)` → Promise (rejects with a Failure), `.notify`, `.on(method, fn)`,
 *                     `.onRequest(method, fn)`, `.state` ({phase, …}, see connection.js), `.isOpen`
 *   app.state         an EventTarget (state.js) with the state that is shown; its events carry no detail, read the field:
 *                       "connection"  state.connection   the same as connection.state
 *                       "agent"       state.agent        the last `_dragoman/agent`: {state, reason, stderr, retryInS}
 *                       "auth"        state.auth         the last auth/status of the agent, null if it tells none
 *                       "sessions"    state.sessions     Map of id → the last `_dragoman/session` (see state.js), of the
 *                                                        sessions that were told of; app.lists asks for others
 *                       "news"        state.news         the last `_dragoman/session`, before it is noted
 *                       "session"     state.session      the open session (session.js) or null; also fired when the
 *                                                        facts about it change (title, running, options)
 *                       "view"        state.view         "conversation" or "inspector"
 *                       "introduction"  app.introductions  the agent told about an empty conversation
 *   app.lists                  the lists of sessions, each as far as it was loaded (lists/session_lists.js)
 *   app.openSession(id)        shows a session; resolves when its history is there
 *   app.newSession(params)     session/new with {cwd, mcpServers}, both optional; shows it, resolves to its id
 *   app.canSteer               whether the agent takes messages into a turn that is under way
 *   app.findFiles(query)       the files of the session's directories whose paths fit, from the bridge
 *   app.forkSession(id)        session/fork of a session, shows the copy
 *   app.deleteSession(id)      session/delete; the open one is left
 *   app.renameSession(id, title)                    session/set_title
 *   app.archiveSession(id), app.unarchiveSession(id)
 *   app.show(view)             "conversation", "review" or "inspector"
 *   app.closeDrawer()          on a phone, hides the sidebar again
 *   app.propose(text)          puts a message into the composer, for the person to send
 *   app.composer               the message field, once it is there
 *   app.toast(words, kind)     a short note on screen, kind "info", "hint" or "error"; read aloud too
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

// Each keeps its whole transcript in memory.
const MOST_KNOWN = 20;

export class App {
  /** @type {Map<string, Session>} */
  #known = new Map();
  // Raised with each wish of the person to be elsewhere: a session that is looked up for an earlier one is not shown.
  #wishes = 0;

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
    /** @type {page.Composer | null} */
    this.composer = null;
  }

  /**
   * Whether a link can be made that answers one question: the bridge can, and an option holds only once.
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
   * The content beyond text that the model takes: another one than at the start may take other content.
   *
   * @param {string[]} takes
   */
  noteTakes(takes) {
    const told = this.capabilities.promptCapabilities;
    if (told) Object.assign(told, { image: takes.includes("image"), audio: takes.includes("audio") });
  }

  get canSteer() {
    return this.initialized?._meta?.steering?.supported === true;
  }

  start() {
    this.connection.start();
    // A link to another session in the same tab; our own changes of the address do not come here.
    addEventListener("hashchange", () => (readPlace().agent === this.agentName ? this.#openPlace() : location.reload()));
  }

  /** @param {string | null} name */
  chooseAgent(name) {
    if (name === this.agentName) return;
    this.#wishes += 1;
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
    const wish = (this.#wishes += 1);
    // Its directory is needed to load it. What the bridge does not know either, the agent may.
    if (!this.#known.has(id)) await this.lists.lookUp([id]).catch(() => {});
    if (wish !== this.#wishes) return;
    const session = this.#known.get(id) ?? this.#remember(new Session(this, id, { cwd: this.#cwdOf(id) }));
    this.#enter(session);
    await session.attach();
    // The person may have opened another session before the history came.
    if (this.state.session !== session) this.#leave(session);
  }

  /** @param {{ cwd?: string, mcpServers?: acp.McpServer[] }} params */
  async newSession({ cwd, mcpServers } = {}) {
    const params = { cwd: cwd || this.config.cwd, mcpServers: mcpServers ?? [] };
    // Updates may come before the answer that names the session, so they are kept from here on.
    const early = this.state.keepEarly();
    try {
      const result = await this.connection.request("session/new", params);
      const session = this.#remember(new Session(this, result.sessionId, params));
      session.begin(result, early.take(result.sessionId));
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
    // The copy's history is not part of the answer: it is loaded like any other session's.
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
   * The bridge tells of sessions that it has; others are in the agent's list alone.
   *
   * @param {string} id
   * @param {Partial<bridge.SessionFacts>} changes
   */
  #changeFacts(id, changes) {
    const facts = this.state.sessions.get(id);
    if (!facts) return;
    this.lists.told({ ...facts, ...changes });
    this.state.noteSession({ ...facts, ...changes });
  }

  /**
   * Have the agent log the person in.
   *
   * @param {string} methodId
   */
  async logIn(methodId) {
    await this.connection.request("authenticate", { methodId });
    await this.#askForLogin();
  }

  /** An agent that does not tell whether somebody is logged in says so when it is prompted. */
  async #askForLogin() {
    if (this.readOnly || !this.capabilities.auth?.status) return this.state.setAuth(null);
    try {
      this.state.setAuth(await this.connection.request("auth/status", {}));
    } catch {
      this.state.setAuth(null);
    }
  }

  leaveSession() {
    this.#wishes += 1;
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
    this.#wishes += 1;
    if (this.state.session !== session) this.#leave(this.state.session);
    this.state.setSession(session);
    this.state.setView("conversation");
    writePlace({ agent: this.agentName, session: session.id });
    this.closeDrawer();
  }

  /**
   * Tell the bridge that this page does not show a session any more.
   *
   * @param {Session | null} session
   */
  #leave(session) {
    if (!session || !this.#known.has(session.id)) return;
    session.leave();
    this.connection.notify("_dragoman/leave", { sessionId: session.id });
  }

  /**
   * The transcripts of the sessions in a directory, as far as they are known here; the open one first.
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
   * Keep a session that was shown, so that opening it again loads only the updates since.
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
    const told = this.initialized?._meta?.dragoman;
    if (told?.readOnly) this.readOnly = true;
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
    // A reason while it works is one for a message that was lost.
    if (params.state === "ready" && params.reason) this.toast(sentence(params.reason), "error");
  }

  /** @param {(session: Session) => void} fn */
  #eachKnown(fn) {
    for (const session of this.#known.values()) fn(session);
  }

  /** @param {bridge.SessionFacts} params */
  #noteSession(params) {
    this.lists.told(params);
    if (params.deleted) return this.#forgetSession(params.sessionId);
    this.state.noteNews(params);
    this.#known.get(params.sessionId)?.told(params);
  }

  /**
   * Somebody deleted it, perhaps in another window.
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
   * Where a question is shown: one outside a session in the open one, that of a subagent in the session that made it.
   *
   * @param {string | undefined} id
   */
  #asked(id) {
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
    const session = this.#asked(params.sessionId);
    if (session) session.receiveQuestion(method, params, answer);
    else this.state.keepQuestion(method, params, answer);
  }
}

/** false when the bridge says that we must log in, null when it cannot be reached. */
async function stillAllowed() {
  try {
    const response = await fetch("./config.json", { cache: "no-store" });
    return response.status !== 401 && response.status !== 403;
  } catch {
    return null;
  }
}
