/**
 * One session on this page: its transcript, its cursor in the journal, and its open questions.
 *
 * Its events: "items" (the transcript changed; `popChanged()` returns the items), "facts" (title, options, plan,
 * usage, servers, running), "questions" (the open questions changed), "reset" (everything changed), "phase",
 * "sent" (a prompt of this page), "reveal" (scroll to `revealed`), "older" (items were added at the beginning).
 */

import { Failure, explain } from "../connection/failure.js";
import { SessionHistory, placeOf } from "./history.js";
import { loginOf } from "./login.js";
import { onFrame } from "../page/scheduling.js";
import { Transcript, isMessage } from "./transcript.js";

const ASIDES = ["end", "notice"];
const REQUEST_CANCELLED = -32800;
// Outcomes of steering after which the message is part of the turn.
const TAKEN = ["injected", "startedNewTurn"];

let queued = 0;

export class Session extends EventTarget {
  /** @type {page.App} */
  #app;
  /** @type {string | null} */
  #cursor = null;
  /** @type {Set<page.Item>} */
  #changed = new Set();
  /** @type {Promise<void> | null} */
  #attaching = null;
  /**
   * Updates that arrived before the part of the history that they follow.
   *
   * @type {Array<Pick<acp.SessionNotification, "update" | "_meta">> | null}
   */
  #held = null;
  #fireFacts = () => {
    this.#fire("facts");
    return false;
  };
  /**
   * @param {page.App} app
   * @param {string} id
   * @param {{ cwd: string }} options
   */
  constructor(app, id, { cwd }) {
    super();
    this.#app = app;
    this.id = id;
    this.cwd = cwd;
    this.transcript = new Transcript();
    this.history = new SessionHistory(app, this);
    /** @type {page.Question[]} */
    this.questions = [];
    /**
     * The messages that wait at the bridge for the end of the turn.
     *
     * @type {bridge.Queue}
     */
    this.queue = { prompts: [], held: false };
    /**
     * With "failed", `problem` has the reason.
     *
     * @type {"loading" | "ready" | "failed"}
     */
    this.phase = "loading";
    /** @type {string | null} */
    this.problem = null;
    this.sending = false;
    this.stopping = false;
    this.stale = true;
    /** @type {page.Item | null} */
    this.revealed = null;
  }

  /**
   * The last facts from the bridge.
   *
   * @returns {Partial<bridge.SessionFacts>}
   */
  get facts() {
    return this.#app.state.sessions.get(this.id) ?? {};
  }

  get title() {
    return this.transcript.title ?? this.facts.title ?? null;
  }

  get running() {
    return this.sending || this.facts.state === "running";
  }

  /**
   * The error of the last turn, if nothing followed it.
   *
   * @returns {acp.Error | null}
   */
  get failure() {
    const last = this.transcript.items.at(-1);
    return last?.type === "end" ? last.error : null;
  }

  /**
   * Start with a new session.
   *
   * @param {acp.NewSessionResponse} result
   * @param {acp.SessionNotification[]} early
   */
  begin(result, early) {
    this.transcript.begin(result);
    for (const params of early) this.receive(params);
    this.stale = false;
    this.#enter("ready");
  }

  /** Load the history, or the updates missed during a break. */
  attach() {
    this.#attaching ??= this.#attach().finally(() => {
      this.#attaching = null;
    });
    return this.#attaching;
  }

  async #attach() {
    if (!this.stale) return;
    this.#setQuestions(this.questions.filter((one) => one.waiting));
    this.queue = { prompts: [], held: false };
    const after = this.#cursor;
    if (after === null) this.#clear("loading");
    const dragoman = { paged: true, after: after ?? undefined };
    try {
      const params = { sessionId: this.id, cwd: this.cwd, mcpServers: [], _meta: { dragoman } };
      const result = await this.#app.connection.request("session/load", params);
      const own = result._meta?.dragoman;
      if (own?.before) await this.#loadEnd(own.before);
      this.transcript.begin(result);
      this.stale = false;
      if (!this.running) this.transcript.endTurn();
      this.#enter("ready");
    } catch (error) {
      // A broken connection reconnects automatically and is shown elsewhere.
      if (this.#app.connection.isOpen) this.#fail(explain(error));
      throw error;
    }
  }

  /**
   * Load the end of the history. Updates that arrive meanwhile follow it.
   *
   * @param {string} end
   */
  async #loadEnd(end) {
    this.#held = [];
    try {
      const { modes, configOptions } = this.transcript;
      this.transcript = await this.history.loadEnd(end);
      this.transcript.begin({ modes, configOptions });
      this.#changed.clear();
      this.#cursor = end;
      this.#fire("reset");
    } finally {
      const held = this.#held ?? [];
      this.#held = null;
      if (this.#cursor !== null) held.forEach((params) => this.receive(params));
    }
    this.history.loadSettings().catch(() => {});
  }

  /**
   * Handle that a part of the history was added before the transcript, or settings of it.
   *
   * @param {Iterable<page.Item>} changed
   */
  noteOlder(changed) {
    this.#fire("older");
    this.#noteChanged(changed);
    this.#fire("facts");
  }

  /** @param {Iterable<page.Item>} items */
  #noteChanged(items) {
    for (const item of items) this.#changed.add(item);
    this.#fire("items");
  }

  /**
   * Handle one `session/update`.
   *
   * @param {Pick<acp.SessionNotification, "update" | "_meta">} params
   */
  receive(params) {
    if (this.#held !== null) {
      this.#held.push(params);
      return;
    }
    const { update, _meta } = params;
    const mark = _meta?.dragoman;
    if (mark?.cursor) this.#cursor = mark.cursor;
    const changed = this.transcript.apply(update ?? {}, mark?.time ?? null);
    if (changed === null) return;
    // Many of these in one frame are drawn once. While the history loads, none is drawn.
    if (typeof changed === "string") this.phase !== "loading" && onFrame(this.#fireFacts);
    else {
      changed.place ??= placeOf(mark?.cursor);
      this.#changed.add(changed);
      this.#fire("items");
      // A message of the user ends the previous plan and turn.
      if (isMessage(changed, "user")) this.#fire("facts");
    }
  }

  /**
   * Show the item of a journal record: set `revealed` and fire "reveal".
   *
   * @param {number} seq
   */
  async reveal(seq) {
    await this.history.reach(seq);
    const item = this.transcript.items.findLast(({ place }) => place !== undefined && place <= seq);
    if (!item) return null;
    this.revealed = item;
    this.#fire("reveal");
    return item;
  }

  popChanged() {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  /**
   * Handle one `_dragoman/session`.
   *
   * @param {bridge.SessionFacts} facts
   */
  applyFacts(facts) {
    if (facts.cwd) this.cwd = facts.cwd;
    if (facts.reset) this.#clear(this.phase);
    if (facts.state !== "running") this.stopping = false;
    if (!this.running) this.#endTurn();
    this.#fire("facts");
  }

  /**
   * Handle one `_dragoman/queue`.
   *
   * @param {bridge.Queue} queue
   */
  receiveQueue({ prompts, held }) {
    this.queue = { prompts, held };
    this.#fire("facts");
  }

  /** Leave the session. Updates and questions must be requested again later. */
  leave() {
    this.stale = true;
    this.#setQuestions([]);
  }

  /** Handle a lost connection. Questions cannot be answered, and updates must be requested again. */
  lose() {
    this.stale = true;
    this.sending = false;
    this.stopping = false;
    this.#setQuestions([]);
    this.#fire("facts");
  }

  // ── requests of the agent ─────────────────────────────────────────────────────────────────────

  /**
   * @param {page.Question["method"]} method
   * @param {any} params
   * @param {page.Answer} answer
   */
  receiveQuestion(method, params, answer) {
    /** @type {page.Question} */
    const question = {
      id: answer.id,
      method,
      params,
      settled: null,
      waiting: false,
      answer: (result) => {
        if (question.settled || question.waiting) return;
        answer.result(result);
        // A login ends on another page, and the card shows the result.
        if (result.action === "accept" && loginOf(question)) this.#await(question);
        else this.#settle(question, { by: "you", result });
      },
    };
    this.#setQuestions([...this.questions, question]);
  }

  /** @param {bridge.Settled} settled */
  settled({ requestId, by, result }) {
    const question = this.questions.find((one) => one.id === requestId);
    if (question && !question.settled && !question.waiting) this.#settle(question, { by, result: result ?? null });
  }

  /**
   * Handle the end of an elicitation on another page.
   *
   * @param {acp.CompleteElicitationNotification} params
   */
  completed({ elicitationId, _meta }) {
    const question = this.questions.find(({ params }) => "elicitationId" in params && params.elicitationId === elicitationId);
    if (!question) return;
    const login = _meta?.["dragoman/oauth"];
    if (login && !question.settled) this.#settle(question, { by: "login", result: login });
    else this.dismiss(question);
  }

  /** @param {page.Question} question */
  #await(question) {
    question.waiting = true;
    this.#fire("questions");
  }

  /** @param {page.Question} question */
  dismiss(question) {
    this.#setQuestions(this.questions.filter((one) => one !== question));
  }

  /**
   * @param {page.Question} question
   * @param {page.Settled} settled
   */
  #settle(question, settled) {
    question.settled = settled;
    if (settled.by === "you") this.dismiss(question);
    else this.#fire("questions");
  }

  /** @param {page.Question[]} questions */
  #setQuestions(questions) {
    this.questions = questions;
    this.#fire("questions");
  }

  // ── actions of the user ────────────────────────────────────────────────────────────────────────

  /**
   * Send a prompt. Resolves to true if it was refused with an error before any work. Rejects if it
   * did not reach the history.
   *
   * @param {acp.ContentBlock[]} blocks
   */
  async prompt(blocks) {
    this.sending = true;
    this.#fire("facts");
    this.#fire("sent");
    const last = this.transcript.items.at(-1);
    try {
      // The protocol requires unarchiving a session before it continues.
      if (this.facts.archived) await this.#app.unarchiveSession(this.id);
      await this.#app.connection.request("session/prompt", { sessionId: this.id, prompt: blocks });
      return false;
    } catch (error) {
      const since = this.transcript.items.slice(last ? last.n + 1 : 0).filter((item) => !ASIDES.includes(item.type));
      if (!since.some((item) => isMessage(item, "user"))) throw error;
      // Without a code the connection broke, and the turn continues.
      if (!(error instanceof Failure) || error.code === null) return false;
      return since.every((item) => isMessage(item, "user"));
    } finally {
      this.sending = false;
      this.stopping = false;
      if (!this.running) this.#endTurn();
      this.#fire("facts");
    }
  }

  /**
   * Queue a message for the end of the turn. Rejects if it cannot be queued.
   *
   * @param {acp.ContentBlock[]} blocks
   */
  async enqueue(blocks) {
    const id = `${Date.now()}-${(queued += 1)}`;
    let waited = false;
    const note = () => (waited ||= this.queue.prompts.some((one) => one.id === id));
    this.addEventListener("facts", note);
    try {
      const params = { sessionId: this.id, prompt: blocks, _meta: { dragoman: { queue: id } } };
      await this.#app.connection.request("session/prompt", params);
    } catch (error) {
      const wasRemoved = error instanceof Failure && error.code === REQUEST_CANCELLED;
      // Once queued, its result is in the history.
      if (!waited && !wasRemoved) throw error;
    } finally {
      this.removeEventListener("facts", note);
    }
  }

  /**
   * Change the text of a queued message. null removes it.
   *
   * @param {string} id
   * @param {string | null} text
   */
  async changeQueued(id, text) {
    await this.#app.connection.request("_dragoman/queue/change", { sessionId: this.id, id, text: text ?? undefined });
  }

  async resumeQueue() {
    await this.#app.connection.request("_dragoman/queue/resume", { sessionId: this.id });
  }

  /**
   * Send a message into the running turn. Resolves to whether the agent accepted it.
   *
   * @param {acp.ContentBlock[]} blocks
   */
  async steer(blocks) {
    const params = { sessionId: this.id, prompt: blocks, _meta: { steering: { idleBehavior: "promptRequired" } } };
    const { outcome } = await this.#app.connection.request("_session/steering", params);
    return TAKEN.includes(outcome);
  }

  cancel() {
    if (!this.running) return;
    this.stopping = true;
    this.#app.connection.notify("session/cancel", { sessionId: this.id });
    this.#fire("facts");
  }

  /** @param {string} modeId */
  async setMode(modeId) {
    await this.#app.connection.request("session/set_mode", { sessionId: this.id, modeId });
    this.receive({ update: { sessionUpdate: "current_mode_update", currentModeId: modeId } });
  }

  /**
   * @param {page.Option} option
   * @param {string | boolean} value
   */
  async setOption(option, value) {
    /** @type {bridge.Requests["session/set_config_option"]["params"]} */
    const params = { sessionId: this.id, configId: option.id, value };
    if (option.type === "boolean") params.type = "boolean";
    const { configOptions } = await this.#app.connection.request("session/set_config_option", params);
    this.receive({ update: { sessionUpdate: "config_option_update", configOptions } });
  }

  /**
   * Revert the agent's changes of a file, if it has not changed since.
   *
   * @param {string} path
   * @param {Array<{ oldText: string | null, newText: string }>} changes
   */
  async revert(path, changes) {
    return this.#app.connection.request("_dragoman/revert", { sessionId: this.id, path, changes });
  }

  // ── private ───────────────────────────────────────────────────────────────────────────────────

  /** @param {Session["phase"]} phase */
  #clear(phase) {
    const { modes, configOptions } = this.transcript;
    this.transcript = new Transcript();
    this.transcript.begin({ modes, configOptions });
    this.#changed.clear();
    this.#cursor = null;
    this.history.forget();
    this.#enter(phase);
    this.#fire("reset");
  }

  #endTurn() {
    const item = this.transcript.endTurn();
    if (!item) return;
    this.#changed.add(item);
    this.#fire("items");
  }

  /** @param {string} problem */
  #fail(problem) {
    this.problem = problem;
    this.#enter("failed");
  }

  /** @param {Session["phase"]} phase */
  #enter(phase) {
    const moved = this.phase !== phase;
    this.phase = phase;
    if (phase !== "failed") this.problem = null;
    if (moved) this.#fire("phase");
    this.#fire("facts");
  }

  /** @param {string} name */
  #fire(name) {
    this.dispatchEvent(new Event(name));
    if (name === "facts" && this.#app.state.session === this) this.#app.state.touchSession();
  }
}
